//! `prewarm check` on the embedded API: how it ends, and how it waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use prewarm_embedded::{Limits, Options, Server, TokioClock};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::{Shell, run};

/// What is asked for the namespace of an installation.
const NAMESPACE: &str = "/api/v1/namespaces/prewarm-system";
/// A namespace that refuses agents.
const STRICT: &str = "/api/v1/namespaces/strict";

/// Runs a command on a cluster whose namespace refuses agents when it is looked at for the first time, and not afterwards.
async fn run_while_it_heals(line: &'static str) -> String {
    let server = Server::new(Arc::new(TokioClock::of_the_machine()), Options::default());
    for (name, level) in [("prewarm-system", "privileged"), ("strict", "restricted")] {
        let labels = json!({"pod-security.kubernetes.io/enforce": level});
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}});
        server.install(&namespace).expect("a namespace");
    }
    let looks = Arc::new(AtomicUsize::new(0));
    let service = tower::ServiceBuilder::new()
        .map_request(move |mut request: http::Request<_>| {
            if request.uri().path() == NAMESPACE && looks.fetch_add(1, Ordering::Relaxed) == 0 {
                *request.uri_mut() = STRICT.parse().expect("a path");
            }
            request
        })
        .service(server);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let serving = prewarm_embedded::serve(service, listener, Limits::default()).expect("it serves");
    let directory = tempfile::tempdir().expect("a directory");
    let kubeconfig = directory.path().join("kubeconfig");
    serving.write_kubeconfig(&kubeconfig).expect("a kubeconfig");
    run(Shell { program: env!("CARGO_BIN_EXE_prewarm").into(), kubeconfig }, line).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_that_finds_a_fault_exits_with_1() {
    let seen = run_while_it_heals("check --pre").await;
    assert!(seen.contains("✗ namespace prewarm-system refuses the agents' pods"), "{seen}");
    assert!(seen.ends_with("[exit 1]\n"), "{seen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_waits_until_nothing_is_wrong() {
    let seen = run_while_it_heals("check --pre --wait 60").await;
    assert!(seen.contains("✓ namespace prewarm-system admits the agents' pods"), "{seen}");
    assert!(!seen.contains("[exit"), "{seen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_is_read_by_programs_too() {
    let seen = run_while_it_heals("check --pre -o json").await;
    let (_, text) = seen.split_once('\n').expect("the command stands above");
    let report: Value = serde_json::from_str(text.trim_end_matches("[exit 1]\n")).expect("JSON");
    let findings = report["findings"].as_array().expect("a list");
    let namespace = findings.iter().find(|one| one["verdict"] == "bad").expect("a fault");
    assert_eq!(namespace["section"], "kubernetes");
    let step =
        "kubectl label namespace prewarm-system --overwrite pod-security.kubernetes.io/enforce=privileged";
    assert_eq!(namespace["next_step"], step);
}
