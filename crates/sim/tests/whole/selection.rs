//! Which nodes a job takes (kruise 7.9, R40, R42).

use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use prewarm_api::kruise::ImagePullJob;
use prewarm_embedded::faults::Verb;
use prewarm_sim::Cluster;
use serde_json::{Value, json};

use crate::support::{asked_for_pods, cluster, make_fake, owners, tag};

const IMAGE: &str = "nginx:1";

/// Five nodes: two blue, one red, two without a pool.
async fn five_nodes() -> Cluster {
    let mut cluster = Cluster::new();
    cluster.publish(IMAGE, std::time::Duration::from_secs(1));
    for (name, pool) in [("a", "blue"), ("b", "blue"), ("c", "red"), ("d", ""), ("e", "")] {
        let labels = if pool.is_empty() { json!({}) } else { json!({ "pool": pool }) };
        cluster.add_node(name, labels).await;
    }
    cluster.start_controller();
    cluster.pass(1).await;
    cluster
}

async fn make_pod(cluster: &Cluster, namespace: &str, name: &str, node: Option<&str>, app: &str) {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": app}},
        "spec": {"containers": [{"name": "main", "image": "app:1"}]},
    });
    if let Some(node) = node {
        pod["spec"]["nodeName"] = json!(node);
    }
    let _: Pod = cluster.create(pod).await;
}

fn pods(cluster: &Cluster) -> Api<Pod> {
    Api::default_namespaced(cluster.client.clone())
}

