//! The small commands and the help, driven as a person would.

use std::process::{Command, Output};

fn prewarm(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_prewarm")).args(arguments).output().expect("the program starts")
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("the program prints UTF-8")
}

#[test]
fn the_demo_says_honestly_that_it_is_not_there_yet() {
    let output = prewarm(&["demo"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(text(output.stdout), "");
    insta::assert_snapshot!(text(output.stderr));
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
    for arguments in [["--help"].as_slice(), &["lint", "--help"], &["crds", "--help"]] {
        let output = prewarm(arguments);
        insta::assert_snapshot!(
            format!("help_{}", arguments[0].trim_start_matches('-')),
            text(output.stdout)
        );
    }
}
