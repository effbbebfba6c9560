//! The small commands and the help, driven as a person would.

use std::process::{Command, Output};

fn prewarm(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_prewarm")).args(arguments).output().expect("the program starts")
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("the program prints UTF-8")
}

#[test]
fn the_version_is_printed_alone() {
    let output = prewarm(&["version"]);
    assert_eq!(text(output.stdout), concat!(env!("CARGO_PKG_VERSION"), "\n"));
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn an_unknown_kind_of_crd_is_a_usage_error() {
    let output = prewarm(&["crds", "pods"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(output.stderr).starts_with("error: no CRD is named \"pods\"; there are imagepulljobs, "));
}

#[test]
fn the_printed_crds_are_objects_that_lint_can_read_and_pass_over() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("crds.yaml");
    std::fs::write(&file, prewarm(&["crds"]).stdout).unwrap();
    let output = prewarm(&["lint", file.to_str().unwrap()]);
    assert_eq!(text(output.stderr), "0 objects checked, 7 passed over, no errors\n");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn the_help_reads_like_kubectls() {
    for arguments in [
        ["--help"].as_slice(),
        &["lint", "--help"],
        &["crds", "--help"],
        &["controller", "--help"],
        &["demo", "--help"],
        &["pull", "--help"],
        &["status", "--help"],
        &["explain", "--help"],
        &["nodes", "--help"],
        &["images", "--help"],
    ] {
        // Values of variables would show, and a pod has some of them.
        let mut help = Command::new(env!("CARGO_BIN_EXE_prewarm"));
        let output = help.args(arguments).env_clear().output().expect("the program starts");
        insta::assert_snapshot!(
            format!("help_{}", arguments[0].trim_start_matches('-')),
            text(output.stdout)
        );
    }
}

/// kruise T138: the node's name comes from the flag or from `NODE_NAME`, and without it nothing starts.
#[test]
fn an_agent_without_a_node_says_which_flag_is_missing() {
    let output =
        Command::new(env!("CARGO_BIN_EXE_prewarm")).arg("agent").env_remove("NODE_NAME").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(output.stderr).contains("--node-name <NAME>"));
}

#[test]
fn an_agent_without_a_cluster_says_how_to_name_one() {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_prewarm"))
        .arg("agent")
        .env_clear()
        .env("NODE_NAME", "worker-1")
        .env("HOME", folder.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let complaint = text(output.stderr);
    assert!(complaint.contains("set KUBECONFIG, or give --kubeconfig"), "{complaint}");
}

#[test]
fn a_controller_without_a_cluster_says_how_to_name_one() {
    let folder = tempfile::tempdir().unwrap();
    let mut controller = Command::new(env!("CARGO_BIN_EXE_prewarm"));
    let output = controller.arg("controller").env_clear().env("HOME", folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let complaint = text(output.stderr);
    assert!(complaint.contains("set KUBECONFIG, or give --kubeconfig"), "{complaint}");
}

#[test]
fn flags_of_the_controller_that_cannot_be_read_are_refused_with_an_example() {
    for (arguments, example) in [
        (["--leader-elect", "perhaps"], "[possible values: true, false]"),
        (["--default-ttlseconds-for-always-nodeimage", "2678401"], "0..=2678400"),
        (["--default-ttlseconds-for-always-nodeimage", "5m"], "invalid digit"),
        (["--kube-api-qps", "0"], "1..=100000"),
        (["--kube-api-burst", "-1"], "unexpected argument"),
        (["--concurrent-writes", "257"], "1..=256"),
        (["--listen", "here"], "invalid socket address"),
        (["--log-format", "xml"], "human or json"),
    ] {
        let output = prewarm(&[&["controller"], &arguments[..]].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let complaint = text(output.stderr);
        assert!(complaint.contains(example), "{arguments:?}: {complaint}");
    }
}

#[test]
fn flags_of_the_agent_that_cannot_be_read_are_refused_with_an_example() {
    for (arguments, example) in [
        (["--min-free", "lots"], "such as 20%"),
        (["--drain", "soon"], "like 10s"),
        (["--max-parallel-pulls", "0"], "1..=64"),
        (["--log-format", "xml"], "human or json"),
        (["--listen", "here"], "invalid socket address"),
    ] {
        let output = prewarm(&[&["agent", "--node-name", "worker-1"], &arguments[..]].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let complaint = text(output.stderr);
        assert!(complaint.contains(example), "{arguments:?}: {complaint}");
    }
}
