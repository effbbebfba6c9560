//! What is reported, when, and how often (kruise D4 turned round: pushed, not polled; kruise D12–D14,
//! W14, W15, W50; reliability S10).

use std::time::Duration;

use prewarm_api::kruise::{
    FirstSyncStatus, ImageStatus, ImageTagStatus, NodeImageStatus, PullPhase, SyncResult,
};
use prewarm_runtime::Code;
use serde_json::{Value, json};

use crate::node::{Node, image, image_of, pass, policy, tag};

const APP: &str = "reg.example/app:1";
const NAME: &str = "reg.example/app";

#[tokio::test(start_paused = true)]
async fn the_status_has_exactly_the_fields_of_old_and_ours_beside_them() {
    let mut node = Node::new();
    let digests =
        [APP, "reg.example/app:2"].map(|image| node.fake.image(image).takes(Duration::from_secs(1)).digest());
    node.ask(json!({ NAME: image(&["2", "1"]) })).await;
    node.start();
    let mut status = node.settled(2).await;
    assert!(status.image_filesystem.take().is_some());
    assert_eq!(status.reported_by.take().as_deref(), Some("agent-1"));
    let time = |text: &str| Some(serde_json::from_value(json!(text)).unwrap());
    let ids: Vec<_> = tags(&status).into_iter().map(|tag| tag.image_id).collect();
    let done = |tag: &str, image_id: &Option<String>, digest: &String| ImageTagStatus {
        tag: tag.to_owned(),
        digest: Some(digest.clone()),
        phase: PullPhase::Succeeded,
        progress: 100,
        start_time: time("2026-11-15T08:00:00Z"),
        completion_time: time("2026-11-15T08:00:01Z"),
        image_id: image_id.clone(),
        ..ImageTagStatus::default()
    };
    let image = ImageStatus { tags: vec![done("1", &ids[0], &digests[0]), done("2", &ids[1], &digests[1])] };
    let wanted = NodeImageStatus {
        desired: 2,
        succeeded: 2,
        image_statuses: Some([(NAME.to_owned(), image)].into()),
        first_sync_status: Some(FirstSyncStatus {
            sync_at: time("2026-11-15T08:00:01Z"),
            status: Some(SyncResult::Succeeded),
            message: None,
        }),
        ..NodeImageStatus::default()
    };
    assert_eq!(status, wanted);
    // kruise D24: name and the id that the runtime gives.
    assert!(ids.iter().all(|id| id.as_ref().unwrap().starts_with("reg.example/app@sha256:")), "{ids:?}");
}

#[tokio::test(start_paused = true)]
async fn the_first_report_and_the_last_one_leave_at_once() {
    // kruise W14, W15: the daemon of old polled every three to five seconds.
    let mut node = Node::new();
    node.fake.image(APP).takes(Duration::from_secs(100));
    node.ask(json!({ NAME: image(&["1"]) })).await;
    node.start();
    node.until("the first report", |status| status.desired == 1).await;
    assert!(node.seconds() < 0.05, "{}", node.seconds());
    node.settled(1).await;
    assert!((100.0..100.05).contains(&node.seconds()), "{}", node.seconds());
}

#[tokio::test(start_paused = true)]
async fn fifty_tiny_images_cost_at_most_eight_reports() {
    let mut node = Node::new();
    let names: Vec<String> = (0..50).map(|number| format!("reg.example/tiny-{number}")).collect();
    for name in &names {
        node.fake.image(&format!("{name}:1")).takes(Duration::from_millis(60));
    }
    node.ask(names.iter().map(|name| (name.clone(), image(&["1"]))).collect()).await;
    node.start();
    assert_eq!(node.settled(50).await.succeeded, 50);
    assert!((1.5..1.8).contains(&node.seconds()), "{}", node.seconds());
    pass(60.0).await;
    assert!(node.status_writes() <= 8, "{}", node.status_writes());
}

