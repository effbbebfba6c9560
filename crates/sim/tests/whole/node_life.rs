//! NodeImages come and go with their nodes, and are kept tidy (kruise 3.1, 7.4).

use std::time::Duration;

use kube::api::{Patch, PatchParams};
use prewarm_plan::demand::selection::Requirements;
use prewarm_sim::Cluster;
use serde_json::{Value, json};

use crate::support::{
    asked, cluster, condition, config_secrets, entry, make_fake, node_image, owners, report, silent_cluster,
    tag, told_within, untold_within, write_images,
};

const IMAGE: &str = "nginx:1";

async fn label_node(cluster: &Cluster, name: &str, labels: Value) {
    let api: kube::Api<k8s_openapi::api::core::v1::Node> = kube::Api::all(cluster.client.clone());
    let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
    api.patch(name, &PatchParams::default(), &patch).await.unwrap();
}

/// An owner reference of a tag.
fn owner(kind: &str, name: &str, uid: &str) -> Value {
    let group = if kind == "ImagePullJob" { "apps.kruise.io/v1alpha1" } else { "example.com/v1" };
    json!({"apiVersion": group, "kind": kind, "namespace": "default", "name": name, "uid": uid})
}

fn owned(tag: &str, owners: &[Value]) -> Value {
    let mut entry = entry(tag, 3600);
    entry["ownerReferences"] = json!(owners);
    entry
}

/// A job that is under way on nobody's node, and its UID.
async fn job(cluster: &Cluster, name: &str) -> String {
    let spec = json!({"image": "other:1", "selector": {"names": ["nowhere"]}, "completionPolicy": {"type": "Never"}});
    cluster.pull(name, spec).await.metadata.uid.unwrap()
}

/// kruise R8, W17.
#[tokio::test(start_paused = true)]
async fn a_node_image_is_made_with_labels_in_one_write_as_soon_as_its_node_is_ready() {
    let mut cluster = Cluster::new();
    cluster.start_controller();
    cluster.pass(1).await;
    cluster.make_node("node-1", json!({"pool": "blue"})).await;
    cluster.set_ready("node-1", false).await;
    cluster.pass(60).await;
    cluster.make_node("node-2", json!({"pool": "red"})).await;
    let took = cluster
        .within(Duration::from_secs(2), "the NodeImage", async || {
            cluster.node_images().get_opt("node-2").await.unwrap().is_some()
        })
        .await;
    assert!(took < Duration::from_secs(1), "{took:?}");
    let made = node_image(&cluster, "node-2").await;
    let node: kube::Api<k8s_openapi::api::core::v1::Node> = kube::Api::all(cluster.client.clone());
    let node = node.get("node-2").await.unwrap();
    assert_eq!(made.metadata.labels, node.metadata.labels);
    assert_eq!(made.metadata.owner_references.unwrap()[0].uid, node.metadata.uid.unwrap());
    cluster.pass(5).await;
    let writes: Vec<_> =
        asked(&cluster, 0, "nodeimages").into_iter().filter(|entry| entry.verb.is_write()).collect();
    assert_eq!(writes.iter().filter(|entry| entry.path.contains("node-2")).count(), 0, "no second write");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_never_was_ready_has_no_node_image() {
    let mut cluster = Cluster::new();
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "cold"}});
    let _: k8s_openapi::api::core::v1::Node = cluster.create_in_cluster(node).await;
    cluster.start_controller();
    cluster.pass(120).await;
    assert!(cluster.node_images().get_opt("cold").await.unwrap().is_none());
    cluster.set_ready("cold", true).await;
    cluster.node_image_within(2, "cold", |image| image.is_some()).await;
    cluster.set_ready("cold", false).await;
    cluster.pass(120).await;
    assert!(
        cluster.node_images().get_opt("cold").await.unwrap().is_some(),
        "it stays when the node is not ready"
    );
}

/// kruise T21.
#[tokio::test(start_paused = true)]
async fn labels_follow_the_node_and_others_are_removed() {
    let cluster = silent_cluster(&["node-1"]).await;
    label_node(&cluster, "node-1", json!({"pool": "blue"})).await;
    let has = |key: &'static str, value: Option<&'static str>| {
        move |image: Option<&prewarm_api::kruise::NodeImage>| {
            let labels = image.unwrap().metadata.labels.clone().unwrap_or_default();
            labels.get(key).map(String::as_str) == value
        }
    };
    cluster.node_image_within(2, "node-1", has("pool", Some("blue"))).await;
    let patch = Patch::Merge(json!({"metadata": {"labels": {"stray": "yes"}}}));
    cluster.node_images().patch("node-1", &PatchParams::default(), &patch).await.unwrap();
    cluster.node_image_within(2, "node-1", has("stray", None)).await;
    label_node(&cluster, "node-1", json!({ "pool": null })).await;
    cluster.node_image_within(2, "node-1", has("pool", None)).await;
}

