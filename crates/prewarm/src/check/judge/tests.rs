mod agents;
mod ofen;
mod openkruise;
mod policies;

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
const AGENT_ARGUMENTS: [&str; 2] = ["agent", "--containerd-host-dir=/etc/containerd/certs.d"];

fn read<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn node<T: DeserializeOwned>(name: &str, labels: &Value, taints: &Value) -> T {
    let info = json!({"containerRuntimeVersion": "containerd://2.2.0", "architecture": "", "bootID": "", "kernelVersion": "",
        "kubeProxyVersion": "", "kubeletVersion": "", "machineID": "", "operatingSystem": "", "osImage": "", "systemUUID": ""});
    let conditions = json!([{"type": "Ready", "status": "True"}]);
    let status = json!({"nodeInfo": info, "conditions": conditions});
    read(json!({"metadata": {"name": name, "labels": labels}, "spec": {"taints": taints}, "status": status}))
}

fn agent<T: DeserializeOwned>(node: &str, is_ready: bool) -> T {
    let condition = json!({"type": "Ready", "status": if is_ready { "True" } else { "False" }});
    read(json!({"metadata": {"name": format!("agent-{node}")}, "spec": {"nodeName": node, "containers": []},
        "status": {"conditions": [condition]}}))
}

fn daemon_set<T: DeserializeOwned>(template: &Value) -> T {
    let mut spec = json!({"containers": [{"name": "agent", "args": AGENT_ARGUMENTS}], "tolerations": [{"operator": "Exists"}]});
    json_patch::merge(&mut spec, template);
    read(json!({"metadata": {"name": "prewarm-agent", "namespace": "prewarm-system"},
        "spec": {"selector": {}, "template": {"spec": spec}}}))
}

fn lease<T: DeserializeOwned>(name: &str, holder: &str) -> T {
    let spec = json!({"holderIdentity": holder, "acquireTime": "2026-11-18T07:00:00.000000Z",
        "renewTime": "2026-11-18T07:59:58.000000Z"});
    read(json!({"metadata": {"name": name}, "spec": spec}))
}

fn role<T: DeserializeOwned>(name: &str, resources: &[&str]) -> T {
    let rule = json!({"apiGroups": ["apps.kruise.io"], "resources": resources, "verbs": ["get"]});
    read(json!({"metadata": {"name": name}, "rules": [rule]}))
}

