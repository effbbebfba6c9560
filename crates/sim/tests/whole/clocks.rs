//! Clocks that are wrong, or are set while everything runs: pauses, deadlines and silence are counted on elapsed time.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube::api::ListParams;
use prewarm_api::kruise::PullPhase;
use prewarm_clock::Clock;
use prewarm_embedded::faults::{Action, Filter, ScriptedFault, Verb};
use prewarm_sim::Cluster;
use serde_json::json;

use crate::support::{entry, tag_status, told_within, write_images};

const IMAGE: &str = "nginx:1";
const HOUR: i64 = 3600;
/// How far clocks are set, forward and back.
const JUMPS: [i64; 2] = [HOUR, -HOUR];

/// A clock that is set while it runs.
struct SetClock {
    right: Arc<dyn Clock>,
    offset: AtomicI64,
}

impl SetClock {
    fn set(&self, seconds: i64) {
        self.offset.store(seconds, Ordering::Relaxed);
    }
}

impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        self.right.now() + SignedDuration::from_secs(self.offset.load(Ordering::Relaxed))
    }
}

fn clock_of(cluster: &Cluster) -> Arc<SetClock> {
    Arc::new(SetClock { right: cluster.clock.clone(), offset: AtomicI64::new(0) })
}

/// A cluster with a silent node, and the clock of its controller, which alone can be set.
async fn silent_cluster() -> (Cluster, Arc<SetClock>) {
    let mut cluster = Cluster::new();
    cluster.make_node("node-1", json!({})).await;
    let clock = clock_of(&cluster);
    let right = std::mem::replace(&mut cluster.clock, clock.clone());
    cluster.start_controller();
    cluster.clock = right;
    cluster.pass(1).await;
    (cluster, clock)
}

#[tokio::test(start_paused = true)]
async fn a_node_is_silent_after_ten_minutes_whatever_the_clock_is_set_to() {
    for jump in JUMPS {
        let (cluster, clock) = silent_cluster().await;
        cluster.pull("warm", json!({"image": IMAGE})).await;
        told_within(&cluster, 5, "node-1", IMAGE).await;
        cluster.pass(60).await;
        clock.set(jump);
        cluster.pass(525).await;
        assert_eq!(tag_status(&cluster, "node-1", IMAGE).await, None, "{jump}");
        cluster.finished_within(30, "warm").await;
        let verdict = tag_status(&cluster, "node-1", IMAGE).await.unwrap();
        assert_eq!(verdict.phase, PullPhase::Failed, "{jump}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_has_its_deadline_and_its_ttl_whatever_the_clock_is_set_to() {
    for jump in JUMPS {
        let (cluster, clock) = silent_cluster().await;
        let policy = json!({"activeDeadlineSeconds": 300, "ttlSecondsAfterFinished": 300});
        let pulling = json!({"timeoutSeconds": 60});
        let spec = json!({"image": IMAGE, "completionPolicy": policy, "pullPolicy": pulling});
        cluster.pull("warm", spec).await;
        told_within(&cluster, 5, "node-1", IMAGE).await;
        clock.set(jump);
        cluster.pass(285).await;
        assert_eq!(cluster.status("warm").await.completion_time, None, "{jump}");
        cluster.finished_within(30, "warm").await;
        clock.set(-jump);
        cluster.pass(270).await;
        assert!(cluster.jobs().get_opt("warm").await.unwrap().is_some(), "{jump}");
        cluster
            .within(Duration::from_mins(1), "the end of its TTL", async || {
                cluster.jobs().get_opt("warm").await.unwrap().is_none()
            })
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_write_is_tried_again_soon_whatever_the_clock_is_set_to() {
    for jump in JUMPS {
        let (cluster, clock) = silent_cluster().await;
        let fails = ScriptedFault::when(|number| number <= 4, Action::InternalError);
        cluster.faults.add(fails.of(Filter::verb(Verb::Patch).of("nodeimages")));
        cluster.pull("warm", json!({"image": IMAGE})).await;
        cluster.pass(2).await;
        clock.set(jump);
        told_within(&cluster, 15, "node-1", IMAGE).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_schedule_follows_the_time_of_day_and_runs_once_an_hour_of_it() {
    let (cluster, clock) = silent_cluster().await;
    cluster.cron("v1beta1", "base", &json!({"schedule": "30 * * * *"})).await;
    cluster.pass(60).await;
    let runs = async || cluster.lists().list(&ListParams::default()).await.unwrap().items.len();
    // It is 8:01; at 8:35 a run has come.
    clock.set(34 * 60);
    cluster.pass(70).await;
    assert_eq!(runs().await, 1);
    // Half past eight comes once more, and brings no second run.
    clock.set(0);
    cluster.pass(35 * 60).await;
    assert_eq!(runs().await, 1);
    cluster.pass(60 * 60).await;
    assert_eq!(runs().await, 2);
}

/// The node's stamps are of its own clock; the controller counts from when it heard of the pull.
#[tokio::test(start_paused = true)]
async fn a_node_whose_clock_is_half_an_hour_off_is_not_given_up_while_it_pulls() {
    for offset in [HOUR / 2, -HOUR / 2] {
        let mut cluster = Cluster::new();
        cluster.publish(IMAGE, Duration::from_mins(15));
        let clock = clock_of(&cluster);
        clock.set(offset);
        let right = std::mem::replace(&mut cluster.clock, clock);
        cluster.add_nodes(1).await;
        cluster.clock = right;
        cluster.start_controller();
        cluster.pass(1).await;
        let mut asked = entry("1", 36_000);
        asked["pullPolicy"]["activeDeadlineSeconds"] = json!(1000);
        asked["pullPolicy"]["timeoutSeconds"] = json!(1000);
        write_images(&cluster, "node-1", json!({"nginx": {"tags": [asked]}})).await;
        cluster.pass(890).await;
        assert_eq!(
            tag_status(&cluster, "node-1", IMAGE).await.unwrap().phase,
            PullPhase::Pulling,
            "{offset}"
        );
        cluster.pass(15).await;
        assert_eq!(
            tag_status(&cluster, "node-1", IMAGE).await.unwrap().phase,
            PullPhase::Succeeded,
            "{offset}"
        );
    }
}
