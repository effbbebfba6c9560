//! Agents that are missing or not ready, nodes that have none, NodeImages that nobody reads, plugins.

use super::*;

#[test]
fn without_agents_nothing_is_pulled() {
    let none = |facts: &mut Facts| facts.daemon_sets = Ok(Vec::new());
    finds(none, Stage::After, Verdict::Bad, &["no agents are installed"]);
}

#[test]
fn an_agent_that_is_not_ready_is_reported_in_its_own_words() {
    let answers = |words: &'static str| {
        move |facts: &mut Facts| {
            facts.pods = Ok(vec![agent("n1", true), agent("n2", false)]);
            facts.probes.insert("agent-n2".to_owned(), Ok(words.to_owned()));
        }
    };
    // A socket that refuses it, and a node without a runtime.
    for (words, part) in [
        ("runtime: the container runtime does not answer: permission denied", "permission denied"),
        (
            "runtime: the container runtime does not answer: no container runtime below /host/run: none",
            "no container runtime below /host/run",
        ),
    ] {
        let parts = [
            "1 of 2 agents are ready; no agent is ready on n2: runtime: ",
            part,
            "app.kubernetes.io/name=prewarm-agent",
        ];
        finds(answers(words), Stage::After, Verdict::Warning, &parts);
    }
    let mut facts = healthy();
    facts.pods = Ok(vec![agent("n1", false), agent("n2", false)]);
    assert_eq!(found(&facts, Stage::After)[0].0, Verdict::Bad, "nothing is pulled anywhere");
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
        let args = [&AGENT_ARGUMENTS[..], &["--image-credential-provider-config=/etc/x"]].concat();
        facts.daemon_sets = Ok(vec![daemon_set(&json!({"containers": [{"name": "agent", "args": args}]}))]);
    };
    finds(half, Stage::After, Verdict::Bad, &["only half configured", "--image-credential-provider-bin-dir"]);
}

#[test]
fn image_prefetches_without_a_directory_of_mirrors_are_a_warning() {
    let without = |facts: &mut Facts| {
        let container = json!({"name": "agent", "args": ["agent"]});
        facts.daemon_sets = Ok(vec![daemon_set(&json!({"containers": [container]}))]);
    };
    finds(
        without,
        Stage::After,
        Verdict::Warning,
        &["do not know the nodes' mirrors", "mirrors.hostDirectory"],
    );
    let mut facts = healthy();
    without(&mut facts);
    for kind in ["imageprefetches", "nodeimagesets"] {
        facts.definitions.insert(format!("{kind}.ofen.cybozu.io"), Ok(None));
    }
    assert_eq!(found(&facts, Stage::After), [], "nobody can make one");
    let mut facts = healthy();
    without(&mut facts);
    for node in facts.nodes.iter_mut().flatten() {
        let info = node.status.as_mut().unwrap().node_info.as_mut().unwrap();
        info.container_runtime_version = "cri-o://1.34.0".to_owned();
    }
    assert_eq!(found(&facts, Stage::After), [], "the directory is containerd's");
}

#[test]
fn plugins_that_keep_agents_from_starting_are_reported_in_their_words() {
    let words = format!(
        "{{\"level\":\"INFO\"}}\nerror: {}: cannot find the plugin x\n",
        crate::agent::LOADING_PLUGINS
    );
    let ended = json!({"terminated": {"exitCode": 2, "message": words}});
    let waiting = json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}});
    let container = json!({"name": "agent", "image": "", "imageID": "", "ready": false, "restartCount": 3,
        "state": waiting, "lastState": ended});
    let pod = json!({"metadata": {"name": "a"}, "spec": {"nodeName": "n2", "containers": []},
        "status": {"containerStatuses": [container]}});
    let mut facts = healthy();
    facts.pods = Ok(vec![agent("n1", true), read(pod)]);
    let found = found(&facts, Stage::After);
    assert_eq!(found.len(), 2, "{found:?}");
    let reason = "error: loading the credential providers: cannot find the plugin x";
    assert!(found[0].1.contains(&format!("on n2: CrashLoopBackOff: {reason}")), "{found:?}");
    assert_eq!(found[1].0, Verdict::Bad);
    assert!(found[1].1.contains(&format!("credential plugins: {reason}")), "{found:?}");
    assert!(found[1].1.contains("correct credentialProvider.binDirectory"), "{found:?}");
}
