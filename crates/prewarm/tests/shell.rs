//! The commands that ask a cluster, on the embedded API.

#[path = "shell/check.rs"]
mod check;
#[path = "shell/crons.rs"]
mod crons;
#[path = "shell/suite.rs"]
mod suite;
#[path = "shell/uninstall.rs"]
mod uninstall;

use std::io::{BufRead as _, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};

use prewarm_embedded::{Limits, Options, Server, Serving, TokioClock};
use suite::{Shell, altered, compare, furnish, masked};
use tempfile::TempDir;
use tokio::net::TcpListener;

/// A server, and the program that asks it.
struct World {
    server: Server,
    shell: Shell,
    directory: TempDir,
    _serving: Serving,
}

impl World {
    async fn start() -> Self {
        let server = Server::new(Arc::new(TokioClock::of_the_machine()), Options::default());
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let serving = server.clone().serve(listener).expect("it serves");
        let directory = tempfile::tempdir().expect("a directory");
        let kubeconfig = directory.path().join("kubeconfig");
        serving.write_kubeconfig(&kubeconfig).expect("a kubeconfig");
        let shell = Shell { program: env!("CARGO_BIN_EXE_prewarm").into(), kubeconfig };
        Self { server, shell, directory, _serving: serving }
    }

    /// The program with a slightly changed kubeconfig.
    fn altered(&self, alter: impl Fn(&mut serde_json::Value)) -> Shell {
        let kubeconfig = self.directory.path().join("altered");
        altered(&self.shell.kubeconfig, &kubeconfig, alter).expect("a kubeconfig");
        Shell { program: self.shell.program.clone(), kubeconfig }
    }
}