/// A faultless installation on two nodes.
fn healthy() -> Facts {
    let now = NOW.parse().unwrap();
    let policies = ["shop-agent-own-node", "shop-agent-own-events"];
    let policy = |name| read(json!({"metadata": {"name": name}}));
    let binding = |name| {
        read(json!({"metadata": {"name": "b"}, "spec": {"policyName": name, "validationActions": ["Deny"]}}))
    };
    let deployment = json!({"metadata": {"name": "prewarm-controller", "namespace": "prewarm-system"},
        "spec": {"replicas": 2, "selector": {}, "template": {}}, "status": {"readyReplicas": 2}});
    let namespace = json!({"metadata": {"name": "prewarm-system",
        "labels": {"pod-security.kubernetes.io/enforce": "privileged"}}});
    Facts {
        clocks: (now, Some(now)),
        version: Ok("1.36".to_owned()),
        rights: vec![Right { what: "create daemonsets".to_owned(), is_allowed: Ok(true) }],
        definitions: crd::all().iter().map(|crd| (crd.name_any(), Ok(Some(crd.clone())))).collect(),
        webhooks: Ok(Vec::new()),
        policies: Ok(Policies {
            policies: policies.map(policy).to_vec(),
            bindings: policies.map(binding).to_vec(),
        }),
        allow_list: Ok(None),
        installed_in: "prewarm-system".to_owned(),
        agents_in: "prewarm-system".to_owned(),
        roles: Ok(vec![role(
            "all",
            &["imagelistpulljobs", "broadcastjobs", "advancedcronjobs", "imageprefetches"],
        )]),
        namespace: Ok(Some(read(namespace))),
        lease: Ok(SeenLease { now: Some(lease("prewarm-controller", "pod-1")), has_changed: true }),
        rival_lease: Ok(SeenLease { now: None, has_changed: false }),
        rival_deployment: Ok(None),
        rival_daemons: Ok(Vec::new()),
        ofen_deployments: Ok(Vec::new()),
        ofen_daemons: Ok(Vec::new()),
        ofen_lease: Ok(SeenLease { now: None, has_changed: false }),
        deployments: Ok(vec![read(deployment)]),
        daemon_sets: Ok(vec![daemon_set(&json!({}))]),
        pods: Ok(vec![agent("n1", true), agent("n2", true)]),
        probes: BTreeMap::new(),
        scrapes: BTreeMap::from([("pod-1".to_owned(), Ok(()))]),
        agent_scrapes: BTreeMap::from([("agent-n1".to_owned(), Ok(()))]),
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
    let strange = |facts: &mut Facts| facts.version = Ok("main".to_owned());
    finds(strange, Stage::After, Verdict::Warning, &["\"main\" cannot be read", "1.30 or newer"]);
}

#[test]
fn missing_rights_are_named() {
    let lacking = |facts: &mut Facts| facts.rights[0].is_allowed = Ok(false);
    finds(lacking, Stage::Before, Verdict::Bad, &["you may not create daemonsets"]);
}

#[test]
fn rights_that_cannot_be_asked_for_are_a_warning() {
    let silent = |facts: &mut Facts| facts.rights[0].is_allowed = Err("no such API".to_owned());
    finds(silent, Stage::Before, Verdict::Warning, &["whether you may create daemonsets could not be read"]);
}

#[test]
fn a_namespace_that_refuses_agents_is_reported_with_the_label() {
    let level = |labels: Value| {
        move |facts: &mut Facts| {
            facts.agents_in = "warm".to_owned();
            facts.namespace = Ok(Some(read(json!({"metadata": {"name": "warm", "labels": labels}}))));
        }
    };
    let strict = json!({"pod-security.kubernetes.io/enforce": "restricted"});
    let step = "kubectl label namespace warm --overwrite pod-security.kubernetes.io/enforce=privileged";
    finds(level(strict.clone()), Stage::Before, Verdict::Bad, &["level is restricted", step]);
    finds(level(strict), Stage::After, Verdict::Bad, &["level is restricted", step]);
    finds(level(json!({})), Stage::Before, Verdict::Warning, &["namespace warm has no label", step]);
    let mut facts = healthy();
    level(json!({}))(&mut facts);
    assert_eq!(found(&facts, Stage::After), [], "the agents are there, so the cluster admits them");
}

#[test]
fn a_namespace_that_is_missing_is_a_fault_only_after_the_installation() {
    let missing = |facts: &mut Facts| facts.namespace = Ok(None);
    let mut facts = healthy();
    missing(&mut facts);
    assert_eq!(found(&facts, Stage::Before), []);
    finds(missing, Stage::After, Verdict::Bad, &["prewarm-system does not exist", "--agent-namespace"]);
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
fn a_clock_of_this_machine_that_differs_is_a_warning() {
    let here = |facts: &mut Facts| facts.clocks.0 = "2026-11-18T08:01:00Z".parse().unwrap();
    finds(here, Stage::After, Verdict::Warning, &["differ by 60 s"]);
    let unknown = |facts: &mut Facts| facts.clocks.1 = None;
    finds(unknown, Stage::After, Verdict::Warning, &["the server's clock could not be read"]);
}

#[test]
fn a_nodes_clock_that_is_ahead_or_behind_is_a_warning() {
    let renewed = |time: &'static str| {
        move |facts: &mut Facts| {
            let spec = json!({"renewTime": time});
            facts.heartbeats = Ok(vec![read(json!({"metadata": {"name": "n2"}, "spec": spec}))]);
        }
    };
    let (ahead, behind) = ("2026-11-18T08:05:00.000000Z", "2026-11-18T07:55:00.000000Z");
    finds(renewed(ahead), Stage::After, Verdict::Warning, &["n2 (300 s ahead)", "time server"]);
    finds(renewed(behind), Stage::Before, Verdict::Warning, &["n2 (300 s behind)", "time server"]);
    // The last heartbeat of a dead node is old, whatever its clock says.
    let mut facts = healthy();
    renewed(behind)(&mut facts);
    let Ok(nodes) = &mut facts.nodes else { panic!("they are there") };
    nodes[1].status.as_mut().unwrap().conditions.as_mut().unwrap()[0].status = "Unknown".to_owned();
    assert_eq!(found(&facts, Stage::After), []);
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
fn a_kind_that_is_defined_and_has_no_role_is_a_warning() {
    let without = |facts: &mut Facts| {
        facts.roles = Ok(vec![role("some", &["imagelistpulljobs", "broadcastjobs", "imageprefetches"])]);
    };
    let of_ofen = |facts: &mut Facts| {
        facts.roles = Ok(vec![role("some", &["imagelistpulljobs", "broadcastjobs", "advancedcronjobs"])]);
    };
    finds(of_ofen, Stage::After, Verdict::Warning, &["no role for ImagePrefetch:"]);
    finds(without, Stage::After, Verdict::Warning, &["no role for AdvancedCronJob:", "these `kinds`"]);
    let mut facts = healthy();
    without(&mut facts);
    facts.definitions.insert("advancedcronjobs.apps.kruise.io".to_owned(), Ok(None));
    let found = found(&facts, Stage::After);
    assert!(found.len() == 1 && found[0].1.contains("left out: AdvancedCronJob"), "{found:?}");
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
fn metrics_that_cannot_be_reached_are_a_warning() {
    let unreachable = |facts: &mut Facts| {
        facts.scrapes.insert("pod-1".to_owned(), Err("i/o timeout".to_owned()));
    };
    finds(unreachable, Stage::After, Verdict::Warning, &["metrics of pod-1", "i/o timeout"]);
    let unreachable = |facts: &mut Facts| {
        facts.agent_scrapes.insert("agent-n1".to_owned(), Err("i/o timeout".to_owned()));
    };
    finds(unreachable, Stage::After, Verdict::Warning, &["metrics of agent-n1", "NetworkPolicy"]);
}

/// Makes a fact unreadable for a reason.
type Break = fn(&mut Facts, String);

#[test]
fn an_unreadable_fact_is_a_warning_and_hides_nothing_else() {
    let why = || "you may not read it".to_owned();
    let unreadable: [(&str, Break); 13] = [
        ("the version", |facts, why| facts.version = Err(why)),
        ("namespace prewarm-system", |facts, why| facts.namespace = Err(why)),
        ("the nodes' clocks", |facts, why| facts.heartbeats = Err(why)),
        ("webhooks", |facts, why| facts.webhooks = Err(why)),
        ("OpenKruise's manager", |facts, why| facts.rival_lease = Err(why)),
        ("daemons of others", |facts, why| facts.rival_daemons = Err(why)),
        ("ofen's controller", |facts, why| facts.ofen_deployments = Err(why)),
        ("ofen's controller", |facts, why| facts.ofen_lease = Err(why)),
        ("the controller's roles", |facts, why| facts.roles = Err(why)),
        ("the controller's Deployment", |facts, why| facts.deployments = Err(why)),
        ("the Lease", |facts, why| facts.lease = Err(why)),
        ("the policies", |facts, why| facts.policies = Err(why)),
        ("NodeImages", |facts, why| facts.node_images = Err(why)),
    ];
    for (what, lose) in unreadable {
        let words = format!("{what} could not be read: you may not read it");
        finds(|facts| lose(facts, why()), Stage::After, Verdict::Warning, &[&words, "--context"]);
    }
    let definition = |facts: &mut Facts| {
        facts.definitions.insert("imagepulljobs.apps.kruise.io".to_owned(), Err(why()));
    };
    finds(definition, Stage::After, Verdict::Warning, &["definition imagepulljobs.apps.kruise.io could not"]);
    finds(|facts| facts.pods = Err(why()), Stage::After, Verdict::Warning, &["the agents could not be read"]);
}