#[tokio::test(start_paused = true)]
async fn an_idle_day_passes_without_a_write() {
    let mut node = Node::new();
    node.fake.image(APP);
    node.ask(json!({ NAME: image(&["1", "absent"]) })).await;
    node.start();
    node.settled(2).await;
    pass(10.0).await;
    let (writes, pulls) = (node.faults.writes(), node.fake.calls().len());
    pass(24.0 * 3600.0).await;
    assert_eq!((node.faults.writes(), node.fake.calls().len()), (writes, pulls));
    // reliability S10: the runtime is asked for its images once a minute and for nothing else.
    let listings = node.fake.requests("ListImages");
    assert!((1400..=1450).contains(&listings), "{listings}");
    assert!(node.fake.requests("ImageStatus") < 20);
}

#[tokio::test(start_paused = true)]
async fn the_first_pass_is_reported_once_it_has_ended_and_stays_as_it_is() {
    // kruise W50, R20.
    let mut node = Node::new();
    node.fake.image(APP).takes(Duration::from_secs(30));
    let failing = policy(tag("absent"), &json!({ "backoffLimit": 0 }));
    node.ask(json!({ NAME: image_of(vec![tag("1"), failing]) })).await;
    node.start();
    let status = node.until("the failure", |status| status.failed == 1).await;
    assert_eq!(status.first_sync_status, None, "one is still pulled");
    let first = node.settled(2).await.first_sync_status.unwrap();
    assert_eq!(first.status, Some(SyncResult::Failed));
    assert_eq!(first.message.as_deref(), Some("1 of 2 images could not be pulled"));
    node.change(json!({ NAME: image(&["1"]) })).await;
    node.settled(1).await;
    node.stop().await;
    node.start();
    pass(60.0).await;
    assert_eq!(node.status().await.first_sync_status, Some(first));
}

#[tokio::test(start_paused = true)]
async fn without_any_image_the_first_pass_ends_at_once() {
    let mut node = Node::new();
    node.ask(json!({})).await;
    node.start();
    let status = node.until("the first pass", |status| status.first_sync_status.is_some()).await;
    assert_eq!((status.desired, status.image_statuses), (0, None));
    assert_eq!(node.status_writes(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_status_that_somebody_else_wrote_over_is_corrected() {
    let mut node = Node::new();
    node.fake.image(APP);
    node.ask(json!({ NAME: image(&["1"]) })).await;
    node.start();
    let right = node.settled(1).await;
    let wrong = json!({ "status": { "succeeded": 7, "imageStatuses": null } });
    let patch = kube::api::Patch::Merge(wrong);
    node.api().patch_status(crate::node::NODE, &kube::api::PatchParams::default(), &patch).await.unwrap();
    let status = node.until("the correction", |status| status.succeeded == 1).await;
    assert_eq!(status.image_statuses, right.image_statuses);
}

#[tokio::test(start_paused = true)]
async fn the_largest_node_image_full_of_long_failures_is_stored_within_its_bounds() {
    let mut node = Node::new();
    node.config.parallel = 64;
    let mut images = serde_json::Map::new();
    for number in 0..256 {
        let name = format!("reg.example/{number:03}");
        let tags: Vec<String> = (0..5).map(|tag| format!("v{tag}")).collect();
        for tag in &tags {
            let text = format!("boom {}", "\"long words\" ".repeat(100));
            node.fake.image(&format!("{name}:{tag}")).fails(1, Code::Unknown, &text);
        }
        let entry = |name: &String| policy(tag(name), &json!({ "backoffLimit": 0 }));
        images.insert(name, image_of(tags.iter().map(entry).collect()));
    }
    node.ask(Value::Object(images)).await;
    node.start();
    let status = node.settled(1280).await;
    assert_eq!(status.failed, 1280);
    let size = serde_json::to_string(&status).unwrap().len();
    assert!((500_000..=600_000).contains(&size), "{size}");
    let longest = tags(&status).iter().filter_map(|tag| tag.message.as_ref()).map(String::len).max();
    assert!(longest.is_some_and(|length| length <= 512), "{longest:?}");
}

fn tags(status: &NodeImageStatus) -> Vec<ImageTagStatus> {
    let images = status.image_statuses.iter().flat_map(|images| images.values());
    images.flat_map(|image| image.tags.clone()).collect()
}
