use std::collections::BTreeSet;

use jiff::Timestamp;
use prewarm_api::kruise::{FailureClass, SkipReason};
use prewarm_api::ofen::RegistryPolicy;
use prewarm_plan::cluster::advanced_cron_job::runs::Fate;
use prewarm_plan::cluster::image_prefetch::status::PrefetchSize;
use prewarm_plan::cluster::measure::Measured;
use prewarm_plan::cluster::measure::{End, Phase};
use prewarm_plan::cluster::node_image_set::size::SetImage;
use prewarm_plan::cluster::size::{BroadcastPods, JobNodes, JobStates, Jobs, Nodes, Tags};
use prewarm_plan::object::ObjectKey;

use super::*;

/// Everything that is counted and not zero, without help, types and the version.
fn told(metrics: &Metrics) -> BTreeSet<String> {
    let text = metrics.encode();
    let lines = text.lines().filter_map(|line| line.strip_prefix("prewarm_controller_"));
    let is_zero = |line: &str| line.ends_with(" 0") || line.ends_with(" 0.0");
    lines.filter(|line| !is_zero(line) && !line.starts_with("build")).map(str::to_owned).collect()
}

fn lines<const N: usize>(lines: [&str; N]) -> BTreeSet<String> {
    lines.map(str::to_owned).into()
}

