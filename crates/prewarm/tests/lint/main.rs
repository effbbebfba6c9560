//! Runs the compiled `prewarm lint` on a folder of common mistakes.

mod hostile;
mod sources;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// The result of a run of the program.
struct Run {
    stdout: String,
    stderr: String,
    code: Option<i32>,
}

/// The program, started beside the folders of manifests so that paths are the same everywhere.
fn prewarm(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_prewarm"));
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")).args(arguments);
    command
}

fn lint(arguments: &[&str]) -> Run {
    lint_with_stdin(arguments, b"")
}

fn lint_with_stdin(arguments: &[&str], stdin: &[u8]) -> Run {
    let mut command = prewarm(&[&["lint"], arguments].concat());
    run_with_stdin(&mut command, stdin)
}

fn run_with_stdin(command: &mut Command, stdin: &[u8]) -> Run {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // The program reads no more than its limit and may close the pipe before everything is written.
    let _ = child.stdin.take().expect("a pipe").write_all(stdin);
    let output = child.wait_with_output().expect("the program ends");
    Run {
        stdout: String::from_utf8(output.stdout).expect("the program prints UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("the program prints UTF-8"),
        code: output.status.code(),
    }
}

#[test]
fn common_mistakes_are_explained() {
    let run = lint(&["mistakes"]);
    insta::assert_snapshot!("mistakes", run.stdout + &run.stderr);
    assert_eq!(run.code, Some(1));
}

#[test]
fn no_mistake_goes_unnoticed() {
    let run = lint(&["--output", "json", "mistakes"]);
    let report: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    let findings = report["findings"].as_array().unwrap();
    let errors = findings.iter().filter(|finding| finding["severity"] == "error");
    let noticed: BTreeSet<&str> = errors.map(|finding| finding["file"].as_str().unwrap()).collect();

    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mistakes");
    let files =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let files: Vec<String> = files.map(|name| format!("mistakes/{name}")).collect();
    assert_eq!(noticed, files.iter().map(String::as_str).collect());
}

#[test]
fn good_files_are_silent_but_for_the_summary() {
    let run = lint(&["good"]);
    assert_eq!(run.stdout, "");
    assert_eq!(run.stderr, "8 objects checked, no errors\n");
    assert_eq!(run.code, Some(0));
}

#[test]
fn objects_of_other_kinds_are_passed_over_with_a_note() {
    let text = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: 1, a: 2}\n";
    let run = lint_with_stdin(&["-"], text);
    assert_eq!(run.stdout, "<stdin>:1:1: note: v1 ConfigMap is not a kind of Prewarm's, passed over\n");
    assert_eq!(run.stderr, "0 objects checked, 1 passed over, no errors\n");
    assert_eq!(run.code, Some(0));
}

#[test]
fn an_object_that_is_in_a_file_twice_is_noted() {
    let object =
        "apiVersion: apps.kruise.io/v1beta1\nkind: ImagePullJob\nmetadata: {name: a}\nspec: {image: nginx}\n";
    let run = lint_with_stdin(&["-"], format!("{object}---\n{object}").as_bytes());
    assert_eq!(run.stdout, "<stdin>:6:1: note: ImagePullJob a is already in line 1; the later one wins\n");
    assert_eq!(run.code, Some(0));
}

#[test]
fn json_output_is_one_document_with_places_and_names() {
    let run = lint(&["-o", "json", "mistakes/item_of_a_list.yaml", "mistakes/tabs.yaml"]);
    insta::assert_snapshot!("json_output", run.stdout);
    assert_eq!(run.stderr, "1 object checked, 1 passed over, 2 errors in 2 files\n");
    assert_eq!(run.code, Some(1));
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let objects = "---\napiVersion: apps.kruise.io/v1beta1\nkind: ImagePullJob\n".repeat(400);
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.yaml", "b.yaml", "c.yaml"] {
        std::fs::write(folder.path().join(name), &objects).unwrap();
    }
    let mut command = prewarm(&["lint", folder.path().to_str().unwrap()]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "1200 objects checked, 2400 errors in 3 files\n");
    assert_eq!(output.status.code(), Some(1));
}