/// kruise R2.
#[tokio::test(start_paused = true)]
async fn a_virtual_node_is_left_alone() {
    let mut cluster = Cluster::new();
    cluster.start_controller();
    cluster.make_node("virtual", json!({"type": "virtual-kubelet"})).await;
    cluster.pass(120).await;
    assert!(cluster.node_images().get_opt("virtual").await.unwrap().is_none());
    let made = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "NodeImage",
        "metadata": {"name": "virtual", "labels": {"mine": "yes"}}, "spec": {},
    });
    let _: prewarm_api::kruise::NodeImage = cluster.create_in_cluster(made).await;
    cluster.pass(60).await;
    let labels = node_image(&cluster, "virtual").await.metadata.labels.unwrap();
    assert_eq!(labels.len(), 1, "neither deleted nor labelled");
}

/// In a cluster with Windows nodes, or with agents on some pools only, nobody waits for nodes that nobody answers for.
#[tokio::test(start_paused = true)]
async fn nodes_without_agents_are_neither_counted_nor_waited_for() {
    let mut cluster = Cluster::new();
    cluster.publish(IMAGE, Duration::from_secs(1));
    cluster.config.settings.agent_nodes = Requirements::parse("agents=yes").unwrap();
    cluster.add_node("node-1", json!({"agents": "yes", "kubernetes.io/os": "linux"})).await;
    cluster.make_node("windows", json!({"agents": "yes", "kubernetes.io/os": "windows"})).await;
    cluster.make_node("elsewhere", json!({"kubernetes.io/os": "linux"})).await;
    for name in ["windows", "elsewhere"] {
        let left = json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "NodeImage", "metadata": {"name": name}, "spec": {},
        });
        let _: prewarm_api::kruise::NodeImage = cluster.create_in_cluster(left).await;
    }
    cluster.start_controller();
    cluster.pull("everywhere", json!({"image": IMAGE, "parallelism": 3})).await;
    let names = json!({"names": ["node-1", "windows"]});
    cluster.pull("named", json!({"image": IMAGE, "selector": names, "parallelism": 3})).await;
    for job in ["everywhere", "named"] {
        let status = cluster.finished_within(30, job).await.status.unwrap();
        assert_eq!((status.desired, status.succeeded, status.failed), (1, 1, 0), "{job}");
    }
    let conditions = cluster.status("named").await.conditions;
    let (holds, reason, message) = condition(conditions.as_ref(), "NodesFound").unwrap();
    assert_eq!((holds.as_str(), reason.as_str()), ("False", "NodesWithoutAgent"));
    assert!(message.contains("windows"), "{message}");
    for name in ["windows", "elsewhere"] {
        cluster.node_image_within(5, name, |image| image.is_none()).await;
    }
    // The label decides, at any time.
    label_node(&cluster, "elsewhere", json!({"agents": "yes"})).await;
    cluster.node_image_within(5, "elsewhere", |image| image.is_some()).await;
}

