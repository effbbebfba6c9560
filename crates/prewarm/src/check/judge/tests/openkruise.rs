//! OpenKruise in the way, and each stage of moving from it with its next step.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use super::*;

fn leading(facts: &mut Facts, is_leading: bool) {
    facts.rival_lease =
        Ok(SeenLease { now: Some(lease("kruise-manager", "manager-1")), has_changed: is_leading });
}

/// The manager's Deployment, with these feature gates.
fn deployment<T: DeserializeOwned>(gates: &str) -> T {
    let container = json!({"name": "manager", "args": ["--v=4", format!("--feature-gates={gates}")]});
    read(json!({"metadata": {"name": "kruise-controller-manager", "namespace": "kruise-system"},
        "spec": {"selector": {}, "template": {"spec": {"containers": [container]}}}}))
}

fn webhook(plural: &str) -> Webhook {
    Webhook {
        configuration: "mutatingwebhookconfiguration/kruise-mutating-webhook-configuration".to_owned(),
        name: format!("m{plural}.kb.io"),
        resources: vec![plural.to_owned()],
        is_required: true,
    }
}

fn daemon<T: DeserializeOwned>() -> T {
    read(json!({"metadata": {"name": "kruise-daemon", "namespace": "kruise-system"}}))
}

/// Changes every definition of OpenKruise's group.
fn each_definition(facts: &mut Facts, mut change: impl FnMut(&mut CustomResourceDefinition)) {
    for definition in facts.definitions.values_mut() {
        if let Ok(Some(definition)) = definition
            && definition.spec.group == "apps.kruise.io"
        {
            change(definition);
        }
    }
}

/// OpenKruise as its chart installs it, and nothing of Prewarm.
fn untouched() -> Facts {
    let mut facts = healthy();
    leading(&mut facts, true);
    facts.rival_deployment = Ok(Some(deployment("")));
    facts.rival_daemons = Ok(vec![daemon()]);
    facts.webhooks = Ok(["nodeimages", "imagepulljobs", "broadcastjobs"].map(webhook).to_vec());
    each_definition(&mut facts, |definition| {
        let annotations = definition.metadata.annotations.get_or_insert_default();
        annotations.insert("meta.helm.sh/release-name".to_owned(), "kruise".to_owned());
        annotations.insert("meta.helm.sh/release-namespace".to_owned(), "kruise-system".to_owned());
        for version in &mut definition.spec.versions {
            let schema = version.schema.as_mut().unwrap().open_api_v3_schema.as_mut().unwrap();
            schema.properties.as_mut().unwrap().get_mut("status").unwrap().properties = None;
        }
    });
    facts.deployments = Ok(Vec::new());
    facts
}

/// Asserts that the first line that is not good has this verdict and all of these words.
fn next(facts: &Facts, stage: Stage, verdict: Verdict, words: &[&str]) {
    let found = found(facts, stage);
    let (worst, text) = found.first().unwrap_or_else(|| panic!("nothing is left to do; expected {words:?}"));
    assert_eq!(*worst, verdict, "{text}");
    for word in words {
        assert!(text.contains(word), "{word:?} is not in {text:?}");
    }
}

#[test]
fn each_stage_of_a_take_over_begins_with_its_next_step() {
    let mut facts = untouched();
    let keep = [
        "Helm release kruise-system/kruise",
        "step 1",
        "nodeimages.apps.kruise.io",
        "=keep",
        "crds.managed=false",
    ];
    next(&facts, Stage::Before, Verdict::Bad, &keep);

    each_definition(&mut facts, |definition| {
        let annotations = definition.metadata.annotations.get_or_insert_default();
        annotations.insert("helm.sh/resource-policy".to_owned(), "keep".to_owned());
    });
    next(&facts, Stage::Before, Verdict::Bad, &["manager is running", "--replicas 0", "KruiseDaemon=false"]);

    leading(&mut facts, false);
    let hooks = [
        "webhook mnodeimages.kb.io handles nodeimages",
        "kubectl delete mutatingwebhookconfiguration/kruise",
    ];
    next(&facts, Stage::Before, Verdict::Bad, &hooks);

    facts.webhooks = Ok(Vec::new());
    let daemons = ["kubectl -n kruise-system delete daemonset kruise-daemon"];
    next(&facts, Stage::Before, Verdict::Warning, &daemons);

    facts.rival_daemons = Ok(Vec::new());
    let definitions =
        ["drops what Prewarm writes", "prewarm crds | kubectl apply --server-side --force-conflicts"];
    next(&facts, Stage::Before, Verdict::Warning, &definitions);
    assert_ne!(judge(&facts, Stage::Before).worst(), Verdict::Bad, "Prewarm can be installed");

    let mut installed = healthy();
    leading(&mut installed, false);
    installed.rival_deployment = facts.rival_deployment;
    next(
        &installed,
        Stage::After,
        Verdict::Warning,
        &["stopped and still installed", "uninstall it", "step 6"],
    );

    let mut finished = healthy();
    leading(&mut finished, false);
    assert_eq!(found(&finished, Stage::After), []);
}

