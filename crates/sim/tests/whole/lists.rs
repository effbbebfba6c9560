//! ImageListPullJobs: the end-to-end cases (kruise 7.2) in both versions, the decisions about children (kruise 7.10), and
//! what used to go wrong with them.

use std::collections::BTreeMap;
use std::time::Duration;

use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use prewarm_api::kruise::{ImageListPullJob, ImageListPullJobStatus, ImagePullJob};
use prewarm_embedded::faults::{Action, Filter, ScriptedFault, Verb};
use prewarm_sim::Cluster;
use serde_json::{Value, json};

use crate::support::{
    VERSIONS, cluster, condition, make, make_fake, node_image, notes, parts, real_nodes, report, told_within,
};

async fn children(cluster: &Cluster) -> Vec<ImagePullJob> {
    cluster.jobs().list(&ListParams::default()).await.unwrap().items
}

/// The children by image, as name and UID.
async fn identities(cluster: &Cluster) -> BTreeMap<String, String> {
    let children = children(cluster).await.into_iter();
    children.map(|child| (child.spec.image, child.metadata.uid.unwrap())).collect()
}

async fn status(cluster: &Cluster, name: &str) -> ImageListPullJobStatus {
    cluster.lists().get(name).await.unwrap().status.unwrap_or_default()
}

async fn list_within(
    cluster: &Cluster,
    seconds: u64,
    name: &str,
    is_wanted: impl Fn(&ImageListPullJobStatus) -> bool,
) -> ImageListPullJobStatus {
    let wait = Duration::from_secs(seconds);
    cluster.within(wait, "the wanted status", async || is_wanted(&status(cluster, name).await)).await;
    status(cluster, name).await
}

async fn children_within(cluster: &Cluster, seconds: u64, count: usize) {
    let wait = Duration::from_secs(seconds);
    cluster.within(wait, "the children", async || children(cluster).await.len() == count).await;
}

async fn edit(cluster: &Cluster, name: &str, spec: Value) {
    let patch = Patch::Merge(json!({ "spec": spec }));
    let _: ImageListPullJob = cluster.lists().patch(name, &PatchParams::default(), &patch).await.unwrap();
}

/// kruise T8.
#[tokio::test(start_paused = true)]
async fn a_list_pulls_every_image_everywhere_and_goes_with_its_children_when_its_time_is_over() {
    for version in VERSIONS {
        let cluster = cluster(2, &["a:1", "b:1"]).await;
        make_fake(&cluster, "fake").await;
        let spec = json!({
            "images": ["a:1", "b:1"], "imagePullPolicy": "Always", "selector": real_nodes(),
            "pullPolicy": {"timeoutSeconds": 50, "backoffLimit": 2},
            "completionPolicy": {"type": "Always", "activeDeadlineSeconds": 50, "ttlSecondsAfterFinished": 20},
        });
        make(&cluster, version, "ImageListPullJob", "stack", spec).await;
        children_within(&cluster, 3, 2).await;
        list_within(&cluster, 3, "stack", |status| status.desired == 2).await;
        let end = list_within(&cluster, 270, "stack", |status| status.completion_time.is_some()).await;
        assert_eq!((end.succeeded, end.completed, end.active), (2, 2, 0), "{version}");
        let wait = Duration::from_secs(25);
        cluster
            .within(wait, "an end of the list", async || {
                cluster.lists().get_opt("stack").await.unwrap().is_none()
            })
            .await;
        children_within(&cluster, 10, 0).await;
    }
}

/// kruise T9.
#[tokio::test(start_paused = true)]
async fn the_children_of_a_deleted_list_go_with_it() {
    for version in VERSIONS {
        let cluster = cluster(2, &["a:1", "b:1"]).await;
        let spec = json!({
            "images": ["a:1", "b:1"], "imagePullPolicy": "IfNotPresent", "selector": {"names": ["node-1"]},
            "completionPolicy": {"type": "Always"},
        });
        make(&cluster, version, "ImageListPullJob", "stack", spec).await;
        list_within(&cluster, 360, "stack", |status| status.completion_time.is_some()).await;
        assert_eq!(children(&cluster).await.len(), 2, "{version}");
        cluster.lists().delete("stack", &DeleteParams::background()).await.unwrap();
        children_within(&cluster, 60, 0).await;
        cluster
            .node_image_within(10, "node-1", |image| image.is_some_and(|image| image.spec.images.is_empty()))
            .await;
    }
}