/// kruise R7.
#[tokio::test(start_paused = true)]
async fn a_node_image_goes_with_its_node_unless_it_is_marked() {
    let mut cluster = silent_cluster(&["node-1"]).await;
    make_fake(&cluster, "fake").await;
    let stray = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "NodeImage", "metadata": {"name": "stray"}, "spec": {},
    });
    let _: prewarm_api::kruise::NodeImage = cluster.create_in_cluster(stray).await;
    cluster.delete_node("node-1").await;
    cluster.node_image_within(5, "node-1", |image| image.is_none()).await;
    cluster.node_image_within(5, "stray", |image| image.is_none()).await;
    cluster.pass(60).await;
    assert!(cluster.node_images().get_opt("fake").await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_made_again_under_its_name_starts_empty() {
    let mut cluster = cluster(1, &[IMAGE]).await;
    let completion = json!({"type": "Never"});
    cluster.pull("warm", json!({"image": IMAGE, "completionPolicy": completion})).await;
    cluster
        .job_within(30, "warm", |job| job.status.as_ref().is_some_and(|status| status.succeeded == 1))
        .await;
    let before = node_image(&cluster, "node-1").await.metadata.uid;
    cluster.stop_controller().await;
    // While nobody looks, so that the controller finds another Node behind the same name.
    cluster.delete_node("node-1").await;
    cluster.add_node("node-1", json!({})).await;
    cluster.start_controller();
    cluster.pass(30).await;
    assert_ne!(node_image(&cluster, "node-1").await.metadata.uid, before);
    let status = cluster.status("warm").await;
    assert_eq!((status.desired, status.succeeded), (1, 1));
    assert!(cluster.nodes["node-1"].runtime.has(IMAGE), "and is warmed as any new node");
}

/// kruise T20, T27, T32.
#[tokio::test(start_paused = true)]
async fn entries_with_living_owners_are_left_as_they_are() {
    let cluster = silent_cluster(&["node-1"]).await;
    let (one, two) = (job(&cluster, "one").await, job(&cluster, "two").await);
    let (one, two) = (owner("ImagePullJob", "one", &one), owner("ImagePullJob", "two", &two));
    let mut images = json!({
        "a": {"tags": [owned("1", std::slice::from_ref(&one)), owned("2", &[one.clone(), two.clone()])]},
        "b": {"tags": [owned("1", &[two])]},
    });
    for tag in
        images.as_object_mut().unwrap().values_mut().flat_map(|image| image["tags"].as_array_mut().unwrap())
    {
        tag["createdAt"] = json!(cluster.clock.now().to_string());
    }
    write_images(&cluster, "node-1", images).await;
    let before = node_image(&cluster, "node-1").await.spec;
    let generation = node_image(&cluster, "node-1").await.metadata.generation;
    cluster.pass(300).await;
    let after = node_image(&cluster, "node-1").await;
    assert_eq!((after.spec, after.metadata.generation), (before, generation));
}

/// kruise T22: stamped, not removed.
#[tokio::test(start_paused = true)]
async fn an_entry_without_a_beginning_gets_one() {
    let cluster = silent_cluster(&["node-1"]).await;
    write_images(&cluster, "node-1", json!({"nginx": {"tags": [entry("1", 600)]}})).await;
    let written = cluster.clock.now().as_second();
    cluster.pass(3).await;
    let stamped = tag(&cluster, "node-1", IMAGE).await.unwrap().created_at.unwrap().0.as_second();
    assert!((written..written + 3).contains(&stamped));
}

/// kruise T23, T24, T25, T28, T29.
#[tokio::test(start_paused = true)]
async fn owners_that_are_gone_are_taken_out_and_what_only_they_wanted_goes() {
    let cluster = silent_cluster(&["node-1"]).await;
    let uid = job(&cluster, "alive").await;
    let alive = owner("ImagePullJob", "alive", &uid);
    let images = json!({
        "foreign": {"tags": [owned("1", &[owner("Thing", "x", "1-1")])]},
        "missing": {"tags": [owned("1", &[owner("ImagePullJob", "missing", "2-2")])]},
        "another": {"tags": [owned("1", &[owner("ImagePullJob", "alive", "3-3")])]},
        "shared": {"tags": [owned("1", &[owner("ImagePullJob", "missing", "2-2"), alive.clone()])]},
        "two": {"tags": [owned("1", &[owner("ImagePullJob", "missing", "2-2")]), owned("2", &[alive])]},
    });
    write_images(&cluster, "node-1", images).await;
    cluster.pass(5).await;
    let images = node_image(&cluster, "node-1").await.spec.images;
    assert_eq!(images.keys().collect::<Vec<_>>(), ["foreign", "shared", "two"]);
    assert_eq!(owners(&cluster, "node-1", "foreign:1").await, ["x"]);
    assert_eq!(owners(&cluster, "node-1", "shared:1").await, ["alive"]);
    assert_eq!(images["two"].tags.iter().map(|tag| tag.tag.as_str()).collect::<Vec<_>>(), ["2"]);
}

/// kruise T26, T30, T31.
#[tokio::test(start_paused = true)]
async fn a_result_stays_until_its_time_has_passed_after_the_job_is_over() {
    let cluster = silent_cluster(&["node-1"]).await;
    cluster.pull("warm", json!({"image": IMAGE, "completionPolicy": {"activeDeadlineSeconds": 700}})).await;
    let ttl = told_within(&cluster, 5, "node-1", IMAGE).await.pull_policy.ttl_seconds_after_finished;
    report(&cluster, "node-1", IMAGE, "Succeeded").await;
    cluster.finished_within(5, "warm").await;
    cluster.pass(u64::try_from(ttl).unwrap() - 10).await;
    assert!(tag(&cluster, "node-1", IMAGE).await.is_some(), "the job is over and its entry stays");
    untold_within(&cluster, 15, "node-1", IMAGE).await;
}

/// design 8, kruise W1: T30 as it is here.
#[tokio::test(start_paused = true)]
async fn a_result_outlives_its_time_while_a_job_that_ends_still_counts_it() {
    let cluster = silent_cluster(&["node-1", "node-2"]).await;
    cluster.pull("warm", json!({"image": IMAGE, "completionPolicy": {"ttlSecondsAfterFinished": 0}})).await;
    told_within(&cluster, 5, "node-1", IMAGE).await;
    report(&cluster, "node-1", IMAGE, "Succeeded").await;
    told_within(&cluster, 5, "node-2", IMAGE).await;
    for _ in 0..10 {
        report(&cluster, "node-2", IMAGE, "Pulling").await;
        cluster.pass(120).await;
    }
    assert!(tag(&cluster, "node-1", IMAGE).await.is_some());
    assert_eq!(cluster.status("warm").await.succeeded, 1);
    report(&cluster, "node-2", IMAGE, "Succeeded").await;
    untold_within(&cluster, 5, "node-1", IMAGE).await;
}

/// kruise T33, on images all of whose tags have owners.
#[tokio::test(start_paused = true)]
async fn secrets_that_do_not_exist_leave_owned_images_and_shared_copies_stay() {
    let cluster = silent_cluster(&["node-1"]).await;
    let uid = job(&cluster, "alive").await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "there", "namespace": "kruise-daemon-config"}, "type": "Opaque"});
    let _: k8s_openapi::api::core::v1::Secret = cluster.create(secret).await;
    let reference = |name: &str, mode: Option<&str>| {
        let mut reference = json!({"namespace": "kruise-daemon-config", "name": name});
        if let Some(mode) = mode {
            reference["mode"] = json!(mode);
        }
        reference
    };
    let secrets =
        json!([reference("there", None), reference("missing", None), reference("unseen", Some("batch"))]);
    write_images(
        &cluster,
        "node-1",
        json!({
            "owned": {"pullSecrets": secrets, "tags": [owned("1", &[owner("ImagePullJob", "alive", &uid)])]},
            "mine": {"pullSecrets": secrets, "tags": [entry("1", 600)]},
        }),
    )
    .await;
    cluster.pass(5).await;
    let images = node_image(&cluster, "node-1").await.spec.images;
    let names = |image: &str| -> Vec<String> {
        images[image].pull_secrets.iter().flatten().filter_map(|secret| secret.name.clone()).collect()
    };
    assert_eq!(names("owned"), ["there", "unseen"]);
    assert_eq!(names("mine"), ["there", "missing", "unseen"], "what a person wrote stays");
    assert!(config_secrets(&cluster).get_opt("there").await.unwrap().is_some());
}

