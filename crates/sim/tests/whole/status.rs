//! What a job says about itself (kruise 7.5, R45–R49), to the letter.

use prewarm_api::kruise::ImagePullJobStatus;
use prewarm_sim::Cluster;
use serde_json::json;

use crate::support::{
    VERSIONS, asked, cluster, condition, entry, gone_within, make, notes, report, report_version,
    silent_cluster, tag, tag_status, told_within, write_images,
};

const IMAGE: &str = "nginx:1";

fn counts(status: &ImagePullJobStatus) -> (i32, i32, i32, i32) {
    (status.desired, status.active, status.succeeded, status.failed)
}

/// A job that has told all these nodes.
async fn told(nodes: &[&str]) -> Cluster {
    let cluster = silent_cluster(nodes).await;
    cluster.pull("warm", json!({"image": IMAGE, "parallelism": 100})).await;
    for node in nodes {
        told_within(&cluster, 5, node, IMAGE).await;
    }
    cluster
}

/// kruise T40, T48.
#[tokio::test(start_paused = true)]
async fn a_job_whose_nodes_have_succeeded_has_completed() {
    let cluster = told(&["a"]).await;
    report(&cluster, "a", IMAGE, "Succeeded").await;
    let status = cluster.finished_within(5, "warm").await.status.unwrap();
    assert_eq!(counts(&status), (1, 0, 1, 0));
    assert_eq!(status.message.as_deref(), Some("job has completed"));
    assert_eq!(status.failed_nodes, None);
    let conditions = status.conditions.as_ref();
    assert_eq!(
        condition(conditions, "Complete"),
        Some(("True".into(), "Finished".into(), "the image is on all 1 nodes".into()))
    );
    assert_eq!(condition(conditions, "Failed"), None);
    assert_eq!(condition(conditions, "Progressing").unwrap().0, "False");
    assert!(status.start_time.is_some() && status.completion_time >= status.start_time);
}

/// kruise T41.
#[tokio::test(start_paused = true)]
async fn nodes_are_counted_by_where_they_are() {
    let cluster = told(&["a", "b", "c"]).await;
    report(&cluster, "a", IMAGE, "Succeeded").await;
    report(&cluster, "b", IMAGE, "Pulling").await;
    report(&cluster, "c", IMAGE, "Failed").await;
    cluster.pass(3).await;
    let status = cluster.status("warm").await;
    assert_eq!(counts(&status), (3, 1, 1, 1));
    assert_eq!(status.failed_nodes, Some(vec!["c".to_owned()]));
    assert_eq!(status.message.as_deref(), Some("job is running, progress 66.7%"));
    report(&cluster, "b", IMAGE, "Succeeded").await;
    let end = cluster.finished_within(5, "warm").await.status.unwrap();
    let failed = condition(end.conditions.as_ref(), "Failed").unwrap();
    assert_eq!(failed.2, "1 of 3 nodes do not have the image; failedNodes names the first 500");
    assert_eq!(condition(end.conditions.as_ref(), "Complete"), None);
}

/// kruise T42, T43, T44.
#[tokio::test(start_paused = true)]
async fn a_node_without_an_answer_to_this_round_is_active() {
    let cluster = told(&["a", "b", "c"]).await;
    report_version(&cluster, "a", "nginx:2", "Succeeded", 0).await;
    report_version(&cluster, "b", IMAGE, "Succeeded", 7).await;
    cluster.pass(3).await;
    let status = cluster.status("warm").await;
    assert_eq!(counts(&status), (3, 3, 0, 0));
    assert_eq!(status.message.as_deref(), Some("job is running, progress 0.0%"));
    assert_eq!(condition(status.conditions.as_ref(), "Progressing").unwrap().1, "Pulling");
}