#[test]
fn a_release_that_still_has_the_definitions_is_a_warning_afterwards() {
    let bound = |facts: &mut Facts| {
        each_definition(facts, |definition| {
            let annotations = definition.metadata.annotations.get_or_insert_default();
            annotations.insert("meta.helm.sh/release-name".to_owned(), "kruise".to_owned());
        });
    };
    finds(bound, Stage::After, Verdict::Warning, &["has 5 definitions of these kinds"]);
}

/// OpenKruise without its daemons, because only its workloads are needed.
fn for_workloads(mut facts: Facts) -> Facts {
    leading(&mut facts, true);
    facts.rival_deployment =
        Ok(Some(deployment("SidecarSetPatchPodMetadataDefaultsAllowed=true,KruiseDaemon=false")));
    facts.rival_daemons = Ok(Vec::new());
    facts
}

#[test]
fn a_manager_that_has_to_stay_for_its_workloads_is_led_to_its_own_steps() {
    let mut facts = for_workloads(untouched());
    let install = ["leaves the image kinds alone", "kinds.broadcastJob=false", "crds.install=false"];
    next(&facts, Stage::Before, Verdict::Warning, &install);
    let rest = found(&facts, Stage::Before);
    let hooks = "take the rules for nodeimages, imagepulljobs and imagelistpulljobs out of mutatingwebhookconfiguration/kruise";
    assert!(rest[1].0 == Verdict::Bad && rest[1].1.contains(hooks), "{rest:?}");
    assert!(rest[1].1.contains("annotation `template`"), "{rest:?}");

    // Its own kinds are none of our business.
    facts.webhooks = Ok(vec![webhook("broadcastjobs"), webhook("advancedcronjobs")]);
    let rest = found(&facts, Stage::Before);
    assert_eq!(rest.len(), 4, "the manager, and one for each image kind: {rest:?}");
    let apply = "prewarm crds nodeimages imagepulljobs imagelistpulljobs | kubectl apply";
    assert!(
        rest[1..].iter().all(|(verdict, text)| *verdict == Verdict::Bad && text.contains(apply)),
        "{rest:?}"
    );
}

#[test]
fn beside_a_manager_that_stays_each_kind_is_served_once() {
    let mut facts = for_workloads(healthy());
    let foreign = "advancedcronjobs.apps.kruise.io".to_owned();
    facts.definitions.insert(foreign, untouched().definitions["advancedcronjobs.apps.kruise.io"].clone());
    facts.roles = Ok(vec![role("prewarm-controller-imagelistpulljob", &["imagelistpulljobs"])]);
    assert_eq!(found(&facts, Stage::After), []);
    let good: Vec<String> = judge(&facts, Stage::After).findings.into_iter().map(|it| it.what).collect();
    assert!(good.contains(&"left to OpenKruise: AdvancedCronJob, BroadcastJob".to_owned()), "{good:?}");

    facts.roles = Ok(vec![role("prewarm-controller-broadcastjob", &["broadcastjobs"])]);
    let words = [
        "both serve BroadcastJobs",
        "kinds.broadcastJob=false",
        "clusterrole prewarm-controller-broadcastjob",
    ];
    next(&facts, Stage::After, Verdict::Bad, &words);
    facts.roles = Err("you may not list them".to_owned());
    next(&facts, Stage::After, Verdict::Warning, &["the controller's roles could not be read"]);
}

#[test]
fn two_managers_and_the_way_back_are_recognised() {
    let both = |facts: &mut Facts| leading(facts, true);
    finds(both, Stage::After, Verdict::Bad, &["two managers undo each other's work", "the way back"]);
    let mut back = healthy();
    leading(&mut back, true);
    back.deployments = Ok(Vec::new());
    next(
        &back,
        Stage::After,
        Verdict::Bad,
        &["OpenKruise's manager serves these kinds", "if this is the way back"],
    );
}

#[test]
fn a_webhook_of_others_is_reported_with_its_configuration() {
    let hooked = |is_required| {
        move |facts: &mut Facts| {
            facts.webhooks = Ok(vec![Webhook {
                configuration: "validatingwebhookconfiguration/kruise".to_owned(),
                name: "vimagepulljob.kb.io".to_owned(),
                resources: vec!["imagepulljobs".to_owned()],
                is_required,
            }]);
        }
    };
    let words =
        ["vimagepulljob.kb.io handles imagepulljobs", "kubectl delete validatingwebhookconfiguration/kruise"];
    finds(hooked(true), Stage::Before, Verdict::Bad, &words);
    finds(hooked(false), Stage::After, Verdict::Warning, &words);
}

#[test]
fn daemons_of_others_are_reported() {
    let daemons = |facts: &mut Facts| facts.rival_daemons = Ok(vec![daemon()]);
    let words = ["both must not run at once", "kubectl -n kruise-system delete daemonset kruise-daemon"];
    finds(daemons, Stage::After, Verdict::Warning, &words);
}