#[test]
fn every_series_is_there_from_the_start_at_zero() {
    let text = Metrics::new().encode();
    let counts = |prefix: &str| {
        text.lines().filter(|line| line.starts_with(&format!("prewarm_controller_{prefix}"))).count()
    };
    let written = [
        "node_image",
        "node_image_status",
        "image_pull_job",
        "image_pull_job_status",
        "image_list_pull_job",
        "image_list_pull_job_status",
        "secret",
        "broadcast_job",
        "broadcast_job_status",
        "advanced_cron_job_status",
        "image_prefetch",
        "image_prefetch_status",
        "node_image_set",
        "node_image_set_status",
        "child",
        "pod",
        "run",
        "event",
        "lease",
    ];
    assert_eq!(Written::all().into_iter().map(Written::as_str).collect::<Vec<_>>(), written);
    assert_eq!(counts("api_writes_total{"), written.len() * WriteResult::ALL.len());
    assert_eq!(counts("watch_reconnects_total{"), Kind::ALL.len());
    assert_eq!((counts("passes_total{"), counts("jobs{"), counts("nodes{"), counts("tags{")), (8, 18, 5, 5));
    assert_eq!((counts("job_nodes{"), counts("broadcast_pods{"), counts("grants_ended_total{")), (8, 5, 14));
    assert_eq!((counts("cron_runs_started_total{"), counts("cron_runs_ended_total{")), (2, 4));
    assert_eq!((counts("cron_runs_skipped_total{"), counts("grant_duration_seconds_count{")), (6, 5));
    assert_eq!(counts("oldest"), 0, "there is none");
    assert_eq!(told(&Metrics::new()), BTreeSet::new());
    assert!(text.contains(concat!(r#"prewarm_controller_build_info{version=""#, env!("CARGO_PKG_VERSION"))));
}

#[test]
fn a_turn_counts_the_passes_that_it_made() {
    let metrics = Metrics::new();
    let passes = |counts: &[(Subject, u64)]| {
        let mut passes = Passes::default();
        for (subject, count) in counts {
            (0..*count).for_each(|_| passes.count(*subject));
        }
        passes
    };
    let [source, job, list, _, node, _, broadcast, cron] = Subject::ALL;
    let first = [(source, 1), (job, 2), (list, 3), (node, 4), (broadcast, 5), (cron, 6)];
    metrics.passed(passes(&first), Some(Duration::from_secs(2)));
    metrics.passed(passes(&[(node, 36)]), Some(Duration::from_secs(4)));
    let wanted = lines([
        r#"passes_total{kind="source"} 1"#,
        r#"passes_total{kind="image_pull_job"} 2"#,
        r#"passes_total{kind="image_list_pull_job"} 3"#,
        r#"passes_total{kind="node_image"} 40"#,
        r#"passes_total{kind="broadcast_job"} 5"#,
        r#"passes_total{kind="advanced_cron_job"} 6"#,
        "turn_duration_seconds_sum 6.0",
        "turn_duration_seconds_count 2",
        r#"turn_duration_seconds_bucket{le="10.0"} 2"#,
        r#"turn_duration_seconds_bucket{le="+Inf"} 2"#,
    ]);
    assert_eq!(told(&metrics), wanted);
}

#[test]
fn sizes_are_those_of_the_last_look() {
    let metrics = Metrics::new();
    let nodes = Nodes { served: 9, ..Nodes::default() };
    let oldest_grant = Some(Timestamp::from_second(1_794_880_800).unwrap());
    metrics.holds(&Size { nodes, oldest_grant, ..Size::default() });
    assert_eq!(
        told(&metrics),
        lines([r#"nodes{state="served"} 9"#, "oldest_unfinished_grant_timestamp_seconds{} 1794880800"])
    );
    let states = JobStates { running: 1, paused: 2, succeeded: 3, failed: 4, terminating: 5 };
    let crons = JobStates { running: 6, paused: 7, terminating: 8, ..JobStates::default() };
    metrics.holds(&Size {
        nodes: Nodes { served: 1, silent: 2, unready: 3, pending: 4, excluded: 5 },
        tags: Tags { unanswered: 1, waiting: 2, pulling: 3, succeeded: 4, failed: 5 },
        jobs: Jobs { pulls: states, crons, ..Jobs::default() },
        job_nodes: JobNodes { secrets: 7, ..JobNodes::default() },
        broadcast_pods: BroadcastPods { unscheduled: 8, ..BroadcastPods::default() },
        queue: 9,
        ..Size::default()
    });
    let wanted = lines([
        r#"nodes{state="served"} 1"#,
        r#"nodes{state="silent"} 2"#,
        r#"nodes{state="unready"} 3"#,
        r#"nodes{state="pending"} 4"#,
        r#"nodes{state="excluded"} 5"#,
        r#"tags{state="unanswered"} 1"#,
        r#"tags{state="waiting"} 2"#,
        r#"tags{state="pulling"} 3"#,
        r#"tags{state="succeeded"} 4"#,
        r#"tags{state="failed"} 5"#,
        r#"jobs{kind="image_pull_job",state="running"} 1"#,
        r#"jobs{kind="image_pull_job",state="paused"} 2"#,
        r#"jobs{kind="image_pull_job",state="succeeded"} 3"#,
        r#"jobs{kind="image_pull_job",state="failed"} 4"#,
        r#"jobs{kind="image_pull_job",state="terminating"} 5"#,
        r#"jobs{kind="advanced_cron_job",state="running"} 6"#,
        r#"jobs{kind="advanced_cron_job",state="paused"} 7"#,
        r#"jobs{kind="advanced_cron_job",state="terminating"} 8"#,
        r#"job_nodes{state="waiting_for_secrets"} 7"#,
        r#"broadcast_pods{state="unscheduled"} 8"#,
        "queue 9",
    ]);
    assert_eq!(told(&metrics), wanted);
}

#[test]
fn what_is_measured_is_counted_by_phase_end_and_fate() {
    let metrics = Metrics::new();
    metrics.measured(vec![
        Measured::Took(Phase::Whole, Duration::from_secs(2000)),
        Measured::Ended(End::Succeeded, 1000),
        Measured::Ended(End::Failed(FailureClass::Tls), 0),
        Measured::Ended(End::Silent, 0),
    ]);
    metrics.ran(&[(Fate::Late, 1), (Fate::Failed, 2), (Fate::Skipped(SkipReason::TooLate), 3)].into());
    let wanted = lines([
        r#"grant_duration_seconds_sum{phase="whole"} 2000.0"#,
        r#"grant_duration_seconds_count{phase="whole"} 1"#,
        r#"grant_duration_seconds_bucket{le="3600.0",phase="whole"} 1"#,
        r#"grant_duration_seconds_bucket{le="+Inf",phase="whole"} 1"#,
        r#"grants_ended_total{result="succeeded",class=""} 1"#,
        r#"grants_ended_total{result="failed",class="Tls"} 1"#,
        r#"grants_ended_total{result="failed",class="Silent"} 1"#,
        "pulled_bytes_total 1000",
        r#"cron_runs_started_total{timing="late"} 1"#,
        r#"cron_runs_ended_total{result="failed"} 2"#,
        r#"cron_runs_skipped_total{reason="too_late"} 3"#,
    ]);
    assert_eq!(told(&metrics), wanted);
}

#[test]
fn everything_else_is_counted_where_it_belongs() {
    let metrics = Metrics::new();
    metrics.granted(3);
    metrics.clone().granted(4);
    metrics.wrote(Written::Object(Kind::NodeImage), WriteResult::Conflict);
    metrics.leads(true);
    metrics.reconnected(Kind::Pod);
    Tally::wrote(&metrics, true);
    Tally::wrote(&metrics, false);
    metrics.dropped();
    let wanted = lines([
        "grants_total 7",
        r#"api_writes_total{kind="node_image",result="conflict"} 1"#,
        r#"api_writes_total{kind="event",result="ok"} 1"#,
        r#"api_writes_total{kind="event",result="failed"} 1"#,
        "leader 1",
        r#"watch_reconnects_total{kind="pod"} 1"#,
        "events_dropped_total 1",
    ]);
    assert_eq!(told(&metrics), wanted);
    metrics.leads(false);
    assert!(!told(&metrics).contains("leader 1"));
}

/// ofen R16
#[test]
fn image_prefetches_have_the_series_that_dashboards_of_today_know_as_long_as_they_exist() {
    let metrics = Metrics::new();
    let of_ofen = |metrics: &Metrics| -> Vec<String> {
        let text = metrics.encode();
        assert_eq!(text.matches("# EOF").count(), 1);
        assert!(text.ends_with("# EOF\n"));
        text.lines().filter(|line| line.starts_with("ofen_")).map(str::to_owned).collect()
    };
    assert_eq!(of_ofen(&metrics), Vec::<String>::new());
    let key = ObjectKey { namespace: "team".to_owned(), name: "warm".to_owned() };
    metrics.prefetches(&[PrefetchSize { key, is_ready: true, pulled: 4, failed: 1 }]);
    let labels = r#"{namespace="team",imageprefetch="warm"}"#;
    let wanted = [
        format!("ofen_imageprefetch_ready{labels} 1"),
        format!("ofen_imageprefetch_image_pull_successful_nodes{labels} 4"),
        format!("ofen_imageprefetch_image_pull_failed_nodes{labels} 1"),
    ];
    assert_eq!(of_ofen(&metrics), wanted);
    metrics.prefetches(&[]);
    assert_eq!(of_ofen(&metrics), Vec::<String>::new());
    let many = |number: usize| {
        let key = ObjectKey { namespace: "team".to_owned(), name: format!("warm-{number}") };
        PrefetchSize { key, is_ready: false, pulled: 0, failed: 0 }
    };
    let image = SetImage {
        set: "nodeimageset-warm-0123abcd".to_owned(),
        node: "n1".to_owned(),
        image: "nginx:1".to_owned(),
        policy: RegistryPolicy::MirrorOnly,
        bytes: Some(5_000_000),
        seconds: None,
    };
    metrics.sets(&[image]);
    let labels = r#"nodeimageset="nodeimageset-warm-0123abcd",image="nginx:1""#;
    let wanted = [
        format!(r#"ofen_nodeimageset_image_info{{{labels},registry_policy="MirrorOnly",node="n1"}} 1"#),
        format!(r#"ofen_nodeimageset_image_size_bytes{{{labels},node="n1"}} 5000000"#),
    ];
    assert_eq!(of_ofen(&metrics), wanted);
    metrics.sets(&[]);
    metrics.prefetches(&(0..super::ofen::MOST_SERIES + 5).map(many).collect::<Vec<_>>());
    assert_eq!(of_ofen(&metrics).len(), 3 * super::ofen::MOST_SERIES);
}