/// kruise T46.
#[tokio::test(start_paused = true)]
async fn an_entry_of_somebody_else_is_no_grant() {
    let cluster = silent_cluster(&["a"]).await;
    write_images(&cluster, "a", json!({"nginx": {"tags": [entry("1", 3600)]}})).await;
    report(&cluster, "a", IMAGE, "Succeeded").await;
    cluster.pull("warm", json!({"image": IMAGE, "parallelism": 0})).await;
    cluster.pass(10).await;
    assert_eq!(counts(&cluster.status("warm").await), (1, 0, 0, 0));
    assert_eq!(tag(&cluster, "a", IMAGE).await.unwrap().owner_references, None);
}

/// kruise T47: refused at the door.
#[tokio::test(start_paused = true)]
async fn an_image_that_is_no_reference_is_refused() {
    let cluster = silent_cluster(&["a"]).await;
    let job = serde_json::from_value(json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob", "metadata": {"name": "bad"},
        "spec": {"image": "Not An Image", "completionPolicy": {}},
    }));
    let answer = cluster.jobs().create(&kube::api::PostParams::default(), &job.unwrap()).await;
    assert!(answer.unwrap_err().to_string().contains("spec.image"));
}

/// kruise T49.
#[tokio::test(start_paused = true)]
async fn a_deadline_fails_each_node_that_is_not_done_once() {
    let cluster = silent_cluster(&["a", "b", "c", "d"]).await;
    let spec = json!({
        "image": IMAGE, "parallelism": 2, "pullPolicy": {"timeoutSeconds": 300},
        "completionPolicy": {"type": "Always", "activeDeadlineSeconds": 300},
    });
    cluster.pull("warm", spec).await;
    told_within(&cluster, 5, "a", IMAGE).await;
    report(&cluster, "a", IMAGE, "Succeeded").await;
    told_within(&cluster, 5, "b", IMAGE).await;
    report(&cluster, "b", IMAGE, "Pulling").await;
    told_within(&cluster, 5, "c", IMAGE).await;
    report(&cluster, "c", IMAGE, "Pulling").await;
    cluster.pass(280).await;
    assert_eq!(counts(&cluster.status("warm").await), (4, 2, 1, 0));
    let status = cluster.finished_within(25, "warm").await.status.unwrap();
    assert_eq!(counts(&status), (4, 0, 1, 3));
    assert_eq!(status.message.as_deref(), Some("job exceeds activeDeadlineSeconds"));
    assert_eq!(status.failed_nodes, Some(vec!["b".to_owned(), "c".to_owned(), "d".to_owned()]));
    let (_, reason, message) = condition(status.conditions.as_ref(), "Failed").unwrap();
    assert_eq!(reason, "DeadlineExceeded");
    assert!(message.starts_with("3 of 4 nodes"));
    assert_eq!(tag(&cluster, "d", IMAGE).await, None, "no further work is handed out");
    assert!(tag(&cluster, "b", IMAGE).await.is_some(), "and none is taken back");
    let took = status.completion_time.unwrap().0.duration_since(status.start_time.unwrap().0);
    assert_eq!(took.as_secs(), 300);
}

/// kruise R47, R48: nobody to wait for.
#[tokio::test(start_paused = true)]
async fn a_job_without_nodes_completes_at_once_unless_it_never_does() {
    for version in VERSIONS {
        let cluster = silent_cluster(&[]).await;
        let spec = |type_: &str| json!({"image": IMAGE, "completionPolicy": {"type": type_}});
        make(&cluster, version, "ImagePullJob", "ends", spec("Always")).await;
        make(&cluster, version, "ImagePullJob", "stays", spec("Never")).await;
        let end = cluster.finished_within(3, "ends").await.status.unwrap();
        assert_eq!((counts(&end), end.message.as_deref()), ((0, 0, 0, 0), Some("job has completed")));
        let stays = cluster.status("stays").await;
        assert_eq!(
            (counts(&stays), stays.message.as_deref()),
            ((0, 0, 0, 0), Some("job is running, no progress"))
        );
        assert_eq!(condition(stays.conditions.as_ref(), "Progressing").unwrap().1, "NoNodes");
    }
}