/// kruise T10.
#[tokio::test(start_paused = true)]
async fn a_failed_image_is_named_with_its_job_when_a_list_ends() {
    for version in VERSIONS {
        let cluster = cluster(2, &["a:1"]).await;
        make_fake(&cluster, "fake").await;
        let spec =
            json!({"images": ["a:1"], "imagePullPolicy": "Always", "parallelism": 3, "completionPolicy": {}});
        make(&cluster, version, "ImageListPullJob", "stack", spec).await;
        told_within(&cluster, 30, "fake", "a:1").await;
        report(&cluster, "fake", "a:1", "Failed").await;
        let end = list_within(&cluster, 180, "stack", |status| status.completion_time.is_some()).await;
        let failed = end.failed_image_statuses.unwrap();
        let child = children(&cluster).await[0].metadata.name.clone().unwrap();
        assert_eq!((failed.len(), failed[0].name.as_deref()), (1, Some("a:1")), "{version}");
        assert_eq!(failed[0].image_pull_job, Some(child.clone()));
        assert!(failed[0].message.as_ref().unwrap().contains(&child));
        assert_eq!((end.desired, end.completed, end.succeeded), (1, 1, 0));
    }
}

/// kruise T11.
#[tokio::test(start_paused = true)]
async fn a_list_that_never_ends_counts_a_failed_image_as_completed() {
    for version in VERSIONS {
        let cluster = cluster(2, &["a:1"]).await;
        make_fake(&cluster, "fake").await;
        let spec = json!({
            "images": ["a:1"], "imagePullPolicy": "Always", "parallelism": 3,
            "completionPolicy": {"type": "Never"},
        });
        make(&cluster, version, "ImageListPullJob", "stack", spec).await;
        told_within(&cluster, 30, "fake", "a:1").await;
        report(&cluster, "fake", "a:1", "Failed").await;
        let status = list_within(&cluster, 180, "stack", |status| status.completed == 1).await;
        assert_eq!(status.failed_image_statuses.map(|failed| failed.len()), Some(1), "{version}");
        assert_eq!(status.completion_time, None);
    }
}

/// kruise T95: one child has succeeded, one is at work, one has failed.
#[tokio::test(start_paused = true)]
async fn a_list_counts_its_children() {
    let cluster = cluster(2, &["good:1", "slow:1"]).await;
    for node in cluster.nodes.values() {
        node.runtime.image("slow:1").hangs();
    }
    let spec = json!({
        "images": ["good:1", "slow:1", "bad:1"], "parallelism": 2,
        "pullPolicy": {"timeoutSeconds": 600, "backoffLimit": 0},
    });
    cluster.pull_list("stack", spec).await;
    let status = list_within(&cluster, 60, "stack", |status| status.completed == 2).await;
    assert_eq!((status.desired, status.active, status.succeeded), (3, 1, 1));
    let failed = status.failed_image_statuses.unwrap();
    assert_eq!(failed.iter().map(|image| image.name.as_deref().unwrap()).collect::<Vec<_>>(), ["bad:1"]);
    assert_eq!(status.completion_time, None);
}

/// kruise T96, T97.
#[tokio::test(start_paused = true)]
async fn an_image_that_joins_a_list_gets_a_child_and_one_that_leaves_loses_its_own() {
    let cluster = cluster(2, &["a:1", "b:1", "c:1"]).await;
    cluster
        .pull_list("stack", json!({"images": ["a:1", "b:1"], "completionPolicy": {"type": "Never"}}))
        .await;
    list_within(&cluster, 60, "stack", |status| status.completed == 2).await;
    let before = identities(&cluster).await;
    edit(&cluster, "stack", json!({"images": ["a:1", "b:1", "c:1"]})).await;
    list_within(&cluster, 60, "stack", |status| status.succeeded == 3).await;
    let with_three = identities(&cluster).await;
    assert_eq!((with_three.get("a:1"), with_three.get("b:1")), (before.get("a:1"), before.get("b:1")));
    edit(&cluster, "stack", json!({"images": ["b:1", "c:1"]})).await;
    children_within(&cluster, 10, 2).await;
    let with_two = identities(&cluster).await;
    assert_eq!((with_two.get("b:1"), with_two.get("c:1")), (with_three.get("b:1"), with_three.get("c:1")));
    list_within(&cluster, 10, "stack", |status| status.desired == 2 && status.succeeded == 2).await;
    cluster.pass(60).await;
    assert!(!node_image(&cluster, "node-1").await.spec.images.contains_key(parts("a:1").0));
    for (reason, word) in [("create", "created 1 "), ("delete", "deleted 1 ")] {
        let told =
            notes(&cluster, "ImageListPullJob", "stack", &format!("Successful {reason} ImagePullJob")).await;
        assert!(told.iter().any(|note| note.starts_with(word)), "{told:?}");
    }
}

