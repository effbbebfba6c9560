use prewarm_plan::agent::kruise;
use serde_json::json;

use super::*;

fn ending(result: Ended, took: Duration) -> Ending {
    let spec = json!({ "images": { "web": { "tags": [{ "tag": "v1" }] } } });
    let task = kruise::read(&spec).tasks.into_values().next().unwrap();
    Ending { task, result, took }
}

/// The lines of one metric, without its help and type, and without the parts that are zero.
fn lines(metrics: &Metrics, name: &str) -> Vec<String> {
    let text = metrics.encode();
    let of_metric = text.lines().filter(|line| line.starts_with(&format!("prewarm_agent_{name}")));
    of_metric.filter(|line| !line.ends_with(" 0")).map(str::to_owned).collect()
}

#[test]
fn a_fresh_agent_has_every_counter_at_zero() {
    let text = Metrics::new().encode();
    let version = env!("CARGO_PKG_VERSION");
    let wanted = include_str!("fresh.txt").replace("VERSION", version);
    // Families keep no order, and nobody who reads them needs one.
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines.join("\n")
    };
    assert_eq!(sorted(&text), sorted(&wanted), "{text}");
}

#[test]
fn a_pull_counts_once_with_its_bytes_and_duration() {
    let metrics = Metrics::new();
    metrics.ended(&ending(Ended::Pulled { bytes: Some(1000), results: None }, Duration::from_millis(1500)));
    assert_eq!(lines(&metrics, "pulls"), [r#"prewarm_agent_pulls_total{result="succeeded",class=""} 1"#]);
    assert_eq!(lines(&metrics, "pulled"), ["prewarm_agent_pulled_bytes_total 1000"]);
    let durations = lines(&metrics, "pull_duration");
    assert_eq!(
        durations[..3],
        [
            r#"prewarm_agent_pull_duration_seconds_sum{result="succeeded"} 1.5"#,
            r#"prewarm_agent_pull_duration_seconds_count{result="succeeded"} 1"#,
            r#"prewarm_agent_pull_duration_seconds_bucket{le="2.5",result="succeeded"} 1"#,
        ]
    );
}

#[test]
fn an_image_that_was_there_counts_neither_bytes_nor_a_duration() {
    let metrics = Metrics::new();
    metrics.ended(&ending(Ended::Present, Duration::from_secs(1)));
    assert_eq!(lines(&metrics, "pull"), [r#"prewarm_agent_pulls_total{result="present",class=""} 1"#]);
}

#[test]
fn a_failure_counts_by_its_class() {
    let metrics = Metrics::new();
    for class in [FailureClass::NoSpace, FailureClass::Unknown] {
        metrics.ended(&ending(Ended::Failed { class, message: None }, Duration::ZERO));
    }
    let mut pulls = lines(&metrics, "pulls");
    pulls.sort();
    assert_eq!(
        pulls,
        [
            r#"prewarm_agent_pulls_total{result="failed",class="NoSpace"} 1"#,
            r#"prewarm_agent_pulls_total{result="failed",class="Unknown"} 1"#,
        ]
    );
    assert_eq!(lines(&metrics, "pulled"), [""; 0]);
}

#[test]
fn everything_else_is_counted_where_it_belongs() {
    let metrics = Metrics::new();
    metrics.cancelled();
    metrics.queue(Waits { place: 7, room: 1, runtime: 3, registry: 4, retry: 5 }, 2);
    metrics.began(Some(Duration::from_secs(500)));
    metrics.began(None);
    metrics.attempt_failed(FailureClass::Tls);
    metrics.lost_images(1);
    metrics.has_runtime(true);
    metrics.room(10, 20);
    metrics.wrote_status(true);
    metrics.wrote_event(false);
    metrics.dropped_event();
    metrics.reconnected(Target::Runtime);
    let mut counted: Vec<String> = metrics.encode().lines().map(str::to_owned).collect();
    counted.retain(|line| !line.starts_with('#') && !line.ends_with(" 0"));
    counted.sort();
    let build = format!(r#"prewarm_agent_build_info{{version="{}"}} 1"#, env!("CARGO_PKG_VERSION"));
    let mut wanted = vec![
        r#"prewarm_agent_api_writes_total{kind="event",result="failed"} 1"#,
        r#"prewarm_agent_api_writes_total{kind="status",result="written"} 1"#,
        &build,
        "prewarm_agent_events_dropped_total 1",
        "prewarm_agent_image_filesystem_capacity_bytes{} 20",
        "prewarm_agent_image_filesystem_free_bytes{} 10",
        r#"prewarm_agent_pulls_total{result="cancelled",class=""} 1"#,
        r#"prewarm_agent_reconnects_total{target="runtime"} 1"#,
        r#"prewarm_agent_tasks{state="pulling",reason=""} 2"#,
        r#"prewarm_agent_tasks{state="waiting",reason="place"} 7"#,
        r#"prewarm_agent_tasks{state="waiting",reason="room"} 1"#,
        r#"prewarm_agent_tasks{state="waiting",reason="runtime"} 3"#,
        r#"prewarm_agent_tasks{state="waiting",reason="registry"} 4"#,
        r#"prewarm_agent_tasks{state="waiting",reason="retry"} 5"#,
        r#"prewarm_agent_failed_attempts_total{class="Tls"} 1"#,
        "prewarm_agent_images_lost_total 1",
        "prewarm_agent_runtime_up 1",
        "prewarm_agent_wait_duration_seconds_sum 500.0",
        "prewarm_agent_wait_duration_seconds_count 1",
        r#"prewarm_agent_wait_duration_seconds_bucket{le="600.0"} 1"#,
        r#"prewarm_agent_wait_duration_seconds_bucket{le="+Inf"} 1"#,
    ];
    wanted.sort_unstable();
    assert_eq!(counted, wanted);
}

#[test]
fn clones_count_together() {
    let metrics = Metrics::new();
    metrics.clone().dropped_event();
    assert_eq!(lines(&metrics, "events_dropped"), ["prewarm_agent_events_dropped_total 1"]);
}