/// kruise W43.
#[tokio::test(start_paused = true)]
async fn of_many_failed_nodes_the_first_five_hundred_are_named() {
    let cluster = silent_cluster(&[]).await;
    for number in 0..520 {
        cluster.make_node(&format!("node-{number:03}"), json!({})).await;
    }
    cluster.pass(5).await;
    let spec = json!({
        "image": IMAGE, "parallelism": 3, "pullPolicy": {"timeoutSeconds": 60},
        "completionPolicy": {"type": "Always", "activeDeadlineSeconds": 60},
    });
    cluster.pull("warm", spec).await;
    let status = cluster.finished_within(70, "warm").await.status.unwrap();
    assert_eq!(counts(&status), (520, 0, 0, 520));
    let names = status.failed_nodes.unwrap();
    assert_eq!((names.len(), names[0].as_str(), names[499].as_str()), (500, "node-000", "node-499"));
    assert!(names.is_sorted());
}

#[tokio::test(start_paused = true)]
async fn bytes_are_added_up_over_the_nodes() {
    let cluster = cluster(2, &[IMAGE]).await;
    for node in cluster.nodes.values() {
        node.runtime.image(IMAGE).size(7_000_000).takes(std::time::Duration::from_secs(40));
    }
    cluster.pull("warm", json!({"image": IMAGE, "parallelism": 2})).await;
    let under_way = cluster
        .job_within(30, "warm", |job| job.status.as_ref().is_some_and(|status| status.bytes_done > Some(0)))
        .await;
    assert!(under_way.status.unwrap().bytes_total >= Some(14_000_000));
    let end = cluster.finished_within(120, "warm").await.status.unwrap();
    let of_one = tag_status(&cluster, "node-1", IMAGE).await.unwrap().bytes_total.unwrap();
    assert_eq!((end.bytes_done, end.bytes_total), (Some(2 * of_one), Some(2 * of_one)));
}

/// kruise R40, W8: names that no node has.
#[tokio::test(start_paused = true)]
async fn unknown_names_are_told_and_count_from_the_moment_they_are_nodes() {
    let mut cluster = cluster(1, &[IMAGE]).await;
    let spec = json!({
        "image": IMAGE, "parallelism": 5, "selector": {"names": ["node-1", "node-7", "node-8"]},
        "completionPolicy": {"type": "Never"},
    });
    cluster.pull("warm", spec).await;
    cluster.pass(5).await;
    let status = cluster.status("warm").await;
    let (holds, reason, message) = condition(status.conditions.as_ref(), "NodesFound").unwrap();
    assert_eq!((status.desired, holds.as_str(), reason.as_str()), (1, "False", "UnknownNodes"));
    assert!(message.contains("node-7, node-8"), "{message}");
    assert_eq!(notes(&cluster, "ImagePullJob", "warm", "UnknownNodes").await, [message]);
    cluster.add_node("node-7", json!({})).await;
    cluster.add_node("node-8", json!({})).await;
    cluster
        .job_within(10, "warm", |job| job.status.as_ref().is_some_and(|status| status.succeeded == 3))
        .await;
    let status = cluster.status("warm").await;
    assert_eq!(condition(status.conditions.as_ref(), "NodesFound").unwrap().0, "True");
}

/// kruise R34, R57.
#[tokio::test(start_paused = true)]
async fn the_finalizer_is_there_while_a_job_with_secrets_is_under_way() {
    let cluster = silent_cluster(&["a"]).await;
    cluster.pull("warm", json!({"image": IMAGE, "pullSecrets": ["registry"]})).await;
    told_within(&cluster, 5, "a", IMAGE).await;
    let finalizers =
        async || cluster.jobs().get("warm").await.unwrap().metadata.finalizers.unwrap_or_default();
    assert_eq!(finalizers().await, ["apps.kruise.io/deletion-protection"]);
    report(&cluster, "a", IMAGE, "Succeeded").await;
    cluster.finished_within(5, "warm").await;
    cluster.pass(2).await;
    assert!(finalizers().await.is_empty());
}

