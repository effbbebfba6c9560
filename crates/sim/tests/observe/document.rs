//! docs/observe.md lists every metric with its labels and every alert, and nothing else.

use std::collections::{BTreeMap, BTreeSet};

use crate::alerts::rules;
use crate::exported::{Exported, OFEN};
use crate::read;

const FILE: &str = "docs/observe.md";
/// Labels whose values are explained one by one where the metric is.
const EXPLAINED: [&str; 5] = ["state", "phase", "timing", "reason", "target"];

/// A line of a table about a metric.
struct Line {
    labels: BTreeSet<String>,
    meaning: String,
}

fn lines(text: &str) -> BTreeMap<String, Line> {
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `"));
    let rows = rows.filter(|row| row.starts_with("prewarm_") || row.starts_with(OFEN));
    let lines = rows.map(|row| {
        let mut cells = row.split('|');
        let name = cells.next().unwrap().trim().trim_end_matches('`').to_owned();
        let labels = quoted(cells.next().unwrap()).into_iter().collect();
        (name, Line { labels, meaning: cells.collect() })
    });
    lines.collect()
}

/// What stands between backticks.
fn quoted(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[tokio::test(start_paused = true)]
async fn every_metric_is_documented_with_its_labels_and_nothing_else_is() {
    let (exported, text) = (Exported::gather().await, read(FILE));
    let documented = lines(&text);
    assert_eq!(documented.keys().collect::<BTreeSet<_>>(), exported.metrics.iter().collect());
    for (name, line) in &documented {
        let labels = exported.labels(name);
        let known: BTreeSet<String> = labels.keys().map(|label| (*label).to_owned()).collect();
        assert_eq!(line.labels, known, "{name}");
        let explained = quoted(&line.meaning);
        for (label, values) in labels.into_iter().filter(|(label, _)| EXPLAINED.contains(label)) {
            let missing: Vec<&String> =
                values.iter().filter(|value| !value.is_empty() && !explained.contains(value)).collect();
            assert_eq!(missing, Vec::<&String>::new(), "{name}, {label}");
        }
    }
}

#[test]
fn every_alert_is_documented_and_nothing_else_is() {
    let text = read(FILE);
    let documented: BTreeSet<&str> =
        text.lines().filter_map(|line| line.strip_prefix("### Prewarm")).collect();
    let rules = rules();
    let known: BTreeSet<&str> =
        rules.iter().map(|rule| rule.alert.strip_prefix("Prewarm").unwrap()).collect();
    assert_eq!(documented, known);
}