/// Runs the program without blocking the server.
async fn run(shell: Shell, line: &'static str) -> String {
    let seen = tokio::task::spawn_blocking(move || shell.run(line)).await;
    masked(&seen.expect("the program ends"))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_says_what_the_transcript_says() {
    let world = World::start().await;
    world.server.install_definitions();
    furnish(&world.server.client()).await.expect("the cluster of the fixture");
    let World { shell, .. } = world;
    let transcript = tokio::task::spawn_blocking(move || shell.transcript()).await.expect("it ends");
    compare("transcript", &transcript);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_definitions_the_error_says_how_to_get_them() {
    let world = World::start().await;
    let shell = world.altered(|_| {});
    let seen = run(shell, "status").await;
    assert!(seen.contains("has no ImagePullJobs: install the definitions with `prewarm crds |"), "{seen}");
    assert!(seen.ends_with("[exit 2]\n"), "{seen}");
    let shell = world.altered(|_| {});
    let seen = run(shell, "pull redis:8").await;
    assert!(seen.contains("has no ImagePullJobs: install the definitions"), "{seen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_there_is_named_with_what_to_check() {
    let world = World::start().await;
    let closed = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = format!("https://{}", closed.local_addr().expect("an address"));
    drop(closed);
    let shell = world.altered(|config| config["clusters"][0]["cluster"]["server"] = address.clone().into());
    let seen = run(shell, "nodes").await;
    assert!(seen.contains("cannot reach https://SERVER (context CONTEXT): Connection refused"), "{seen}");
    assert!(seen.contains("kubectl config get-contexts"), "{seen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_without_valid_credentials_is_asked_to_log_in() {
    let world = World::start().await;
    let shell = world.altered(|config| config["users"][0]["user"]["token"] = "wrong".into());
    let seen = run(shell, "images").await;
    assert!(
        seen.contains("does not accept your credentials: log in again, or choose another context"),
        "{seen}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_kubeconfig_there_is_a_sentence_and_not_a_guess() {
    let directory = tempfile::tempdir().expect("a directory");
    for command in ["status", "explain web", "nodes", "images", "pull redis:8"] {
        let mut program = Command::new(env!("CARGO_BIN_EXE_prewarm"));
        program.args(command.split_whitespace()).env_clear().env("HOME", directory.path());
        let output = program.output().expect("the program starts");
        let stderr = String::from_utf8(output.stderr).expect("text");
        assert!(stderr.starts_with("error: no cluster is configured: "), "{command}: {stderr}");
        assert_eq!(output.status.code(), Some(2));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watched_status_prints_what_changes_until_its_reader_is_gone() {
    let world = World::start().await;
    world.server.install_definitions();
    furnish(&world.server.client()).await.expect("the cluster of the fixture");
    let mut watched = Watched::start(&world.shell, &["status", "-n", "shop", "--watch"]);
    assert!(watched.until("imagepulljob/web").contains("Running   1/5"));
    let jobs: kube::Api<prewarm_api::kruise::ImagePullJob> =
        kube::Api::namespaced(world.server.client(), "shop");
    let patch = serde_json::json!({"status": {"succeeded": 2}});
    let params = kube::api::PatchParams::default();
    jobs.patch_status("web", &params, &kube::api::Patch::Merge(patch)).await.expect("a patch");
    let line = watched.later("imagepulljob/web").await;
    assert!(line.contains("Running   2/5"), "{line}");
}

/// A command that keeps running, and its output.
struct Watched {
    child: Child,
    lines: Option<Lines<BufReader<ChildStdout>>>,
}

impl Watched {
    fn start(shell: &Shell, arguments: &[&str]) -> Self {
        let mut program = Command::new(&shell.program);
        program.args(arguments).env("KUBECONFIG", &shell.kubeconfig).stdout(Stdio::piped());
        let mut child = program.spawn().expect("the program starts");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        Self { child, lines: Some(lines) }
    }

    /// The next line that contains this.
    fn until(&mut self, part: &str) -> String {
        let lines = self.lines.as_mut().expect("nobody else reads");
        let found = lines.map_while(Result::ok).find(|line| line.contains(part));
        found.unwrap_or_else(|| panic!("no line with {part}"))
    }

    /// The same, without blocking the server.
    async fn later(&mut self, part: &'static str) -> String {
        let mut lines = self.lines.take().expect("nobody else reads");
        let read = move || {
            let found = lines.by_ref().map_while(Result::ok).find(|line| line.contains(part));
            (found.unwrap_or_else(|| panic!("no line with {part}")), lines)
        };
        let (line, lines) = tokio::task::spawn_blocking(read).await.expect("a line");
        self.lines = Some(lines);
        line
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // If the test has failed, it may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_plugin_of_kubectl_calls_itself_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let plugin: PathBuf = directory.path().join("kubectl-prewarm");
    std::os::unix::fs::symlink(Path::new(env!("CARGO_BIN_EXE_prewarm")), &plugin).expect("a link");
    let output = Command::new(plugin).args(["pull", "--help"]).output().expect("it starts");
    let help = String::from_utf8(output.stdout).expect("text");
    assert!(help.contains("Usage: kubectl prewarm pull "), "{help}");
}

#[test]
fn every_shell_gets_its_completions() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let mut program = Command::new(env!("CARGO_BIN_EXE_prewarm"));
        let output = program.args(["completion", shell]).output().expect("the program starts");
        let script = String::from_utf8(output.stdout).expect("text");
        for word in ["parallelism", "explain", "schedule", "every", "zone"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
}

/// The verb and path of every request that a command sends.
async fn requests_of(line: &'static str) -> Vec<String> {
    let server = Server::new(Arc::new(TokioClock::of_the_machine()), Options::default());
    server.install_definitions();
    furnish(&server.client()).await.expect("the cluster of the fixture");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = seen.clone();
    let service = tower::ServiceBuilder::new()
        .map_request(move |request: http::Request<_>| {
            let note = format!("{} {}", request.method(), request.uri().path());
            noted.lock().expect("nobody panics with it").push(note);
            request
        })
        .service(server);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let serving = prewarm_embedded::serve(service, listener, Limits::default()).expect("it serves");
    let directory = tempfile::tempdir().expect("a directory");
    let kubeconfig = directory.path().join("kubeconfig");
    serving.write_kubeconfig(&kubeconfig).expect("a kubeconfig");
    run(Shell { program: env!("CARGO_BIN_EXE_prewarm").into(), kubeconfig }, line).await;
    let mut seen = seen.lock().expect("nobody panics with it").clone();
    seen.sort();
    seen
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_lists_jobs_only_and_nodes_only_for_jobs_that_are_named() {
    let group = "GET /apis/apps.kruise.io/v1beta1";
    let kinds = ["advancedcronjobs", "imagelistpulljobs", "imagepulljobs"];
    let of_ofen = "GET /apis/ofen.cybozu.io/v1";
    let mut all: Vec<String> = kinds.map(|kind| format!("{group}/{kind}")).into();
    all.push(format!("{of_ofen}/imageprefetches"));
    assert_eq!(requests_of("status -A").await, all);
    let [crons, lists, ones] = kinds.map(|kind| format!("{group}/namespaces/shop/{kind}"));
    let (nodes, kept) = (format!("{group}/nodeimages"), format!("{of_ofen}/namespaces/shop/imageprefetches"));
    assert_eq!(requests_of("status web base -n shop").await, [&*crons, &*lists, &*ones, &*nodes, &*kept]);
    assert_eq!(requests_of("status nightly -n shop").await, [&*crons, &*lists, &*ones, &*kept]);
    // Where the kind is named, no other is asked for.
    let (sets, kept) =
        (format!("{of_ofen}/nodeimagesets"), format!("{of_ofen}/namespaces/depot/imageprefetches"));
    assert_eq!(
        requests_of("explain ip/tools -n depot").await,
        ["GET /api/v1/nodes", &*nodes, &*kept, &*sets]
    );
    assert_eq!(requests_of("explain nodeimageset/by-hand").await, ["GET /api/v1/nodes", &*nodes, &*sets]);
    // Only the kinds that the cron job makes are requested, and Jobs only for one that makes them.
    let jobs = "GET /apis/batch/v1/namespaces/shop/jobs";
    assert_eq!(requests_of("explain acj/nightly -n shop").await, [&*crons, &*lists]);
    assert_eq!(requests_of("explain acj/report -n shop").await, [&*crons, jobs]);
    assert_eq!(requests_of("images").await, [format!("{group}/nodeimages")]);
    assert_eq!(requests_of("nodes node-1").await, [format!("{group}/nodeimages")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_definition_of_image_prefetches_nothing_is_said_of_them() {
    let world = World::start().await;
    let definitions =
        prewarm_api::crd::all().iter().filter(|definition| definition.spec.group != "ofen.cybozu.io");
    for definition in definitions {
        world.server.install(&serde_json::to_value(definition).expect("JSON")).expect("a definition");
    }
    let seen = run(world.altered(|_| {}), "status").await;
    assert_eq!(
        seen,
        "$ prewarm status\nNo pull jobs and no cron jobs found in namespace default; -A lists all namespaces.\n"
    );
    let seen = run(world.altered(|_| {}), "status nosuch").await;
    assert!(seen.contains("error: there is no pull job and no cron job nosuch;"), "{seen}");
    let seen = run(world.altered(|_| {}), "explain imageprefetch/nosuch").await;
    assert!(seen.contains("the cluster has no ImagePrefetches; install the definitions"), "{seen}");
    let seen = run(world.altered(|_| {}), "pull redis:8 --replicas 2").await;
    assert!(seen.contains("has no ImagePrefetches: install the definitions"), "{seen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watched_status_shows_how_an_image_prefetch_goes_on() {
    let world = World::start().await;
    world.server.install_definitions();
    furnish(&world.server.client()).await.expect("the cluster of the fixture");
    let mut watched = Watched::start(&world.shell, &["status", "-n", "depot", "--watch"]);
    assert!(watched.until("imageprefetch/tools").contains("Running   1/5"));
    let prefetches: kube::Api<prewarm_api::ofen::ImagePrefetch> =
        kube::Api::namespaced(world.server.client(), "depot");
    let patch = serde_json::json!({"status": {"imagePulledNodes": 2}});
    let params = kube::api::PatchParams::default();
    prefetches.patch_status("tools", &params, &kube::api::Patch::Merge(patch)).await.expect("a patch");
    let line = watched.later("imageprefetch/tools").await;
    assert!(line.contains("Running   2/5"), "{line}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_of_images_that_stay_waits_until_they_are_on_every_node() {
    let world = World::start().await;
    world.server.install_definitions();
    furnish(&world.server.client()).await.expect("the cluster of the fixture");
    let arguments = ["pull", "redis:8", "--replicas", "2", "--name", "kept", "-n", "shop", "--wait"];
    let mut waiting = Watched::start(&world.shell, &arguments);
    assert_eq!(waiting.later("created").await, "imageprefetch.ofen.cybozu.io/kept created");
    let prefetches: kube::Api<prewarm_api::ofen::ImagePrefetch> =
        kube::Api::namespaced(world.server.client(), "shop");
    let ready = serde_json::json!({"type": "Ready", "status": "True", "reason": "ImagePrefetchReady",
        "message": "all images are on 2 of 2 nodes", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let status = serde_json::json!({"observedGeneration": 1, "desiredNodes": 2, "imagePulledNodes": 2, "conditions": [ready]});
    let patch = kube::api::Patch::Merge(serde_json::json!({ "status": status }));
    prefetches.patch_status("kept", &kube::api::PatchParams::default(), &patch).await.expect("a patch");
    assert_eq!(waiting.later("redis:8").await, "redis:8 is on 2 nodes");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_is_checked_before_anything_is_sent() {
    for line in [
        "pull redis:8 --every '60 2 * * *' -n shop",
        "pull redis:8 --every '0 0 31 2 *' -n shop",
        "pull redis:8 --every @daily --zone Mars/Olympus -n shop",
        "pull redis:8 --every @daily --wait -n shop",
        "pull redis:8 --every @daily --dry-run -n shop",
    ] {
        assert_eq!(requests_of(line).await, [""; 0], "{line}");
    }
    let created = "POST /apis/apps.kruise.io/v1beta1/namespaces/shop/advancedcronjobs";
    assert_eq!(requests_of("pull redis:8 --every @daily -n shop").await, [created]);
}