/// kruise R34, R57: whoever uninstalls the controller first can delete such jobs, their namespaces and definitions.
#[tokio::test(start_paused = true)]
async fn a_job_without_secrets_needs_neither_finalizer_nor_namespace() {
    let cluster = silent_cluster(&["a"]).await;
    let namespaces: kube::Api<k8s_openapi::api::core::v1::Namespace> = kube::Api::all(cluster.client.clone());
    namespaces.delete("kruise-daemon-config", &kube::api::DeleteParams::default()).await.unwrap();
    cluster.pass(5).await;
    for end in ["deleted", "finished"] {
        cluster.pull(end, json!({"image": IMAGE})).await;
        told_within(&cluster, 5, "a", IMAGE).await;
        let finalizers =
            async || cluster.jobs().get(end).await.unwrap().metadata.finalizers.unwrap_or_default();
        assert!(finalizers().await.is_empty(), "{end}");
        if end == "deleted" {
            cluster.delete_job(end).await;
            gone_within(&cluster, 5, end).await;
            crate::support::untold_within(&cluster, 5, "a", IMAGE).await;
        } else {
            report(&cluster, "a", IMAGE, "Succeeded").await;
            cluster.finished_within(5, end).await;
            cluster.pass(2).await;
            assert!(finalizers().await.is_empty());
        }
    }
}

/// kruise R72, R34: editing what is over does nothing, and its time runs out.
#[tokio::test(start_paused = true)]
async fn a_finished_job_is_deleted_after_its_ttl_and_does_nothing_before() {
    let cluster = cluster(2, &[IMAGE, "nginx:2"]).await;
    let spec =
        json!({"image": IMAGE, "parallelism": 2, "completionPolicy": {"ttlSecondsAfterFinished": 100}});
    cluster.pull("warm", spec).await;
    let end = cluster.finished_within(30, "warm").await.status.unwrap();
    cluster.edit("warm", json!({"spec": {"image": "nginx:2"}})).await;
    cluster.pass(90).await;
    assert_eq!(cluster.status("warm").await, end);
    assert_eq!(cluster.nodes["node-1"].pulls("nginx:2"), 0);
    gone_within(&cluster, 12, "warm").await;
    cluster.pass(5).await;
    assert_eq!(tag(&cluster, "node-1", IMAGE).await, None);
}

/// One write a second for each job, the first at once, and the last.
#[tokio::test(start_paused = true)]
async fn a_status_is_written_at_once_then_once_a_second_and_at_the_end() {
    let nodes: Vec<String> = (0..40).map(|number| format!("node-{number:02}")).collect();
    let cluster = told(&nodes.iter().map(String::as_str).collect::<Vec<_>>()).await;
    cluster.pass(10).await;
    let since = cluster.faults.journal().len();
    let begin = tokio::time::Instant::now();
    for node in &nodes {
        report(&cluster, node, IMAGE, "Succeeded").await;
        tokio::time::sleep(std::time::Duration::from_millis(250)).await;
    }
    cluster.finished_within(1, "warm").await;
    let took = begin.elapsed();
    cluster.pass(10).await;
    let writes: Vec<_> = asked(&cluster, since, "imagepulljobs/warm/status")
        .into_iter()
        .filter(|entry| entry.verb.is_write())
        .collect();
    let times: Vec<_> = writes.iter().map(|entry| entry.at).collect();
    assert!(writes.len() >= 8 && writes.len() as u64 <= took.as_secs() + 2, "{times:?}");
    let second = std::time::Duration::from_secs(1);
    let gaps: Vec<_> = times.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    assert!(gaps[..gaps.len() - 1].iter().all(|gap| *gap >= second), "{times:?}");
}
