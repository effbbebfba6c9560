//! What is there of OpenKruise. On the way from it to Prewarm, the first line that is not ✓ names the next step
//! (`docs/migrate-openkruise.md`).

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::rbac::v1::ClusterRole;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::ResourceExt as _;

use super::Stage;
use crate::check::facts::{Asked, Facts, Webhook};
use crate::check::report::{Finding, Section};
use crate::reach::SeenLease;
use crate::show;

const SECTION: Section = Section::Definitions;
/// The group of its kinds.
const GROUP: &str = "apps.kruise.io";
const GUIDE: &str = "docs/migrate-openkruise.md";
/// The feature gate without which OpenKruise's manager leaves the image kinds alone, switched off.
const WITHOUT_IMAGES: &str = "KruiseDaemon=false";
/// The kinds that its manager serves in any case.
const ALWAYS_SERVED: [&str; 2] = ["advancedcronjobs", "broadcastjobs"];
/// By these annotations Helm marks what belongs to a release, and finds out what it must not delete.
const RELEASE: &str = "meta.helm.sh/release-name";
const RELEASE_NAMESPACE: &str = "meta.helm.sh/release-namespace";
const POLICY: &str = "helm.sh/resource-policy";

/// What OpenKruise's manager does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manager {
    Absent,
    /// Something of it is installed, and no process leads.
    Stopped,
    /// It serves all of its kinds.
    Leads,
    /// It serves workloads, BroadcastJobs and AdvancedCronJobs, and leaves the image kinds alone.
    LeadsWithoutImages,
}

impl Manager {
    /// Whether a kind, by its plural, has to be left to it.
    pub fn keeps(self, plural: &str) -> bool {
        self == Self::LeadsWithoutImages && ALWAYS_SERVED.contains(&plural)
    }
}

pub fn manager(facts: &Facts) -> Manager {
    let deployment = facts.rival_deployment.as_ref().ok().and_then(Option::as_ref);
    match &facts.rival_lease {
        Ok(SeenLease { has_changed: true, .. }) => match deployment {
            Some(deployment) if is_without_images(deployment) => Manager::LeadsWithoutImages,
            _ => Manager::Leads,
        },
        Ok(SeenLease { now: Some(_), .. }) => Manager::Stopped,
        _ if deployment.is_some() => Manager::Stopped,
        _ => Manager::Absent,
    }
}

fn is_without_images(deployment: &Deployment) -> bool {
    let template = deployment.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    let containers = template.into_iter().flat_map(|template| &template.containers);
    let arguments = containers.flat_map(|container| container.args.iter().flatten());
    let mut gates = arguments.flat_map(|argument| argument.trim_start_matches("--feature-gates=").split(','));
    gates.any(|gate| gate.trim() == WITHOUT_IMAGES)
}

/// The order is that of the steps.
pub fn judge(facts: &Facts, manager: Manager, stage: Stage) -> Vec<Finding> {
    let mut findings: Vec<Finding> = release(facts, manager, stage).into_iter().collect();
    findings.push(match &facts.rival_lease {
        Err(why) => Finding::unknown(SECTION, "OpenKruise's manager", why),
        Ok(_) => leader(facts, manager, stage),
    });
    findings.push(webhooks(&facts.webhooks, manager));
    findings.push(daemons(&facts.rival_daemons));
    findings
}

/// Definitions that belong to the release of another go with it, and take all objects along. Where that release has to stay,
/// they have to stay in it.
fn release(facts: &Facts, manager: Manager, stage: Stage) -> Option<Finding> {
    if manager == Manager::LeadsWithoutImages {
        return None;
    }
    let installed = facts.definitions.values().filter_map(|definition| definition.as_ref().ok()?.as_ref());
    let is_bound = |definition: &&CustomResourceDefinition| {
        let annotations = definition.annotations();
        let is_kept = annotations.get(POLICY).is_some_and(|policy| policy == "keep");
        definition.spec.group == GROUP && annotations.contains_key(RELEASE) && !is_kept
    };
    let bound: Vec<_> = installed.filter(is_bound).collect();
    let annotation = |name: &str| bound.first()?.annotations().get(name).cloned();
    let (release, namespace) = (annotation(RELEASE)?, annotation(RELEASE_NAMESPACE).unwrap_or_default());
    let names: Vec<String> = bound.iter().map(|definition| definition.name_any()).collect();
    let what = format!(
        "the Helm release {namespace}/{release} has {} of these kinds; uninstalling it deletes all of their objects, too",
        show::counted(bound.len(), "definition")
    );
    let step = format!(
        "{GUIDE}, step 1, unless other kinds of that release are used: kubectl annotate crd {} {POLICY}=keep, and helm -n \
         {namespace} upgrade {release} openkruise/kruise --reuse-values --set crds.managed=false",
        names.join(" ")
    );
    Some(match stage {
        Stage::Before => Finding::bad(SECTION, what, step),
        Stage::After => Finding::warning(SECTION, what, step),
    })
}

