use std::collections::BTreeMap;

use kube::ResourceExt as _;
use prewarm_api::crd;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;
use crate::check::facts::{Policies, Right, Webhook};
use crate::check::report::Verdict;
use crate::reach::SeenLease;

const NOW: &str = "2026-11-18T08:00:00Z";

fn read<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn node<T: DeserializeOwned>(name: &str, labels: &Value, taints: &Value) -> T {
    let info = json!({"containerRuntimeVersion": "containerd://2.2.0", "architecture": "", "bootID": "", "kernelVersion": "",
        "kubeProxyVersion": "", "kubeletVersion": "", "machineID": "", "operatingSystem": "", "osImage": "", "systemUUID": ""});
    read(
        json!({"metadata": {"name": name, "labels": labels}, "spec": {"taints": taints}, "status": {"nodeInfo": info}}),
    )
}

fn agent<T: DeserializeOwned>(node: &str, is_ready: bool) -> T {
    let condition = json!({"type": "Ready", "status": if is_ready { "True" } else { "False" }});
    read(json!({"metadata": {"name": format!("agent-{node}")}, "spec": {"nodeName": node, "containers": []},
        "status": {"conditions": [condition]}}))
}

fn daemon_set<T: DeserializeOwned>(template: &Value) -> T {
    let mut spec = json!({"containers": [{"name": "agent", "args": ["agent"]}], "tolerations": [{"operator": "Exists"}]});
    json_patch::merge(&mut spec, template);
    read(json!({"metadata": {"name": "prewarm-agent", "namespace": "prewarm-system"},
        "spec": {"selector": {}, "template": {"spec": spec}}}))
}

fn lease<T: DeserializeOwned>(name: &str, holder: &str) -> T {
    let spec = json!({"holderIdentity": holder, "acquireTime": "2026-11-18T07:00:00.000000Z",
        "renewTime": "2026-11-18T07:59:58.000000Z"});
    read(json!({"metadata": {"name": name}, "spec": spec}))
}

/// A faultless installation on two nodes.
fn healthy() -> Facts {
    let now = NOW.parse().unwrap();
    let policy = json!({"metadata": {"name": "agent-own-node"}});
    let binding = json!({"metadata": {"name": "b"}, "spec": {"policyName": "agent-own-node", "validationActions": ["Deny"]}});
    let deployment = json!({"metadata": {"name": "prewarm-controller", "namespace": "prewarm-system"},
        "spec": {"replicas": 2, "selector": {}, "template": {}}, "status": {"readyReplicas": 2}});
    let namespace = json!({"metadata": {"name": "prewarm-system",
        "labels": {"pod-security.kubernetes.io/enforce": "privileged"}}});
    Facts {
        clocks: (now, Some(now)),
        version: Ok("1.34".to_owned()),
        rights: vec![Right { what: "create daemonsets".to_owned(), is_allowed: Ok(true) }],
        definitions: crd::all().iter().map(|crd| (crd.name_any(), Ok(Some(crd.clone())))).collect(),
        webhooks: Ok(Vec::new()),
        policies: Ok(Policies { policies: vec![read(policy)], bindings: vec![read(binding)] }),
        installed_in: "prewarm-system".to_owned(),
        namespace: Ok(Some(read(namespace))),
        lease: Ok(SeenLease { now: Some(lease("prewarm-controller", "pod-1")), has_changed: true }),
        rival_lease: Ok(SeenLease { now: None, has_changed: false }),
        rival_daemons: Ok(Vec::new()),
        deployments: Ok(vec![read(deployment)]),
        daemon_sets: Ok(vec![daemon_set(&json!({}))]),
        pods: Ok(vec![agent("n1", true), agent("n2", true)]),
        probes: BTreeMap::new(),
        scrapes: BTreeMap::from([("pod-1".to_owned(), Ok(()))]),
        nodes: Ok(["n1", "n2"].map(|name| node(name, &json!({}), &json!([]))).to_vec()),
        heartbeats: Ok(vec![lease("n1", "n1")]),
        node_images: Ok(vec!["n1".to_owned(), "n2".to_owned()]),
    }
}

