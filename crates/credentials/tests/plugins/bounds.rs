//! Plugins that hang, talk too much, or leave processes behind.

use std::path::Path;
use std::time::Duration;

use super::bench::{self, Bench, RESPONSE};

/// Leaves a child behind that holds the pipes, and writes its process id.
const HANGS: &str = "sleep 1000 & echo $! >child; echo $$ >leader; wait";

fn is_running(bench: &Bench, file: &str) -> bool {
    let id = bench.read(file);
    let state = std::fs::read_to_string(format!("/proc/{}/stat", id.trim())).unwrap_or_default();
    // A zombie has ended and only waits for its parent.
    Path::new("/proc").join(id.trim()).exists() && !state.is_empty() && !state.contains(") Z ")
}

async fn until(mut happened: impl FnMut() -> bool) {
    let patience = tokio::time::timeout(Duration::from_secs(20), async {
        while !happened() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    patience.await.expect("it happens within 20 seconds");
}

#[tokio::test]
async fn a_plugin_that_hangs_is_stopped_with_everything_it_started() {
    let bench = Bench::new(HANGS);
    let plugins = bench.plugins_within(Duration::from_secs(1));
    let found = bench::ask(&plugins, "reg.example/app").await;
    assert_eq!(found.problems, ["credential plugin plugin: it did not answer within 1 s and was stopped"]);
    assert!(!bench.read("child").is_empty() && !bench.read("leader").is_empty());
    until(|| !is_running(&bench, "child") && !is_running(&bench, "leader")).await;
}

#[tokio::test]
async fn a_plugin_that_nobody_waits_for_is_stopped_with_everything_it_started() {
    let bench = Bench::new(HANGS);
    let plugins = bench.plugins();
    let asking = tokio::spawn(async move { bench::ask(&plugins, "reg.example/app").await });
    until(|| bench.lines("leader") == 1).await;
    assert!(is_running(&bench, "child"));
    asking.abort();
    until(|| !is_running(&bench, "child") && !is_running(&bench, "leader")).await;
}

#[tokio::test]
async fn a_plugin_that_answers_without_end_is_stopped() {
    let bench = Bench::new("echo $$ >leader; exec cat /dev/zero");
    let found = bench::ask(&bench.plugins(), "reg.example/app").await;
    assert_eq!(
        found.problems,
        ["credential plugin plugin: it answered more than 1048576 bytes and was stopped"]
    );
    until(|| !is_running(&bench, "leader")).await;
}

#[tokio::test]
async fn a_plugin_may_complain_at_length_and_leave_its_request_unread() {
    let bench = Bench::new(&format!("exec <&-; head -c 1000000 /dev/zero >&2; echo '{RESPONSE}'"));
    let found = bench::ask(&bench.plugins(), "reg.example/app").await;
    assert_eq!((found.credentials.len(), found.problems.len()), (1, 0));
}

#[tokio::test]
async fn a_plugin_whose_libraries_are_missing_is_refused_with_that_reason() {
    let bench = Bench::new("true");
    let plugin = bench.path("plugin");
    std::fs::remove_file(&plugin).unwrap();
    // Written by another process: a file that this process writes may be busy while another test starts something.
    let make = "sed s/ld-linux/ld-never/ /bin/sh >plugin && chmod 755 plugin";
    let elsewhere = std::process::Command::new("sh").args(["-c", make]).current_dir(bench.path("")).status();
    assert!(elsewhere.unwrap().success());
    let problem = bench::ask(&bench.plugins(), "reg.example/app").await.problems.concat();
    assert!(problem.contains("it needs /lib") && problem.contains("ld-never"), "{problem}");
    assert!(problem.ends_with("a plugin has to be one statically linked program"), "{problem}");
}