/// kruise T98.
#[tokio::test(start_paused = true)]
async fn another_template_means_other_children() {
    let cluster = cluster(1, &["a:1", "b:1"]).await;
    for node in cluster.nodes.values() {
        node.runtime.image("b:1").hangs();
    }
    cluster.pull_list("stack", json!({"images": ["a:1", "b:1"]})).await;
    list_within(&cluster, 30, "stack", |status| status.completed == 1).await;
    let before = identities(&cluster).await;
    edit(&cluster, "stack", json!({"completionPolicy": {"type": "Never"}})).await;
    let replaced = async || {
        let now = identities(&cluster).await;
        now.len() == 2 && now.iter().all(|(image, uid)| before.get(image) != Some(uid))
    };
    cluster.within(Duration::from_secs(10), "other children", replaced).await;
    cluster.pass(10).await;
    assert_eq!(children(&cluster).await.len(), 2);
    let label = |metadata: &kube::api::ObjectMeta| {
        metadata.labels.clone().unwrap()["controller-revision-hash"].clone()
    };
    let list = cluster.lists().get("stack").await.unwrap();
    for child in children(&cluster).await {
        assert_eq!(label(&child.metadata), label(&list.metadata));
        let owner = &child.metadata.owner_references.as_ref().unwrap()[0];
        assert_eq!((owner.kind.as_str(), owner.controller), ("ImageListPullJob", Some(true)));
        assert!(child.metadata.name.as_ref().unwrap().starts_with("stack-"));
    }
}

/// kruise W9: a child that is done early stays as long as its list.
#[tokio::test(start_paused = true)]
async fn a_child_does_not_end_before_its_list() {
    let cluster = cluster(1, &["fast:1"]).await;
    let cluster = {
        let mut cluster = cluster;
        cluster.publish("slow:1", Duration::from_mins(5));
        cluster
    };
    let spec = json!({"images": ["fast:1", "slow:1"], "completionPolicy": {"ttlSecondsAfterFinished": 0}});
    cluster.pull_list("stack", spec).await;
    list_within(&cluster, 30, "stack", |status| status.completed == 1).await;
    let before = identities(&cluster).await;
    cluster.pass(120).await;
    assert_eq!(identities(&cluster).await, before);
    assert_eq!(cluster.nodes["node-1"].pulls("fast:1"), 1);
    cluster
        .within(Duration::from_mins(10), "an end of the list", async || {
            cluster.lists().get_opt("stack").await.unwrap().is_none()
        })
        .await;
    children_within(&cluster, 10, 0).await;
}

/// kruise W10: what left the list does not close it.
#[tokio::test(start_paused = true)]
async fn a_finished_child_whose_image_left_the_list_does_not_end_it() {
    let mut cluster = cluster(1, &["fast:1"]).await;
    cluster.publish("slow:1", Duration::from_mins(5));
    cluster.pull_list("stack", json!({"images": ["fast:1", "slow:1"]})).await;
    list_within(&cluster, 30, "stack", |status| status.completed == 1).await;
    edit(&cluster, "stack", json!({"images": ["slow:1"]})).await;
    cluster.pass(60).await;
    let now = status(&cluster, "stack").await;
    assert_eq!((now.desired, now.completed, now.completion_time), (1, 0, None));
    let end = list_within(&cluster, 600, "stack", |status| status.completion_time.is_some()).await;
    assert_eq!(end.succeeded, 1);
}

/// kruise R80, W11.
#[tokio::test(start_paused = true)]
async fn a_list_says_why_its_children_are_refused_and_goes_on_when_they_are_not() {
    let cluster = cluster(1, &["a:1", "b:1"]).await;
    let creations = Filter::verb(Verb::Create).of("imagepulljobs");
    cluster.faults.add(ScriptedFault::always(Action::Forbidden).of(creations));
    cluster.pull_list("stack", json!({"images": ["a:1", "b:1"]})).await;
    cluster.pass(60).await;
    let now = status(&cluster, "stack").await;
    let (holds, reason, message) = condition(now.conditions.as_ref(), "ChildrenCreated").unwrap();
    assert_eq!((holds.as_str(), reason.as_str()), ("False", "Refused"));
    assert!(message.contains("exceeded quota"), "{message}");
    let told = notes(&cluster, "ImageListPullJob", "stack", "Failed create ImagePullJob").await;
    assert!(told.iter().any(|note| note.contains("exceeded quota")), "{told:?}");
    cluster.faults.clear_script();
    let end = list_within(&cluster, 400, "stack", |status| status.completion_time.is_some()).await;
    assert_eq!((end.desired, end.succeeded), (2, 2));
    let (holds, _, _) = condition(end.conditions.as_ref(), "ChildrenCreated").unwrap();
    assert_eq!(holds, "True");
}

#[tokio::test(start_paused = true)]
async fn what_a_list_says_about_itself() {
    let cluster = cluster(2, &["a:1"]).await;
    cluster.pull_list("stack", json!({"images": ["a:1"], "parallelism": 0})).await;
    let waits = list_within(&cluster, 10, "stack", |status| {
        condition(status.conditions.as_ref(), "Progressing").is_some_and(|(_, reason, _)| reason == "Paused")
    })
    .await;
    assert_eq!((waits.desired, waits.completed), (1, 0));
    edit(&cluster, "stack", json!({"parallelism": 2})).await;
    let end = list_within(&cluster, 60, "stack", |status| status.completion_time.is_some()).await;
    let complete = condition(end.conditions.as_ref(), "Complete").unwrap();
    assert_eq!(complete, ("True".into(), "Finished".into(), "all 1 images are on every node".into()));
    assert_eq!(condition(end.conditions.as_ref(), "Failed"), None);
}