/// All findings that are not good, with sentence and next step.
fn found(facts: &Facts, stage: Stage) -> Vec<(Verdict, String)> {
    let findings = judge(facts, stage).findings.into_iter();
    let odd = findings.filter(|finding| finding.verdict != Verdict::Good);
    odd.map(|it| (it.verdict, format!("{} → {}", it.what, it.next_step.unwrap_or_default()))).collect()
}

/// Asserts that there is one finding, with this verdict and all of these words.
fn finds(change: impl FnOnce(&mut Facts), stage: Stage, verdict: Verdict, words: &[&str]) {
    let mut facts = healthy();
    change(&mut facts);
    let found = found(&facts, stage);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].0, verdict, "{found:?}");
    for word in words {
        assert!(found[0].1.contains(word), "{word:?} is not in {:?}", found[0].1);
    }
}

#[test]
fn a_faultless_installation_has_no_findings() {
    assert_eq!(found(&healthy(), Stage::After), []);
    assert_eq!(found(&healthy(), Stage::Before), []);
}

#[test]
fn an_old_kubernetes_is_refused() {
    let old = |facts: &mut Facts| facts.version = Ok("1.29+".to_owned());
    finds(old, Stage::Before, Verdict::Bad, &["1.29+ is too old", "upgrade"]);
}

#[test]
fn missing_rights_are_named() {
    let lacking = |facts: &mut Facts| facts.rights[0].is_allowed = Ok(false);
    finds(lacking, Stage::Before, Verdict::Bad, &["you may not create daemonsets"]);
}

#[test]
fn a_namespace_that_refuses_agents_is_reported_with_the_label() {
    let strict = |facts: &mut Facts| {
        let labels = json!({"pod-security.kubernetes.io/enforce": "restricted"});
        facts.namespace = Ok(Some(read(json!({"metadata": {"name": "warm", "labels": labels}}))));
    };
    let step = "kubectl label namespace warm --overwrite pod-security.kubernetes.io/enforce=privileged";
    finds(strict, Stage::Before, Verdict::Bad, &["level is restricted", step]);
}

#[test]
fn a_runtime_that_nobody_knows_is_a_warning() {
    let strange = |facts: &mut Facts| {
        if let Ok(nodes) = &mut facts.nodes {
            let info = nodes[0].status.as_mut().unwrap().node_info.as_mut().unwrap();
            info.container_runtime_version = "docker://20.10".to_owned();
        }
    };
    finds(strange, Stage::After, Verdict::Warning, &["docker://20.10 on 1"]);
}

#[test]
fn clocks_that_differ_are_a_warning() {
    let here = |facts: &mut Facts| facts.clocks.0 = "2026-11-18T08:01:00Z".parse().unwrap();
    finds(here, Stage::After, Verdict::Warning, &["differ by 60 s"]);
    let node = |facts: &mut Facts| {
        let spec = json!({"renewTime": "2026-11-18T08:05:00.000000Z"});
        facts.heartbeats = Ok(vec![read(json!({"metadata": {"name": "n2"}, "spec": spec}))]);
    };
    finds(node, Stage::After, Verdict::Warning, &["ahead: n2"]);
}

#[test]
fn a_definition_that_is_left_out_is_a_warning_and_that_of_nodes_is_needed() {
    let without = |plural: &'static str| {
        move |facts: &mut Facts| {
            facts.definitions.insert(format!("{plural}.apps.kruise.io"), Ok(None));
        }
    };
    finds(
        without("broadcastjobs"),
        Stage::After,
        Verdict::Warning,
        &["left out: BroadcastJob", "prewarm crds |"],
    );
    finds(
        without("nodeimages"),
        Stage::After,
        Verdict::Bad,
        &["no definition of NodeImage", "prewarm crds |"],
    );
    let mut none = healthy();
    none.definitions.clear();
    assert_eq!(found(&none, Stage::Before), []);
}

