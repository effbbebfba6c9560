//! What a controller and agents export, seen in a cluster in which everything happens once.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use prewarm_api::ofen::ImagePrefetch;
use prewarm_sim::Cluster;
use serde_json::json;

/// What the names of the metrics begin with that have a series for each object.
pub const OFEN: &str = "ofen_";

/// Everything that was exported at any time.
#[derive(Debug, Default)]
pub struct Exported {
    /// Names of samples, each with its labels and their values.
    pub samples: BTreeMap<String, BTreeMap<String, BTreeSet<String>>>,
    /// Names of metrics as people know them: counters with `_total`, histograms without `_bucket`.
    pub metrics: BTreeSet<String>,
}

impl Exported {
    /// What a small cluster exports in which an image is pulled, one is not found, one is lost, one pull goes on, and two
    /// images are kept by an ImagePrefetch.
    pub async fn gather() -> Self {
        let mut exported = Self::default();
        let mut cluster = Cluster::new();
        cluster.publish("nginx:1", Duration::from_secs(2));
        cluster.publish("slow:1", Duration::from_mins(1));
        cluster.add_nodes(2).await;
        for node in cluster.nodes.values() {
            node.runtime.image("large:1").size(7_000_000).takes(Duration::from_secs(20));
        }
        cluster.start_controller();
        cluster.pass(1).await;
        cluster.pull("warm", json!({"image": "nginx:1"})).await;
        cluster.pull("absent", json!({"image": "absent:1", "pullPolicy": {"backoffLimit": 0}})).await;
        cluster.pull("slow", json!({"image": "slow:1"})).await;
        let prefetch = json!({
            "apiVersion": "ofen.cybozu.io/v1", "kind": "ImagePrefetch", "metadata": {"name": "kept"},
            "spec": {"images": ["nginx:1", "large:1"], "allNodes": true},
        });
        let _kept: ImagePrefetch = cluster.create(prefetch).await;
        for _ in 0..10 {
            cluster.pass(10).await;
            exported.add(&cluster.controller_metrics());
            for node in cluster.nodes.values() {
                exported.add(&node.metrics());
            }
        }
        exported
    }

    /// Takes over what a scrape says.
    pub fn add(&mut self, text: &str) {
        for line in text.lines() {
            if let Some(kind) = line.strip_prefix("# TYPE ") {
                let (name, kind) = kind.split_once(' ').unwrap();
                let suffix = match kind {
                    "counter" => "_total",
                    "info" => "_info",
                    _ => "",
                };
                self.metrics.insert(format!("{name}{suffix}"));
            } else if !line.starts_with('#') {
                self.add_sample(line.rsplit_once(' ').unwrap().0);
            }
        }
    }

    fn add_sample(&mut self, series: &str) {
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        let known = self.samples.entry(name.to_owned()).or_default();
        // No value has a comma or a quote: they are all words.
        for label in labels.trim_end_matches('}').split(',').filter(|label| !label.is_empty()) {
            let (label, value) = label.split_once('=').unwrap();
            known.entry(label.to_owned()).or_default().insert(value.trim_matches('"').to_owned());
        }
    }