fn leader(facts: &Facts, manager: Manager, stage: Stage) -> Finding {
    let is_installed = facts.deployments.as_ref().is_ok_and(|deployments| !deployments.is_empty());
    let has_deployment = facts.rival_deployment.as_ref().is_ok_and(Option::is_some);
    match (manager, stage) {
        (Manager::Absent, _) => Finding::good(SECTION, "no other manager of these kinds"),
        (Manager::Stopped, Stage::After) if is_installed && has_deployment => Finding::warning(
            SECTION,
            "OpenKruise's manager is stopped and still installed",
            format!("once everything works, uninstall it: {GUIDE}, step 6"),
        ),
        (Manager::Stopped, _) => Finding::good(SECTION, "OpenKruise's manager is stopped"),
        (Manager::Leads, Stage::After) if !is_installed => Finding::bad(
            SECTION,
            "OpenKruise's manager serves these kinds, and Prewarm does not",
            format!("{GUIDE}; if this is the way back, it is complete"),
        ),
        (Manager::Leads, _) => Finding::bad(
            SECTION,
            "OpenKruise's manager is running; two managers undo each other's work",
            format!(
                "kubectl -n kruise-system scale deployment kruise-controller-manager --replicas 0; if its workloads are used, \
                 install it with the feature gate {WITHOUT_IMAGES} instead; {GUIDE} has all steps, and those of the way back"
            ),
        ),
        (Manager::LeadsWithoutImages, Stage::Before) => Finding::warning(
            SECTION,
            "OpenKruise's manager is running for its workloads, BroadcastJobs and AdvancedCronJobs, and leaves the image kinds \
             alone",
            format!(
                "install with kinds.broadcastJob=false, kinds.advancedCronJob=false, configNamespace.create=false and \
                 crds.install=false; {GUIDE}"
            ),
        ),
        (Manager::LeadsWithoutImages, Stage::After) => side_by_side(&facts.roles),
    }
}

/// Both can work in one cluster if each kind is served by one of them.
fn side_by_side(roles: &Asked<Vec<ClusterRole>>) -> Finding {
    let roles = match roles {
        Ok(roles) => roles,
        Err(why) => return Finding::unknown(SECTION, "the controller's roles", why),
    };
    let is_shared = |role: &&ClusterRole| {
        let mut resources = role.rules.iter().flatten().flat_map(|rule| rule.resources.iter().flatten());
        resources.any(|resource| ALWAYS_SERVED.contains(&resource.as_str()))
    };
    let shared: Vec<String> = roles.iter().filter(is_shared).map(ClusterRole::name_any).collect();
    if shared.is_empty() {
        let what = "OpenKruise's manager goes on with its workloads, and leaves the image kinds to Prewarm";
        return Finding::good(SECTION, what);
    }
    Finding::bad(
        SECTION,
        "OpenKruise's manager and Prewarm's controller both serve BroadcastJobs or AdvancedCronJobs",
        format!(
            "install with kinds.broadcastJob=false and kinds.advancedCronJob=false, or without Helm: kubectl delete \
             clusterrolebinding,clusterrole {}",
            shared.join(" ")
        ),
    )
}

fn webhooks(webhooks: &Asked<Vec<Webhook>>, manager: Manager) -> Finding {
    let webhooks = match webhooks {
        Ok(webhooks) => webhooks,
        Err(why) => return Finding::unknown(SECTION, "webhooks", why),
    };
    let disturbs = |webhook: &&Webhook| !webhook.resources.iter().all(|resource| manager.keeps(resource));
    let webhooks: Vec<&Webhook> = webhooks.iter().filter(disturbs).collect();
    let Some(first) = webhooks.iter().find(|webhook| webhook.is_required).or(webhooks.first()) else {
        return Finding::good(SECTION, "no webhook handles these kinds");
    };
    let mut configurations: Vec<&str> =
        webhooks.iter().map(|webhook| webhook.configuration.as_str()).collect();
    configurations.sort_unstable();
    configurations.dedup();
    let configurations = configurations.join(" ");
    let what = format!(
        "another implementation's webhook {} handles {} and can refuse what Prewarm writes",
        first.name,
        first.resources.join(", ")
    );
    let step = if manager == Manager::LeadsWithoutImages {
        format!(
            "take the rules for nodeimages, imagepulljobs and imagelistpulljobs out of {configurations}, and out of the annotation \
             `template` there; {GUIDE}"
        )
    } else {
        format!("once its manager is stopped: kubectl delete {configurations}")
    };
    if first.is_required { Finding::bad(SECTION, what, step) } else { Finding::warning(SECTION, what, step) }
}

fn daemons(daemons: &Asked<Vec<DaemonSet>>) -> Finding {
    let daemons = match daemons {
        Ok(daemons) => daemons,
        Err(why) => return Finding::unknown(SECTION, "daemons of others", why),
    };
    let Some(daemon) = daemons.first() else {
        return Finding::good(SECTION, "no daemon of another implementation on the nodes");
    };
    let (name, namespace) = (daemon.name_any(), daemon.namespace().unwrap_or_default());
    Finding::warning(
        SECTION,
        format!(
            "the daemons of {namespace}/{name} pull what NodeImages say, as the agents do; both must not run at once"
        ),
        format!("kubectl -n {namespace} delete daemonset {name}, and install the agents"),
    )
}
