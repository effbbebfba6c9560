//! The demo, run as a user would run it.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use k8s_openapi::api::core::v1::Node;
use kube::api::ListParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use prewarm_api::kruise::NodeImage;
use rustix::process::{Pid, Signal, kill_process};

const SCENES: [&str; 8] =
    ["everywhere", "list", "prefetch", "join", "full-disk", "wrong-tag", "private", "schedule"];

fn demo(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_prewarm"));
    command.arg("demo").args(arguments);
    command
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("the program prints UTF-8")
}

fn ended_well(output: Output) -> String {
    let (stdout, stderr) = (text(output.stdout), text(output.stderr));
    assert_eq!(output.status.code(), Some(0), "{stdout}{stderr}");
    stdout
}

/// The kubeconfig that the demo prints.
fn kubeconfig(line: &str) -> &str {
    line.split_whitespace().skip_while(|word| *word != "--kubeconfig").nth(1).expect("a file")
}

#[test]
fn the_whole_story_ends_as_it_should_and_leaves_nothing_behind() {
    let output = demo(&["--ci", "--speed", "4", "--seed", "7"]).output().expect("the program starts");
    let stdout = ended_well(output);
    assert_eq!(stdout.matches('✓').count(), SCENES.len(), "{stdout}");
    let line = stdout.lines().find(|line| line.contains("--kubeconfig")).expect("a line with the file");
    let directory = Path::new(kubeconfig(line)).parent().expect("a directory");
    assert!(!directory.exists(), "{} is left behind", directory.display());
}

#[test]
fn every_scene_can_be_played_alone() {
    for scene in SCENES {
        let output = demo(&["--ci", "--speed", "4", "--nodes", "3", "--scenario", scene]).output();
        let stdout = ended_well(output.expect("the program starts"));
        assert_eq!(stdout.matches('✓').count(), 1, "{scene}: {stdout}");
    }
}

/// The fault of a seed, in the words of the story.
fn fault(seed: &str) -> String {
    let output = demo(&["--nodes", "5", "--speed", "8", "--scenario", "everywhere", "--seed", seed]).output();
    let stdout = ended_well(output.expect("the program starts"));
    let line = stdout.lines().find(|line| line.contains("loses its connection")).expect("a fault");
    line.split_once("node-").expect("a node").1.to_owned()
}

#[test]
fn a_seed_repeats_its_fault() {
    assert_eq!(fault("7"), fault("7"));
    assert_ne!(fault("7"), fault("8"));
}

#[test]
fn wrong_flags_are_refused_with_the_right_values() {
    for (arguments, part) in [
        (["--scenario", "party"], "there is no such scene; there are: everywhere ("),
        (["--speed", "0"], "write a number from 0.1 to 100"),
        (["--link", "fast"], "write bytes per second, such as 16MB"),
        (["--nodes", "0"], "0 is not in 1..=1000"),
    ] {
        let output = demo(&arguments).output().expect("the program starts");
        assert_eq!(output.status.code(), Some(2));
        let stderr = text(output.stderr);
        assert!(stderr.contains(part), "{stderr}");
    }
}

/// A running demo.
struct Running {
    child: Child,
    lines: BufReader<ChildStdout>,
    kubeconfig: String,
}

impl Drop for Running {
    fn drop(&mut self) {
        // A failed test must not leave it running; it is fine if it has ended and cannot be killed.
        let _ = self.child.kill();
    }
}

/// Starts a demo and waits for the line with its kubeconfig.
fn start(arguments: &[&str]) -> Running {
    let mut command = demo(arguments);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("the program starts");
    let mut lines = BufReader::new(child.stdout.take().expect("its output is a pipe"));
    let line = until(&mut lines, "--kubeconfig");
    Running { child, lines, kubeconfig: kubeconfig(&line).to_owned() }
}

/// Interrupts a demo as Ctrl-C does, and returns its exit code.
fn interrupt(mut running: Running) -> Option<i32> {
    kill_process(Pid::from_child(&running.child), Signal::INT).expect("it runs");
    let code = running.child.wait().expect("it ends").code();
    assert!(!Path::new(&running.kubeconfig).exists(), "{} is left behind", running.kubeconfig);
    code
}

/// Reads until a line contains this.
fn until(lines: &mut BufReader<ChildStdout>, part: &str) -> String {
    let mut line = String::new();
    while !line.contains(part) {
        line.clear();
        assert!(lines.read_line(&mut line).expect("a line") > 0, "the demo ended early");
    }
    line
}

