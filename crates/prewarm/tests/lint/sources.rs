//! Which files are read, and the messages about those that cannot be read.

use std::fs;
use std::path::Path;

use crate::{lint, lint_with_stdin};

const GOOD: &str =
    "apiVersion: apps.kruise.io/v1beta1\nkind: ImagePullJob\nmetadata: {name: a}\nspec: {image: nginx}\n";
const BAD: &str =
    "apiVersion: apps.kruise.io/v1beta1\nkind: ImagePullJob\nmetadata: {name: a}\nspec: {image: ''}\n";

fn files_with_findings(folder: &Path, arguments: &[&str]) -> Vec<String> {
    let run = lint(arguments);
    let prefix = format!("{}/", folder.display());
    run.stdout
        .lines()
        .map(|line| line.trim_start_matches(&prefix).split(':').next().unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn a_folder_is_read_in_sorted_order_with_what_is_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    fs::create_dir_all(root.join("b/deeper")).unwrap();
    fs::create_dir_all(root.join(".git")).unwrap();
    for name in ["c.yml", "a.yaml", "b/deeper/z.JSON", ".hidden.yaml", ".git/a.yaml", "readme.md"] {
        fs::write(root.join(name), BAD).unwrap();
    }
    #[cfg(unix)]
    std::os::unix::fs::symlink(root, root.join("b/again")).unwrap();
    let named = root.to_str().unwrap();
    assert_eq!(files_with_findings(root, &[named]), ["a.yaml", "b/deeper/z.JSON", "c.yml"]);
    assert_eq!(files_with_findings(root, &["-f", &format!("{named}/readme.md")]), ["readme.md"]);
}

#[test]
fn a_file_that_is_named_twice_is_checked_once() {
    let run = lint(&["good/image_pull_job.yaml", "good", "-f", "good/image_pull_job.yaml"]);
    assert_eq!(run.stderr, "8 objects checked, no errors\n");
}

#[test]
fn standard_input_has_a_name_of_its_own() {
    let run = lint_with_stdin(&["-"], BAD.as_bytes());
    assert!(run.stdout.starts_with("<stdin>:4:8 spec.image: "), "{}", run.stdout);
    assert_eq!(run.code, Some(1));
    assert_eq!(lint_with_stdin(&["-"], GOOD.as_bytes()).code, Some(0));
}

#[test]
fn a_missing_file_is_named_and_does_not_hide_the_others() {
    let run = lint(&["nowhere.yaml", "mistakes/percent_parallelism.yaml"]);
    assert!(run.stdout.starts_with("mistakes/percent_parallelism.yaml:7:3 "), "{}", run.stdout);
    assert_eq!(
        run.stderr,
        "error: nowhere.yaml: there is no such file or folder; check the spelling, or use `-` to read from standard input\n\
         1 object checked, 1 error in 1 file\n"
    );
    assert_eq!(run.code, Some(2));
}

#[test]
fn a_folder_without_manifests_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let run = lint(&[folder.path().to_str().unwrap()]);
    assert!(run.stderr.contains("no .yaml, .yml or .json file is in this folder"), "{}", run.stderr);
    assert_eq!(run.code, Some(2));
}

#[test]
fn usage_errors_have_an_exit_code_of_their_own() {
    assert_eq!(lint(&[]).code, Some(2));
    assert_eq!(lint(&["--output", "xml", "good"]).code, Some(2));
}

#[test]
fn text_from_windows_is_read_or_explained() {
    let windows = format!("\u{feff}{}", BAD.replace('\n', "\r\n"));
    let run = lint_with_stdin(&["-"], windows.as_bytes());
    assert!(run.stdout.starts_with("<stdin>:4:8 spec.image: "), "{}", run.stdout);

    let utf_16: Vec<u8> = windows.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let run = lint_with_stdin(&["-"], &utf_16);
    assert_eq!(
        run.stdout,
        "<stdin>:1:1: the file is UTF-16, as PowerShell's `>` writes it; save it as UTF-8\n"
    );
}
