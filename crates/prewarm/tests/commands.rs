//! The small commands and the help, run as a user would run them.

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
fn the_arguments_of_shipped_pods_are_understood() {
    let install = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/install.yaml");
    let install = std::fs::read_to_string(install).unwrap();
    let mut seen = Vec::new();
    for document in install.split("\n---\n") {
        let object: serde_json::Value = serde_saphyr::from_str(document).unwrap();
        for container in object["spec"]["template"]["spec"]["containers"].as_array().into_iter().flatten() {
            let arguments = container["args"].as_array().unwrap();
            let mut arguments: Vec<&str> = arguments.iter().map(|one| one.as_str().unwrap()).collect();
            seen.push(arguments[0].to_owned());
            // Arguments before it are parsed first, and refused if they are wrong.
            arguments.push("--help");
            let mut program = Command::new(env!("CARGO_BIN_EXE_prewarm"));
            let output = program.args(&arguments).env("NODE_NAME", "node-1").output().unwrap();
            assert!(output.status.success(), "{arguments:?}: {}", text(output.stderr));
        }
    }
    seen.sort();
    assert_eq!(seen, ["agent", "controller"]);
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
        &["schedule", "--help"],
    ] {
        // The help would show the values of variables, and a pod has some of them.
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

fn schedule(arguments: &[&str]) -> (String, String, Option<i32>) {
    let output = prewarm(&[&["schedule"], arguments].concat());
    (text(output.stdout), text(output.stderr), output.status.code())
}

#[test]
fn the_next_runs_are_a_table_and_for_programs_a_list_of_times() {
    let line = ["0 2 * * 1-5", "--zone", "Europe/Berlin", "--from", "2026-10-23T10:00:00+02:00"];
    let (table, stderr, code) = schedule(&[&line[..], &["--count", "2"]].concat());
    insta::assert_snapshot!(table, @r"
    DAY   TIME                        ZONE            UTC                    IN
    Mon   2026-10-26T02:00:00+01:00   Europe/Berlin   2026-10-26T01:00:00Z   2d17h
    Tue   2026-10-27T02:00:00+01:00   Europe/Berlin   2026-10-27T01:00:00Z   3d17h
    ");
    assert_eq!((stderr.as_str(), code), ("", Some(0)));
    let (json, stderr, code) = schedule(&[&line[..], &["--count", "2", "-o", "json"]].concat());
    let parsed: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(parsed, serde_json::json!({"next": ["2026-10-26T01:00:00Z", "2026-10-27T01:00:00Z"]}));
    assert_eq!((stderr.as_str(), code), ("", Some(0)));
    let (names, _, _) = schedule(&[&line[..], &["--count", "1", "-o", "name"]].concat());
    assert_eq!(names, "2026-10-26T01:00:00Z\n");
    let (five, _, _) = schedule(&["@hourly"]);
    assert_eq!(five.lines().count(), 6);
}

#[test]
fn a_schedule_that_never_comes_is_an_empty_list_and_a_sentence() {
    let line = ["0 0 31 2 *", "--from", "2026-11-16T09:00:00Z"];
    let message = "There is no time within five years after 2026-11-16T09:00:00Z; check day and month.\n";
    assert_eq!(schedule(&line), (String::new(), message.to_owned(), Some(0)));
    let (json, stderr, code) = schedule(&[&line[..], &["-o", "json"]].concat());
    assert_eq!((json.as_str(), stderr.as_str(), code), ("{\n  \"next\": []\n}\n", "", Some(0)));
}

#[test]
fn a_line_that_is_no_schedule_is_printed_with_its_place_marked() {
    for (line, marked) in [
        ("60 2 * * *", "60 is out of range: a minute is from 0 to 59\n  60 2 * * *\n  ^^\n"),
        ("0 2 * *", "day of week), not 4\n  0 2 * *\n  ^^^^^^^\n"),
        ("0 2 * * MON-FRY", "\"FRY\" is no day of week\n  0 2 * * MON-FRY\n          ^^^^^^^\n"),
        ("@every day", "write a duration such as 90m or 1h30m\n  @every day\n         ^^^\n"),
        ("-5 2 * * *", "\"\" is no minute\n  -5 2 * * *\n  ^^\n"),
        ("@nightly", "@every with a duration\n  @nightly\n  ^^^^^^^^\n"),
        ("", "error: there is no schedule\n"),
    ] {
        for format in ["table", "json"] {
            let (stdout, stderr, code) = schedule(&[line, "-o", format]);
            assert!(stderr.starts_with("error: ") && stderr.ends_with(marked), "{stderr}");
            assert_eq!((stdout.as_str(), code), ("", Some(1)));
        }
    }
}

#[test]
fn a_zone_that_is_unknown_or_given_twice_is_refused() {
    let (_, stderr, code) = schedule(&["0 2 * * *", "--zone", "Mars/Olympus"]);
    let message =
        "error: there is no time zone \"Mars/Olympus\"; write its IANA name, such as Europe/Berlin or UTC\n";
    assert_eq!((stderr.as_str(), code), (message, Some(1)));
    let (_, stderr, code) = schedule(&["TZ=UTC 0 2 * * *", "--zone", "UTC"]);
    assert!(
        stderr.starts_with("error: the zone is given twice: remove --zone or the TZ= prefix"),
        "{stderr}"
    );
    assert_eq!(code, Some(1));
}

#[test]
fn flags_of_schedule_that_cannot_be_read_are_refused_with_an_example() {
    for (arguments, example) in [
        (["--count", "0"], "1..=1000"),
        (["--count", "1001"], "1..=1000"),
        (["--from", "tomorrow"], "such as 2026-11-16T09:00:00Z"),
        (["--output", "xml"], "table, wide, json"),
    ] {
        let (_, stderr, code) = schedule(&[&["@daily"], &arguments[..]].concat());
        assert!(stderr.contains(example), "{arguments:?}: {stderr}");
        assert_eq!(code, Some(2));
    }
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