#[tokio::test]
async fn clients_reach_a_cluster_that_stays_until_it_is_interrupted() {
    let arguments = ["--ci", "--forever", "--nodes", "2", "--speed", "4", "--scenario", "join"];
    let mut running = start(&arguments);
    until(&mut running.lines, "until Ctrl-C");
    let read = Kubeconfig::read_from(&running.kubeconfig).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await.expect("a config");
    let client = Client::try_from(config).expect("a client");
    let nodes = Api::<Node>::all(client.clone()).list(&ListParams::default()).await.expect("nodes").items;
    assert_eq!(nodes.len(), 3, "one has joined");
    let images = Api::<NodeImage>::all(client).list(&ListParams::default()).await.expect("NodeImages").items;
    assert!(images.iter().all(|image| image.status.as_ref().is_some_and(|status| status.succeeded == 1)));
    assert_eq!(interrupt(running), Some(0));
}

#[test]
fn an_interrupted_story_leaves_nothing_behind_and_says_so_by_its_exit_code() {
    assert_eq!(interrupt(start(&["--ci", "--nodes", "2", "--speed", "0.1"])), Some(1));
}

#[test]
fn a_demo_that_is_interrupted_while_it_starts_leaves_nothing_behind_either() {
    let directory = tempfile::tempdir().expect("a directory");
    let is_empty = || directory.path().read_dir().expect("it can be read").next().is_none();
    let mut command = demo(&["--ci", "--nodes", "1000"]);
    let mut child = command.env("TMPDIR", directory.path()).spawn().expect("the program starts");
    while is_empty() {
        assert!(child.try_wait().expect("it can be asked").is_none(), "the demo ended early");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    kill_process(Pid::from_child(&child), Signal::INT).expect("it runs");
    assert_eq!(child.wait().expect("it ends").code(), Some(1));
    assert!(is_empty(), "something is left in {}", directory.path().display());
}

/// Runs another command against a running demo; returns both streams and the exit code.
fn ask(running: &Running, arguments: &[&str]) -> (String, String, Option<i32>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_prewarm"));
    let output = command.args(arguments).args(["--kubeconfig", &running.kubeconfig]).output();
    let output = output.expect("the program starts");
    (text(output.stdout), text(output.stderr), output.status.code())
}

#[test]
fn every_command_works_on_a_running_demo() {
    let arguments = ["--ci", "--forever", "--nodes", "2", "--speed", "4", "--scenario", "everywhere"];
    let mut running = start(&arguments);
    until(&mut running.lines, "until Ctrl-C");
    let image = "registry.demo/shop/web:1.0";

    let (stdout, stderr, code) = ask(&running, &["pull", image, "--name", "again", "--wait"]);
    assert_eq!((stdout.lines().last(), code), (Some(format!("{image} is on 2 nodes").as_str()), Some(0)));
    assert!(stderr.contains(&format!("{image}: 2/2 nodes")), "{stderr}");

    let wrong = "registry.demo/shop/web:9.9";
    let (stdout, stderr, code) = ask(&running, &["pull", image, wrong, "--wait", "--name", "both"]);
    assert_eq!(code, Some(1), "{stdout}{stderr}");
    assert!(stdout.contains("NotFound") && stdout.contains("and its tag exist in registry.demo"), "{stdout}");
    assert!(stderr.ends_with("error: 2 of 4 pulls failed\n"), "{stderr}");

    let waiting = ["pull", "registry.demo/shop/web:8.8", "--parallelism", "0", "--wait", "--timeout", "3s"];
    let (_, stderr, code) = ask(&running, &waiting);
    assert!(stderr.contains("the time is up and 2 of 2 nodes do not have the image"), "{stderr}");
    assert_eq!(code, Some(1));

    let nowhere = ["pull", image, "--node", "nobody", "--wait"];
    let (_, stderr, code) = ask(&running, &nowhere);
    assert!(stderr.contains("nobody") && code == Some(1), "{stderr}");

    let (stdout, _, code) = ask(&running, &["status", "both"]);
    assert!(stdout.contains("imagelistpulljob/both   Failed   2/4"), "{stdout}");
    assert!(stdout.contains("both: 2 nodes failed (NotFound): cannot pull"), "{stdout}");
    assert_eq!(code, Some(1));
    let (stdout, _, code) = ask(&running, &["explain", "web"]);
    assert_eq!(stdout.matches("the image has been present since ").count(), 2, "{stdout}");
    assert_eq!(code, Some(0));
    let (stdout, _, _) = ask(&running, &["nodes"]);
    assert!(stdout.contains("node-01") && stdout.contains(" MiB "), "{stdout}");
    let (stdout, _, code) = ask(&running, &["images", image]);
    assert_eq!(code, Some(0), "{stdout}");
    assert_eq!(interrupt(running), Some(0));
}