    /// The labels of a metric and their values, without what only a histogram's buckets have.
    pub fn labels(&self, metric: &str) -> BTreeMap<&str, &BTreeSet<String>> {
        let sample = [metric.to_owned(), format!("{metric}_bucket")]
            .into_iter()
            .find_map(|name| self.samples.get(&name));
        let labels = sample.into_iter().flatten().filter(|(label, _)| *label != "le");
        labels.map(|(label, values)| (label.as_str(), values)).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn a_cluster_at_work_exports_every_metric_and_no_name_of_anything() {
    let exported = Exported::gather().await;
    for rare in [
        "prewarm_controller_oldest_unfinished_grant_timestamp_seconds",
        "prewarm_agent_image_filesystem_free_bytes",
        "prewarm_agent_pull_duration_seconds",
    ] {
        assert!(exported.metrics.contains(rare), "{rare} was never there: {:#?}", exported.metrics);
    }
    let ours = exported.samples.iter().filter(|(name, _)| !name.starts_with(OFEN));
    let labels = ours.flat_map(|(_, labels)| labels);
    let values: BTreeSet<&str> = labels
        .filter(|(label, _)| *label != "le")
        .flat_map(|(_, values)| values)
        .map(String::as_str)
        .collect();
    for name in ["nginx", "large", "absent", "slow", "warm", "node-1"] {
        assert!(!values.iter().any(|value| value.contains(name)), "{name} is in {values:?}");
    }
    // So many series there are at most, whatever happens in the cluster.
    let series = |prefix: &str| {
        let samples = exported.samples.iter().filter(|(name, _)| name.starts_with(prefix));
        samples.map(|(_, labels)| labels.values().map(BTreeSet::len).product::<usize>().max(1)).sum::<usize>()
    };
    let (controller, agent) = (series("prewarm_controller_"), series("prewarm_agent_"));
    assert!(controller < 350, "{controller}");
    assert!(agent < 150, "{agent}");
}

/// The way of the metrics from the cluster to the text: what happened is what is counted.
#[tokio::test(start_paused = true)]
async fn what_happens_in_a_cluster_is_counted() {
    let mut cluster = Cluster::new();
    cluster.publish("nginx:1", Duration::from_secs(20));
    cluster.add_nodes(3).await;
    cluster.nodes.get_mut("node-3").unwrap().kill().await;
    cluster.start_controller();
    cluster.pass(1).await;
    cluster.pull("warm", json!({"image": "nginx:1", "parallelism": 3})).await;
    cluster.pass(15).await;
    let says = |line: &str| {
        let text = cluster.controller_metrics();
        assert!(text.lines().any(|it| it == format!("prewarm_controller_{line}")), "no {line} in\n{text}");
    };
    says(r#"nodes{state="served"} 3"#);
    says(r#"tags{state="pulling"} 2"#);
    says(r#"tags{state="unanswered"} 1"#);
    says(r#"job_nodes{state="active"} 3"#);
    says(r#"jobs{kind="image_pull_job",state="running"} 1"#);
    says(r#"grant_duration_seconds_count{phase="answer"} 2"#);
    // Nothing is heard of the third; it is counted as silent by time alone.
    cluster.pass(35).await;
    says(r#"nodes{state="served"} 2"#);
    says(r#"nodes{state="silent"} 1"#);
    says(r#"grants_ended_total{result="succeeded",class=""} 2"#);
    says(r#"grant_duration_seconds_count{phase="whole"} 2"#);
    says(r#"grant_duration_seconds_bucket{le="10.0",phase="pull"} 0"#);
    says(r#"grant_duration_seconds_bucket{le="30.0",phase="pull"} 2"#);
    cluster.pass(600).await;
    says(r#"nodes{state="silent"} 1"#);
    says(r#"grants_ended_total{result="failed",class="Silent"} 1"#);
    says(r#"jobs{kind="image_pull_job",state="failed"} 1"#);
    assert!(!cluster.controller_metrics().contains("oldest_unfinished_grant"), "all have ended");
}

#[tokio::test(start_paused = true)]
async fn metrics_cost_an_idle_cluster_nothing() {
    let mut cluster = Cluster::new();
    cluster.publish("nginx:1", Duration::from_secs(1));
    cluster.add_nodes(2).await;
    cluster.start_controller();
    cluster.pass(1).await;
    cluster.pull("warm", json!({"image": "nginx:1"})).await;
    cluster.finished_within(60, "warm").await;
    cluster.pass(30).await;
    let (before, writes) = (cluster.controller_metrics(), cluster.faults.writes());
    cluster.pass(600).await;
    let after = cluster.controller_metrics();
    let before: BTreeSet<&str> = before.lines().collect();
    let changed: Vec<&str> = after.lines().filter(|line| !before.contains(line)).collect();
    // The loop looks at the clock once a minute, and watches are opened anew; there is nothing else to see.
    let is_usual = |line: &str| line.contains("turn_duration") || line.contains("watch_reconnects");
    assert_eq!(changed.iter().filter(|line| !is_usual(line)).collect::<Vec<_>>(), Vec::<&&str>::new());
    let turns =
        after.lines().find_map(turns_in).unwrap() - before.iter().find_map(|line| turns_in(line)).unwrap();
    assert!(turns <= 10, "{turns} within ten minutes");
    assert_eq!(cluster.faults.writes(), writes);
}

fn turns_in(line: &str) -> Option<u64> {
    line.strip_prefix("prewarm_controller_turn_duration_seconds_count ")?.parse().ok()
}
