//! What one tenant can do to others through the controller: an API server that stores no more, and a NodeImage that is full.

use kube::api::{Patch, PatchParams};
use prewarm_sim::Cluster;
use serde_json::{Value, json};

use crate::support::{condition, make_fake, notes, silent_cluster, tag, told_within};

const NODE: &str = "fake";
/// The greatest message of a tag that a status may have.
const MESSAGE: usize = 32_000;

/// A status that comes close to what etcd stores: 1.5 MiB.
fn large_status() -> Value {
    let tags: Vec<Value> = (0..45)
        .map(|number| json!({"tag": format!("old-{number}"), "phase": "Failed", "message": "x".repeat(MESSAGE)}))
        .collect();
    json!({"status": {"desired": 45, "imageStatuses": {"old": {"tags": tags}}}})
}

/// A job for the node, with as much for the runtime as may be.
fn large(number: usize) -> Value {
    json!({
        "image": format!("large-{number:02}:1"), "selector": {"names": [NODE]}, "completionPolicy": {"type": "Never"},
        "sandboxConfig": {"annotations": {"note": "x".repeat(4000)}},
    })
}

async fn nearly_full() -> Cluster {
    let cluster = silent_cluster(&[]).await;
    make_fake(&cluster, NODE).await;
    let status = Patch::Merge(large_status());
    cluster.node_images().patch_status(NODE, &PatchParams::default(), &status).await.unwrap();
    cluster.pass(1).await;
    cluster
}

/// The server answers 500 above 1.5 MiB, as etcd makes it do: whoever asks too much is found, and the others go on.
#[tokio::test(start_paused = true)]
async fn the_grants_of_others_arrive_although_a_patch_is_too_large() {
    let cluster = nearly_full().await;
    for number in 0..50 {
        cluster.pull(&format!("large-{number:02}"), large(number)).await;
    }
    let small =
        json!({"image": "small:1", "selector": {"names": [NODE]}, "completionPolicy": {"type": "Never"}});
    cluster.pull("small", small).await;
    told_within(&cluster, 30, NODE, "small:1").await;
    cluster.pass(60).await;
    let told = notes(&cluster, "NodeImage", NODE, "PullImageFailed").await;
    assert!(told.iter().any(|note| note.contains("etcdserver: request is too large")), "{told:?}");
    let mut granted = 0;
    for number in 0..50 {
        granted += usize::from(tag(&cluster, NODE, &format!("large-{number:02}:1")).await.is_some());
    }
    assert!((10..50).contains(&granted), "{granted} of the large ones have found room");
    let asked = cluster.faults.journal().len();
    cluster.pass(300).await;
    let patches = crate::support::asked(&cluster, asked, "/nodeimages/").len();
    assert!(patches <= 4, "what is refused is not tried again and again: {patches}");
}

/// Somebody else's entries fill the NodeImage: the job waits on that node, says why, and goes on when there is room.
#[tokio::test(start_paused = true)]
async fn a_job_waits_where_the_node_image_is_full_and_goes_on_when_it_is_not() {
    const IMAGE: &str = "nginx:1";
    let cluster = crate::support::cluster(2, &[IMAGE]).await;
    let full: serde_json::Map<String, Value> = (0..256)
        .map(|number| (format!("app-{number}"), json!({"tags": [crate::support::entry("1", 36_000)]})))
        .collect();
    crate::support::write_images(&cluster, "node-1", Value::Object(full)).await;
    cluster.pass(5).await;
    cluster.pull("warm", json!({"image": IMAGE, "parallelism": 2})).await;
    cluster.pass(30).await;
    let status = cluster.status("warm").await;
    assert_eq!((status.desired, status.succeeded, status.failed), (2, 1, 0));
    let (holds, reason, message) = condition(status.conditions.as_ref(), "Progressing").unwrap();
    assert_eq!((holds.as_str(), reason.as_str()), ("False", "WaitingForRoom"));
    assert!(message.starts_with("on 1 node the NodeImage is full"), "{message}");
    let told = notes(&cluster, "ImagePullJob", "warm", "NoRoom").await;
    assert_eq!(told, [message]);
    let fewer: serde_json::Map<String, Value> =
        (0..10).map(|number| (format!("app-{number}"), Value::Null)).collect();
    crate::support::write_images(&cluster, "node-1", Value::Object(fewer)).await;
    let end = cluster.finished_within(30, "warm").await.status.unwrap();
    assert_eq!((end.succeeded, end.failed), (2, 0));
}
