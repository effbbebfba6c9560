//! The main job.

use std::time::Duration;

use prewarm_sim::Cluster;
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn a_job_puts_its_image_on_every_node() {
    let mut cluster = Cluster::new();
    cluster.publish("nginx:1", Duration::from_secs(1));
    cluster.add_nodes(3).await;
    cluster.start_controller();
    cluster.pass(1).await;
    cluster.pull("warm", json!({"image": "nginx:1", "parallelism": 2})).await;
    let job = cluster.finished_within(60, "warm").await;
    let status = job.status.unwrap();
    assert_eq!((status.desired, status.succeeded, status.failed, status.active), (3, 3, 0, 0));
    for node in cluster.nodes.values() {
        assert!(node.runtime.has("nginx:1"), "{}", node.name);
    }
}

#[tokio::test(start_paused = true)]
async fn idle_means_no_writes_and_a_deleted_job_leaves_nothing_behind() {
    let mut cluster = Cluster::new();
    cluster.publish("nginx:1", Duration::from_secs(1));
    cluster.add_nodes(3).await;
    cluster.start_controller();
    cluster.pass(1).await;
    cluster.pull("warm", json!({"image": "nginx:1", "parallelism": 2})).await;
    cluster.finished_within(60, "warm").await;
    cluster.pass(5).await;
    let writes = cluster.faults.writes();
    cluster.pass(600).await;
    assert_eq!(cluster.faults.writes(), writes, "{:#?}", cluster.faults.journal());
    cluster.delete_job("warm").await;
    for node in cluster.nodes.keys() {
        cluster
            .node_image_within(10, node, |image| image.is_some_and(|image| image.spec.images.is_empty()))
            .await;
    }
    assert!(cluster.jobs().get_opt("warm").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_list_puts_all_its_images_on_every_node_with_one_patch_each() {
    let mut cluster = Cluster::new();
    let images: Vec<String> = (0..20).map(|number| format!("app-{number}:1")).collect();
    for image in &images {
        cluster.publish(image, Duration::from_millis(100));
    }
    cluster.add_nodes(3).await;
    cluster.start_controller();
    cluster.pass(1).await;
    let before = cluster.node_images().get("node-1").await.unwrap().metadata.generation;
    cluster.pull_list("stack", json!({"images": images, "parallelism": 3})).await;
    cluster
        .within(Duration::from_mins(1), "the end of the list", async || {
            let list = cluster.lists().get("stack").await.unwrap();
            list.status.is_some_and(|status| status.completion_time.is_some() && status.succeeded == 20)
        })
        .await;
    let after = cluster.node_images().get("node-1").await.unwrap().metadata.generation;
    assert_eq!(after.unwrap() - before.unwrap(), 1, "spec writes to one node");
}
