//! The definitions: whether they are ours and complete, and who else handles these kinds.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps,
};
use kube::ResourceExt as _;
use prewarm_api::crd;

use super::Stage;
use crate::check::facts::{Asked, Facts, Webhook};
use crate::check::report::{Finding, Section};
use crate::reach::SeenLease;
use crate::show;

const SECTION: Section = Section::Definitions;
/// The most fields or names that are listed.
const MOST_NAMES: usize = 3;
const APPLY: &str = "prewarm crds | kubectl apply --server-side --force-conflicts -f -";

pub fn judge(facts: &Facts, stage: Stage) -> Vec<Finding> {
    let mut findings = definitions(&facts.definitions, stage);
    findings.push(webhooks(&facts.webhooks));
    findings.push(rival_manager(&facts.rival_lease));
    findings.push(rival_daemons(&facts.rival_daemons));
    findings
}

fn definitions(
    installed: &BTreeMap<String, Asked<Option<CustomResourceDefinition>>>,
    stage: Stage,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let (mut absent, mut whole) = (Vec::new(), 0);
    for ours in crd::all() {
        let name = ours.name_any();
        match installed.get(&name) {
            None | Some(Ok(None)) => absent.push(ours.spec.names.kind.clone()),
            Some(Err(why)) => findings.push(Finding::unknown(SECTION, &format!("definition {name}"), why)),
            Some(Ok(Some(theirs))) => match lacking(ours, theirs).as_slice() {
                [] => whole += 1,
                fields => findings.push(foreign(&name, fields, stage)),
            },
        }
    }
    if whole > 0 {
        let all = show::counted(whole, "definition");
        findings.push(Finding::good(SECTION, format!("{all} of this version or a newer one")));
    }
    findings.extend(not_there(&absent, stage));
    findings
}

fn not_there(absent: &[String], stage: Stage) -> Option<Finding> {
    if absent.is_empty() {
        return None;
    }
    let listed = absent.join(", ");
    Some(match stage {
        Stage::Before => Finding::good(SECTION, format!("not installed yet: {listed}")),
        Stage::After if absent.iter().any(|kind| kind == "NodeImage") => {
            Finding::bad(SECTION, format!("there is no definition of {listed}"), APPLY)
        }
        Stage::After => Finding::warning(
            SECTION,
            format!("left out: {listed}; everything else works without them"),
            format!("if they are wanted: {APPLY}"),
        ),
    })
}

fn foreign(name: &str, fields: &[String], stage: Stage) -> Finding {
    let what = format!(
        "definition {name} is from another implementation or an older version: it drops what Prewarm writes ({})",
        show::names(fields, MOST_NAMES)
    );
    match stage {
        Stage::Before => Finding::warning(SECTION, what, format!("stop the other manager, then: {APPLY}")),
        Stage::After => Finding::bad(SECTION, what, APPLY),
    }
}

/// The fields that our definition has and theirs drops, in the stored version.
fn lacking(ours: &CustomResourceDefinition, theirs: &CustomResourceDefinition) -> Vec<String> {
    let mut fields = Vec::new();
    for version in ours.spec.versions.iter().filter(|version| version.storage) {
        let same = theirs.spec.versions.iter().find(|other| other.name == version.name);
        let schema = |version: Option<&_>| {
            let version: &k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinitionVersion =
                version?;
            version.schema.as_ref()?.open_api_v3_schema.clone()
        };
        match (schema(Some(version)), schema(same)) {
            (Some(ours), Some(theirs)) => compare(&ours, &theirs, "", &mut fields),
            _ => fields.push(format!("version {}", version.name)),
        }
    }
    fields
}

fn compare(ours: &JSONSchemaProps, theirs: &JSONSchemaProps, path: &str, fields: &mut Vec<String>) {
    if theirs.x_kubernetes_preserve_unknown_fields == Some(true) {
        return;
    }
    for (name, part) in ours.properties.iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        match theirs.properties.as_ref().and_then(|properties| properties.get(name)) {
            Some(same) => compare(part, same, &path, fields),
            None => fields.push(path),
        }
    }
    if let (Some(ours), Some(theirs)) = (items(ours), items(theirs)) {
        compare(ours, theirs, path, fields);
    }
}

/// The schema of the items of a list or the values of a map.
fn items(schema: &JSONSchemaProps) -> Option<&JSONSchemaProps> {
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
        JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
    };
    let listed = match &schema.items {
        Some(JSONSchemaPropsOrArray::Schema(schema)) => Some(&**schema),
        _ => None,
    };
    let mapped = match &schema.additional_properties {
        Some(JSONSchemaPropsOrBool::Schema(schema)) => Some(&**schema),
        _ => None,
    };
    listed.or(mapped)
}

fn webhooks(webhooks: &Asked<Vec<Webhook>>) -> Finding {
    let webhooks = match webhooks {
        Ok(webhooks) => webhooks,
        Err(why) => return Finding::unknown(SECTION, "webhooks", why),
    };
    let Some(first) = webhooks.iter().find(|webhook| webhook.is_required).or(webhooks.first()) else {
        return Finding::good(SECTION, "no webhook handles these kinds");
    };
    let mut configurations: Vec<&str> =
        webhooks.iter().map(|webhook| webhook.configuration.as_str()).collect();
    configurations.sort_unstable();
    configurations.dedup();
    let what = format!(
        "another implementation's webhook {} handles {} and can refuse what Prewarm writes",
        first.name,
        first.resources.join(", ")
    );
    let step = format!("once its manager is stopped: kubectl delete {}", configurations.join(" "));
    if first.is_required { Finding::bad(SECTION, what, step) } else { Finding::warning(SECTION, what, step) }
}

fn rival_manager(lease: &Asked<SeenLease>) -> Finding {
    match lease {
        Err(why) => Finding::unknown(SECTION, "OpenKruise's manager", why),
        Ok(SeenLease { has_changed: true, .. }) => Finding::bad(
            SECTION,
            "OpenKruise's manager is running; two managers undo each other's work",
            "kubectl -n kruise-system scale deployment kruise-controller-manager --replicas 0; docs/migrate-openkruise.md has \
             all steps",
        ),
        Ok(SeenLease { now: Some(_), .. }) => Finding::good(SECTION, "OpenKruise's manager is stopped"),
        Ok(SeenLease { now: None, .. }) => Finding::good(SECTION, "no other manager of these kinds"),
    }
}

fn rival_daemons(daemons: &Asked<Vec<k8s_openapi::api::apps::v1::DaemonSet>>) -> Finding {
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