#[test]
fn a_definition_that_drops_our_fields_is_reported_with_the_fields() {
    let foreign = |facts: &mut Facts| {
        let name = "advancedcronjobs.apps.kruise.io";
        let Some(Ok(Some(definition))) = facts.definitions.get_mut(name) else { panic!("it is there") };
        for version in &mut definition.spec.versions {
            let schema = version.schema.as_mut().unwrap().open_api_v3_schema.as_mut().unwrap();
            let status = schema.properties.as_mut().unwrap().get_mut("status").unwrap();
            status.properties.as_mut().unwrap().remove("skippedRuns");
        }
    };
    let words =
        ["advancedcronjobs.apps.kruise.io is from another", "status.skippedRuns", "--force-conflicts"];
    finds(foreign, Stage::After, Verdict::Bad, &words);
    finds(foreign, Stage::Before, Verdict::Warning, &["stop the other manager"]);
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
fn another_manager_and_its_daemons_are_recognised() {
    let running = |facts: &mut Facts| {
        facts.rival_lease = Ok(SeenLease { now: Some(lease("m", "x")), has_changed: true });
    };
    finds(running, Stage::Before, Verdict::Bad, &["OpenKruise's manager is running", "--replicas 0"]);
    let stopped = |facts: &mut Facts| {
        facts.rival_lease = Ok(SeenLease { now: Some(lease("m", "x")), has_changed: false });
    };
    let mut facts = healthy();
    stopped(&mut facts);
    assert_eq!(found(&facts, Stage::After), []);
    let daemons = |facts: &mut Facts| {
        let set = json!({"metadata": {"name": "kruise-daemon", "namespace": "kruise-system"}});
        facts.rival_daemons = Ok(vec![read(set)]);
    };
    finds(
        daemons,
        Stage::After,
        Verdict::Warning,
        &["kubectl -n kruise-system delete daemonset kruise-daemon"],
    );
}

#[test]
fn a_controller_that_is_missing_or_not_ready_is_reported() {
    let missing = |facts: &mut Facts| facts.deployments = Ok(Vec::new());
    finds(missing, Stage::After, Verdict::Bad, &["no controller is installed"]);
    let ready = |replicas: i32| {
        move |facts: &mut Facts| {
            let Ok(deployments) = &mut facts.deployments else { panic!("they are there") };
            let conditions = json!([{"type": "Available", "status": "False", "message": "image not found"}]);
            deployments[0].status = Some(read(json!({"readyReplicas": replicas, "conditions": conditions})));
        }
    };
    finds(ready(0), Stage::After, Verdict::Bad, &["0 of 2 pods", "image not found", "describe pods"]);
    finds(ready(1), Stage::After, Verdict::Warning, &["1 of 2 pods"]);
}

#[test]
fn a_missing_or_silent_leader_is_reported() {
    let free =
        |facts: &mut Facts| facts.lease = Ok(SeenLease { now: Some(lease("l", "")), has_changed: false });
    finds(free, Stage::After, Verdict::Bad, &["no controller leads", "logs"]);
    let silent = |facts: &mut Facts| {
        facts.lease = Ok(SeenLease { now: Some(lease("l", "pod-1")), has_changed: false });
    };
    finds(silent, Stage::After, Verdict::Bad, &["pod-1 holds the Lease and does not renew it"]);
    let good = judge(&healthy(), Stage::After).findings;
    assert!(good.iter().any(|finding| finding.what == "pod-1 has been leading for 60m"), "{good:?}");
}

#[test]
fn a_policy_that_is_missing_or_does_not_deny_is_reported() {
    let missing = |facts: &mut Facts| facts.policies = Ok(Policies::default());
    finds(missing, Stage::After, Verdict::Bad, &["agent-own-node is missing", "docs/install.md"]);
    let lax = |facts: &mut Facts| {
        let Ok(policies) = &mut facts.policies else { panic!("they are there") };
        policies.bindings[0].spec.as_mut().unwrap().validation_actions = Some(vec!["Audit".to_owned()]);
    };
    finds(lax, Stage::After, Verdict::Bad, &["no binding enforces it with Deny"]);
}

#[test]
fn metrics_that_cannot_be_reached_are_a_warning() {
    let unreachable = |facts: &mut Facts| {
        facts.scrapes.insert("pod-1".to_owned(), Err("i/o timeout".to_owned()));
    };
    finds(unreachable, Stage::After, Verdict::Warning, &["metrics of pod-1", "i/o timeout"]);
}

#[test]
fn without_agents_nothing_is_pulled() {
    let none = |facts: &mut Facts| facts.daemon_sets = Ok(Vec::new());
    finds(none, Stage::After, Verdict::Bad, &["no agents are installed"]);
}

#[test]
fn an_agent_that_is_not_ready_is_reported_in_its_own_words() {
    let refused = |facts: &mut Facts| {
        facts.pods = Ok(vec![agent("n1", true), agent("n2", false)]);
        let words = "runtime: the container runtime does not answer: permission denied";
        facts.probes.insert("agent-n2".to_owned(), Ok(words.to_owned()));
    };
    finds(
        refused,
        Stage::After,
        Verdict::Warning,
        &["no agent is ready on n2: runtime: ", "permission denied"],
    );
}

#[test]
fn an_agent_that_cannot_start_is_reported_in_the_kubelets_words() {
    let waiting = |facts: &mut Facts| {
        let waiting = json!({"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}});
        let container = json!({"name": "agent", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": waiting});
        let pod = json!({"metadata": {"name": "a"}, "spec": {"nodeName": "n2", "containers": []},
            "status": {"containerStatuses": [container]}});
        facts.pods = Ok(vec![agent("n1", true), read(pod)]);
    };
    finds(waiting, Stage::After, Verdict::Warning, &["on n2: ImagePullBackOff: no such image"]);
}

#[test]
fn taints_that_keep_agents_away_are_named() {
    let tainted = |facts: &mut Facts| {
        let taints = json!([{"key": "gpu", "effect": "NoSchedule"}]);
        facts.nodes = Ok(vec![node("n1", &json!({}), &json!([])), node("n2", &json!({}), &taints)]);
        facts.pods = Ok(vec![agent("n1", true)]);
        facts.daemon_sets = Ok(vec![daemon_set(&json!({"tolerations": []}))]);
    };
    finds(tainted, Stage::After, Verdict::Warning, &["on n2: taint gpu:NoSchedule is not tolerated"]);
}

#[test]
fn nodes_that_no_agent_is_meant_for_are_counted_and_no_fault() {
    let mut facts = healthy();
    let windows = json!({"kubernetes.io/os": "windows"});
    facts.nodes = Ok(vec![
        node("n1", &json!({"agents": "yes"}), &json!([])),
        node("n2", &windows, &json!([])),
        node("n3", &json!({}), &json!([])),
    ]);
    facts.pods = Ok(vec![agent("n1", true)]);
    facts.daemon_sets = Ok(vec![daemon_set(&json!({"nodeSelector": {"agents": "yes"}}))]);
    facts.node_images = Ok(vec!["n1".to_owned()]);
    assert_eq!(found(&facts, Stage::After), []);
    let found: Vec<String> =
        judge(&facts, Stage::After).findings.into_iter().map(|finding| finding.what).collect();
    assert!(found.contains(&"1 of 1 agent are ready".to_owned()), "{found:?}");
    assert!(
        found.contains(
            &"1 node without an agent (operating system windows): n2; no job counts them".to_owned()
        ),
        "{found:?}"
    );
    assert!(
        found.contains(&"1 node without an agent (no label agents=yes): n3; no job counts them".to_owned()),
        "{found:?}"
    );
}

#[test]
fn node_images_that_nobody_reads_are_named() {
    let idle = |facts: &mut Facts| facts.node_images = Ok(vec!["n1".to_owned(), "gone".to_owned()]);
    finds(idle, Stage::After, Verdict::Warning, &["no agent: gone"]);
}

#[test]
fn half_configured_plugins_are_reported() {
    let half = |facts: &mut Facts| {
        let args = json!(["agent", "--image-credential-provider-config=/etc/x"]);
        facts.daemon_sets = Ok(vec![daemon_set(&json!({"containers": [{"name": "agent", "args": args}]}))]);
    };
    finds(half, Stage::After, Verdict::Bad, &["only half configured", "--image-credential-provider-bin-dir"]);
}

#[test]
fn an_unreadable_fact_is_a_warning_and_hides_nothing_else() {
    let forbidden = |facts: &mut Facts| facts.webhooks = Err("you may not list them".to_owned());
    finds(forbidden, Stage::After, Verdict::Warning, &["webhooks could not be read: you may not list them"]);
}