/// An entry by hand goes by its TTL alone, also after a job joined and left.
#[tokio::test(start_paused = true)]
async fn what_a_person_wrote_goes_by_its_time_alone() {
    let cluster = cluster(1, &[IMAGE]).await;
    write_images(&cluster, "node-1", json!({"nginx": {"tags": [entry("1", 3600)]}})).await;
    cluster.pass(10).await;
    let mine = tag(&cluster, "node-1", IMAGE).await.unwrap();
    assert_eq!(
        crate::support::tag_status(&cluster, "node-1", IMAGE).await.unwrap().phase,
        prewarm_api::kruise::PullPhase::Succeeded
    );
    cluster
        .pull("warm", json!({"image": IMAGE, "pullPolicy": {"timeoutSeconds": 1, "backoffLimit": 0}}))
        .await;
    cluster.finished_within(10, "warm").await;
    assert_eq!(owners(&cluster, "node-1", IMAGE).await, ["warm"]);
    cluster.delete_job("warm").await;
    cluster.pass(10).await;
    let left = tag(&cluster, "node-1", IMAGE).await.unwrap();
    assert_eq!(
        (left.version, left.created_at.clone(), left.owner_references.clone()),
        (mine.version, mine.created_at, None)
    );
    assert_eq!(cluster.nodes["node-1"].pulls(IMAGE), 1);
    cluster.pass(3400).await;
    assert!(tag(&cluster, "node-1", IMAGE).await.is_some());
    untold_within(&cluster, 300, "node-1", IMAGE).await;
}
