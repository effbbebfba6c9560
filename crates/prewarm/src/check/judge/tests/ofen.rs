//! What is there of ofen.

use super::*;

#[test]
fn ofens_kinds_are_optional_and_come_together() {
    let without = |plurals: &'static [&'static str]| {
        move |facts: &mut Facts| {
            for plural in plurals {
                facts.definitions.insert(format!("{plural}.ofen.cybozu.io"), Ok(None));
            }
        }
    };
    let mut facts = healthy();
    without(&["imageprefetches", "nodeimagesets"])(&mut facts);
    assert_eq!(found(&facts, Stage::After), []);
    let good = judge(&facts, Stage::After).findings;
    let line = "optional, and left out: ImagePrefetch and NodeImageSet";
    assert!(good.iter().any(|finding| finding.what == line), "{good:?}");
    let words = ["NodeImageSet is not defined", "crds imageprefetches nodeimagesets |"];
    finds(without(&["nodeimagesets"]), Stage::After, Verdict::Warning, &words);
}

#[test]
fn ofens_controller_and_agent_beside_ours_are_warnings() {
    let deployment = |replicas: i32| {
        move |facts: &mut Facts| {
            let spec = json!({"replicas": replicas, "selector": {}, "template": {}});
            let name = json!({"name": "ofen-imageprefetch-controller", "namespace": "ofen-system"});
            facts.ofen_deployments = Ok(vec![read(json!({"metadata": name, "spec": spec}))]);
        }
    };
    let words = [
        "both must not run at once",
        "kubectl -n ofen-system scale deployment ofen-imageprefetch-controller",
    ];
    finds(deployment(2), Stage::After, Verdict::Warning, &words);
    finds(deployment(2), Stage::Before, Verdict::Warning, &words);
    let mut stopped = healthy();
    deployment(0)(&mut stopped);
    assert_eq!(found(&stopped, Stage::After), []);
    let leads = |facts: &mut Facts| {
        facts.ofen_lease = Ok(SeenLease { now: Some(lease("l", "its-pod")), has_changed: true });
    };
    finds(
        leads,
        Stage::After,
        Verdict::Warning,
        &["ofen's controller leads as its-pod", "docs/compatibility.md"],
    );
    let daemon = |facts: &mut Facts| {
        let mut daemon: k8s_openapi::api::apps::v1::DaemonSet = daemon_set(&json!({}));
        daemon.metadata.name = Some("ofen-daemon".to_owned());
        daemon.metadata.namespace = Some("ofen-system".to_owned());
        facts.ofen_daemons = Ok(vec![daemon]);
    };
    let words = ["the daemons of ofen-system/ofen-daemon", "delete daemonset ofen-daemon"];
    finds(daemon, Stage::After, Verdict::Warning, &words);
}
