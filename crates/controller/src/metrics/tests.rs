use std::collections::BTreeSet;

use super::*;

/// Everything that is counted and not zero, without help, types and the version.
fn told(metrics: &Metrics) -> BTreeSet<String> {
    let text = metrics.encode();
    let lines = text.lines().filter_map(|line| line.strip_prefix("prewarm_controller_"));
    lines.filter(|line| !line.ends_with(" 0") && !line.starts_with("build")).map(str::to_owned).collect()
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
    assert_eq!(counts("api_writes_total{"), Written::ALL.len() * WriteResult::ALL.len());
    assert_eq!(counts("watch_reconnects_total{"), Kind::ALL.len());
    assert_eq!((counts("passes_total{"), counts("jobs{")), (6, 4));
    assert_eq!(told(&Metrics::new()), lines(["turn_duration_seconds_sum 0.0"]));
    assert!(text.contains(concat!(r#"prewarm_controller_build_info{version=""#, env!("CARGO_PKG_VERSION"))));
}

#[test]
fn a_turn_counts_the_passes_that_it_made() {
    let metrics = Metrics::new();
    let first = Passes { sources: 1, jobs: 2, lists: 3, nodes: 4, broadcasts: 5, crons: 6 };
    metrics.passed(Passes::default(), first, Some(Duration::from_secs(2)));
    metrics.passed(first, Passes { nodes: 40, ..first }, Some(Duration::from_secs(4)));
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
    metrics.holds(Size { nodes: 9, tags: 90, running: 9, ..Size::default() });
    metrics.holds(Size { nodes: 1, tags: 2, running: 3, paused: 4, finished: 5, terminating: 6, queue: 7 });
    let wanted = lines([
        "nodes 1",
        "tags 2",
        r#"jobs{state="running"} 3"#,
        r#"jobs{state="paused"} 4"#,
        r#"jobs{state="finished"} 5"#,
        r#"jobs{state="terminating"} 6"#,
        "queue 7",
        "turn_duration_seconds_sum 0.0",
    ]);
    assert_eq!(told(&metrics), wanted);
}

#[test]
fn everything_else_is_counted_where_it_belongs() {
    let metrics = Metrics::new();
    metrics.granted(3);
    metrics.clone().granted(4);
    metrics.wrote(Written::NodeImage, WriteResult::Conflict);
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
        "turn_duration_seconds_sum 0.0",
    ]);
    assert_eq!(told(&metrics), wanted);
    metrics.leads(false);
    assert!(!told(&metrics).contains("leader 1"));
}