async fn make_namespace(cluster: &Cluster, name: &str) {
    let _: Namespace = cluster
        .create_in_cluster(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
        .await;
}

/// The nodes that have the image.
fn warmed(cluster: &Cluster) -> Vec<&str> {
    cluster.nodes.values().filter(|node| node.runtime.has(IMAGE)).map(|node| node.name.as_str()).collect()
}

fn by_pods(completion: &str) -> Value {
    json!({
        "image": IMAGE, "parallelism": 9, "podSelector": {"matchLabels": {"app": "web"}},
        "completionPolicy": {"type": completion},
    })
}

fn succeeded(count: i32) -> impl Fn(&ImagePullJob) -> bool {
    move |job| job.status.as_ref().is_some_and(|status| status.succeeded == count && status.desired == count)
}

/// kruise T90.
#[tokio::test(start_paused = true)]
async fn nodes_are_selected_by_names_labels_and_expressions_or_all_of_them() {
    let cases = [
        (json!({}), vec!["a", "b", "c", "d", "e"]),
        (json!({"selector": {}}), vec!["a", "b", "c", "d", "e"]),
        (json!({"selector": {"names": ["b", "d"]}}), vec!["b", "d"]),
        (json!({"selector": {"matchLabels": {"pool": "blue"}}}), vec!["a", "b"]),
        (
            json!({"selector": {"matchExpressions": [{"key": "pool", "operator": "DoesNotExist"}]}}),
            vec!["d", "e"],
        ),
        (
            json!({"selector": {"matchExpressions": [{"key": "pool", "operator": "NotIn", "values": ["blue"]}]}}),
            vec!["c", "d", "e"],
        ),
        (
            json!({"selector": {"matchLabels": {"pool": "red"},
                "matchExpressions": [{"key": "pool", "operator": "In", "values": ["red", "blue"]}]}}),
            vec!["c"],
        ),
    ];
    for (mut spec, expected) in cases {
        let cluster = five_nodes().await;
        (spec["image"], spec["parallelism"]) = (json!(IMAGE), json!(9));
        cluster.pull("warm", spec.clone()).await;
        let status = cluster.finished_within(30, "warm").await.status.unwrap();
        assert_eq!(usize::try_from(status.desired).unwrap(), expected.len(), "{spec}");
        assert_eq!(warmed(&cluster), expected, "{spec}");
    }
}

/// kruise T90: pods.
#[tokio::test(start_paused = true)]
async fn nodes_are_selected_by_the_active_pods_of_the_jobs_namespace() {
    let cluster = five_nodes().await;
    make_namespace(&cluster, "other").await;
    make_pod(&cluster, "default", "web-1", Some("b"), "web").await;
    make_pod(&cluster, "default", "web-2", Some("b"), "web").await;
    make_pod(&cluster, "default", "waits", None, "web").await;
    make_pod(&cluster, "default", "db-1", Some("c"), "db").await;
    make_pod(&cluster, "other", "web-1", Some("d"), "web").await;
    make_pod(&cluster, "default", "done", Some("e"), "web").await;
    let over = Patch::Merge(json!({"status": {"phase": "Succeeded"}}));
    pods(&cluster).patch_status("done", &PatchParams::default(), &over).await.unwrap();
    cluster.pull("warm", by_pods("Always")).await;
    let status = cluster.finished_within(30, "warm").await.status.unwrap();
    assert_eq!((status.desired, status.succeeded), (1, 1));
    assert_eq!(warmed(&cluster), ["b"]);
}

/// kruise R33, T91.
#[tokio::test(start_paused = true)]
async fn a_job_follows_its_pods_from_node_to_node() {
    let cluster = five_nodes().await;
    cluster.pull("warm", by_pods("Never")).await;
    cluster.pass(5).await;
    assert_eq!(cluster.status("warm").await.desired, 0);
    make_pod(&cluster, "default", "web-1", Some("a"), "web").await;
    cluster.job_within(10, "warm", succeeded(1)).await;
    make_pod(&cluster, "default", "web-2", Some("c"), "web").await;
    cluster.job_within(10, "warm", succeeded(2)).await;
    pods(&cluster).delete("web-1", &DeleteParams::default()).await.unwrap();
    cluster.job_within(10, "warm", succeeded(1)).await;
    let ends = Patch::Merge(json!({"status": {"phase": "Failed"}}));
    pods(&cluster).patch_status("web-2", &PatchParams::default(), &ends).await.unwrap();
    cluster.job_within(10, "warm", succeeded(0)).await;
    assert_eq!(warmed(&cluster), ["a", "c"]);
}

/// kruise T91, W42: pods are watched only where an unfinished job selects by them.
#[tokio::test(start_paused = true)]
async fn pods_are_watched_only_in_namespaces_of_jobs_that_select_by_them() {
    let cluster = five_nodes().await;
    make_namespace(&cluster, "other").await;
    make_pod(&cluster, "default", "web-1", Some("a"), "web").await;
    cluster.pull("plain", json!({"image": IMAGE})).await;
    cluster.finished_within(60, "plain").await;
    assert!(asked_for_pods(&cluster, 0).is_empty(), "nobody selects by pods");
    cluster.pull("warm", by_pods("Always")).await;
    cluster.finished_within(60, "warm").await;
    let pods = asked_for_pods(&cluster, 0);
    assert!(!pods.is_empty());
    for entry in &pods {
        assert!(entry.path.starts_with("/api/v1/namespaces/default/pods"), "{entry}");
        assert!(matches!(entry.verb, Verb::List | Verb::Watch), "{entry}");
    }
    let since = cluster.faults.journal().len();
    cluster.pass(900).await;
    assert!(asked_for_pods(&cluster, since).is_empty(), "the job is over");
}

/// kruise T91: a job that is on its way out takes no pods.
#[tokio::test(start_paused = true)]
async fn a_terminating_job_takes_no_further_node() {
    let cluster = five_nodes().await;
    cluster.pull("warm", by_pods("Never")).await;
    cluster.pass(5).await;
    let hold =
        json!({"metadata": {"finalizers": ["example.com/hold", "apps.kruise.io/deletion-protection"]}});
    cluster.edit("warm", hold).await;
    cluster.delete_job("warm").await;
    cluster.pass(5).await;
    let job = cluster.jobs().get("warm").await.unwrap();
    assert_eq!(job.metadata.finalizers.unwrap(), ["example.com/hold"]);
    make_pod(&cluster, "default", "web-1", Some("a"), "web").await;
    cluster.pass(30).await;
    assert_eq!(tag(&cluster, "a", IMAGE).await, None);
}

/// kruise T92, R31, W8: a node that joins is found by every kind of selection.
#[tokio::test(start_paused = true)]
async fn a_node_that_joins_is_warmed_by_every_job_that_selects_it() {
    let mut cluster = cluster(1, &[]).await;
    let selections = [
        ("all", json!({})),
        ("empty", json!({"selector": {}})),
        ("names", json!({"selector": {"names": ["late"]}})),
        ("labels", json!({"selector": {"matchLabels": {"pool": "blue"}}})),
        (
            "not-red",
            json!({"selector": {"matchExpressions": [{"key": "pool", "operator": "NotIn", "values": ["red"]}]}}),
        ),
        ("pods", json!({"podSelector": {"matchLabels": {"app": "web"}}})),
        ("red", json!({"selector": {"matchLabels": {"pool": "red"}}})),
    ];
    for (name, mut spec) in selections.clone() {
        cluster.publish(&format!("{name}:1"), std::time::Duration::from_secs(1));
        spec["image"] = json!(format!("{name}:1"));
        spec["completionPolicy"] = json!({"type": "Never"});
        cluster.pull(name, spec).await;
    }
    make_pod(&cluster, "default", "web-1", Some("late"), "web").await;
    cluster.pass(30).await;
    cluster.add_node("late", json!({"pool": "blue"})).await;
    cluster.pass(10).await;
    let has: Vec<&str> = selections
        .iter()
        .map(|(name, _)| *name)
        .filter(|name| cluster.nodes["late"].runtime.has(&format!("{name}:1")))
        .collect();
    assert_eq!(has, ["all", "empty", "names", "labels", "not-red", "pods"]);
    assert_eq!(cluster.nodes["late"].pulls("red:1"), 0, "never, not even for a moment (kruise W17)");
}

/// kruise R42.
#[tokio::test(start_paused = true)]
async fn a_node_whose_labels_change_joins_or_leaves() {
    let cluster = five_nodes().await;
    let spec = json!({
        "image": IMAGE, "parallelism": 9, "selector": {"matchLabels": {"pool": "blue"}},
        "completionPolicy": {"type": "Never"},
    });
    cluster.pull("warm", spec).await;
    cluster.job_within(10, "warm", succeeded(2)).await;
    let nodes: Api<k8s_openapi::api::core::v1::Node> = Api::all(cluster.client.clone());
    let relabel = async |name: &str, pool: &str| {
        let patch = Patch::Merge(json!({"metadata": {"labels": {"pool": pool}}}));
        nodes.patch(name, &PatchParams::default(), &patch).await.unwrap();
    };
    relabel("c", "blue").await;
    cluster.job_within(10, "warm", succeeded(3)).await;
    relabel("a", "red").await;
    cluster.job_within(10, "warm", succeeded(2)).await;
    assert_eq!(owners(&cluster, "a", IMAGE).await, ["warm"], "what is done there stays");
}

/// kruise R42: what has not begun on a node that left is taken back.
#[tokio::test(start_paused = true)]
async fn a_task_that_has_not_begun_leaves_with_its_node() {
    let cluster = crate::support::silent_cluster(&["a", "b"]).await;
    cluster.pull("warm", json!({"image": IMAGE, "selector": {"names": ["a", "b"]}, "parallelism": 2})).await;
    crate::support::told_within(&cluster, 5, "b", IMAGE).await;
    cluster.edit("warm", json!({"spec": {"selector": {"names": ["a"]}}})).await;
    crate::support::untold_within(&cluster, 5, "b", IMAGE).await;
    cluster.pass(2).await;
    assert_eq!(cluster.status("warm").await.desired, 1);
}

#[tokio::test(start_paused = true)]
async fn deleted_nodes_lower_what_is_desired() {
    let mut cluster = five_nodes().await;
    make_fake(&cluster, "fake").await;
    cluster
        .pull("warm", json!({"image": IMAGE, "parallelism": 9, "completionPolicy": {"type": "Never"}}))
        .await;
    cluster
        .job_within(10, "warm", |job| job.status.as_ref().is_some_and(|status| status.succeeded == 5))
        .await;
    assert_eq!(cluster.status("warm").await.desired, 6);
    cluster.delete_node("a").await;
    cluster.delete_node("b").await;
    cluster
        .job_within(10, "warm", |job| {
            job.status.as_ref().is_some_and(|status| (status.desired, status.succeeded) == (4, 3))
        })
        .await;
}
