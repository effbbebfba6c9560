//! A node with more than one container runtime: images go to the one that its kubelet reports. In real time, because sockets are real.

use prewarm_agent::config::RuntimeChoice;
use prewarm_api::names::NODE_RUNTIME_ANNOTATION;
use prewarm_runtime::fake::Fake;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::node::{Node, image, tag_of};

const APP: &str = "reg.example/app:1";
const NAME: &str = "reg.example/app";
const OTHER: &str = "reg.example/other:1";
const OTHER_NAME: &str = "reg.example/other";

/// A node with containerd, which is asked first, and CRI-O. Both can pull everything.
struct Two {
    node: Node,
    crio: Fake,
    _directory: TempDir,
}

impl Two {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut node = Node::on(Fake::new());
        let crio = Fake::crio();
        for (fake, folder, socket) in
            [(&node.fake, "containerd", "containerd.sock"), (&crio, "crio", "crio.sock")]
        {
            std::fs::create_dir(directory.path().join(folder)).unwrap();
            fake.listen(&directory.path().join(folder).join(socket)).unwrap();
            fake.image(APP);
            fake.image(OTHER);
        }
        node.config.runtime = RuntimeChoice::In(directory.path().to_owned());
        Self { node, crio, _directory: directory }
    }

    /// How often each was asked to pull.
    fn pulls(&self) -> (usize, usize) {
        (self.node.fake.calls().len(), self.crio.calls().len())
    }

    /// The message of the waiting tag, as soon as it has one that contains this.
    async fn waits(&self, text: &str) {
        let says_so = |message: Option<String>| message.is_some_and(|message| message.contains(text));
        let tag = |status: &_| tag_of(status, NAME, "1").and_then(|tag| tag.message);
        self.node.until(text, |status| says_so(tag(status))).await;
    }
}

fn reports(runtime: &str) -> Value {
    json!({ "metadata": { "annotations": { NODE_RUNTIME_ANNOTATION: runtime } } })
}

#[tokio::test]
async fn images_go_to_the_runtime_that_the_kubelet_reports_and_not_to_the_first_that_answers() {
    let mut two = Two::new();
    two.node.ask(json!({ NAME: image(&["1"]) })).await;
    two.node.patch(reports("cri-o://1.34.0")).await;
    two.node.start();
    assert_eq!(two.node.settled(1).await.succeeded, 1);
    assert_eq!(two.pulls(), (0, 1));
    assert!(two.node.health.checks().failing().is_empty());
}

#[tokio::test]
async fn an_agent_that_was_not_told_takes_the_first_and_moves_when_it_is_told() {
    let mut two = Two::new();
    two.node.ask(json!({ NAME: image(&["1"]) })).await;
    two.node.start();
    two.node.settled(1).await;
    assert_eq!(two.pulls(), (1, 0));
    let told = json!({ "spec": { "images": { OTHER_NAME: image(&["1"]) } }, "metadata": reports("cri-o://1.34.0")["metadata"] });
    two.node.patch(told).await;
    two.node.settled(2).await;
    let pulled = |fake: &Fake| fake.calls_of(OTHER).len();
    assert_eq!((pulled(&two.node.fake), pulled(&two.crio)), (0, 1));
}

#[tokio::test]
async fn where_none_is_the_nodes_nothing_is_pulled_and_log_probe_and_status_say_why() {
    let mut two = Two::new();
    two.node.ask(json!({ NAME: image(&["1"]) })).await;
    two.node.patch(reports("containerd://2.1.5-k3s1")).await;
    two.node.start();
    two.waits("another one").await;
    let failing = two.node.health.checks().failing();
    let (name, trouble) = failing.first().expect("it is not ready");
    assert_eq!(*name, "runtime");
    for part in
        ["containerd://2.1.5-k3s1", "containerd://2.4.2 on", "cri-o://1.34.0 on", "--runtime-endpoint"]
    {
        assert!(trouble.contains(part), "{part} is missing in: {trouble}");
    }
    assert_eq!(two.pulls(), (0, 0));
    // The kubelet had not reported its new runtime yet.
    two.node.patch(reports("cri-o://1.34.0")).await;
    assert_eq!(two.node.settled(1).await.succeeded, 1);
    assert_eq!(two.pulls(), (0, 1));
}

#[tokio::test]
async fn an_upgraded_runtime_is_used_before_and_after_its_kubelet_reports_it() {
    let mut two = Two::new();
    two.node.ask(json!({ NAME: image(&["1"]) })).await;
    two.node.patch(reports("containerd://2.4.2")).await;
    two.node.start();
    two.node.settled(1).await;
    two.node.fake.stop();
    two.node.fake.is_version("2.4.3");
    two.node.fake.start();
    two.node.change(json!({ OTHER_NAME: image(&["1"]) })).await;
    assert_eq!(two.node.settled(2).await.succeeded, 2);
    two.node.patch(reports("containerd://2.4.3")).await;
    two.node.fake.image("reg.example/third:1");
    two.node.change(json!({ "reg.example/third": image(&["1"]) })).await;
    assert_eq!(two.node.settled(3).await.succeeded, 3);
    assert_eq!(two.pulls(), (3, 0));
}

#[tokio::test]
async fn a_runtime_that_was_set_is_used_whatever_the_kubelet_reports() {
    let mut two = Two::new();
    two.node.config.runtime = RuntimeChoice::Given(two.node.fake.endpoint());
    two.node.ask(json!({ NAME: image(&["1"]) })).await;
    two.node.patch(reports("cri-o://1.34.0")).await;
    two.node.start();
    assert_eq!(two.node.settled(1).await.succeeded, 1);
    assert_eq!(two.pulls(), (1, 0));
}
