//! The alert rules: complete, documented, and about metrics that exist.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::exported::Exported;
use crate::expression::faults;
use crate::read;

const FILE: &str = "deploy/chart/files/alerts.yaml";
const RUNBOOK: &str = "https://github.com/prewarm/prewarm/blob/main/docs/observe.md#";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Spec {
    groups: Vec<Group>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    name: String,
    rules: Vec<Rule>,
}

/// One alert.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Its name.
    pub alert: String,
    expr: String,
    #[serde(rename = "for", default)]
    lasts: Option<String>,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
}

/// All alerts.
pub fn rules() -> Vec<Rule> {
    let spec: Spec = serde_saphyr::from_str(&read(FILE)).unwrap();
    assert!(spec.groups.iter().all(|group| !group.name.is_empty()));
    spec.groups.into_iter().flat_map(|group| group.rules).collect()
}

#[tokio::test(start_paused = true)]
async fn alerts_are_about_what_is_exported() {
    let exported = Exported::gather().await;
    for rule in rules() {
        let shown = shown_labels(&rule);
        assert_eq!(faults(&rule.expr, &shown, &exported), Vec::<String>::new(), "{}", rule.alert);
    }
}

/// The labels that a rule's texts show.
fn shown_labels(rule: &Rule) -> Vec<String> {
    let texts = rule.annotations.values().flat_map(|text| text.split("$labels.").skip(1));
    texts
        .map(|text| text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap().to_owned())
        .collect()
}

#[test]
fn every_alert_says_how_bad_it_is_what_happens_and_where_to_read_on() {
    let mut names = BTreeSet::new();
    for Rule { alert, lasts, labels, annotations, .. } in rules() {
        assert!(names.insert(alert.clone()), "{alert} is there twice");
        let severity = labels.get("severity").map(String::as_str);
        assert!(matches!(severity, Some("critical" | "warning" | "info")), "{alert}: {severity:?}");
        assert!(lasts.is_none_or(|time| time.ends_with('m')), "{alert}");
        let fields: Vec<&str> = annotations.keys().map(String::as_str).collect();
        assert_eq!(fields, ["description", "runbook_url", "summary"], "{alert}");
        assert!(annotations.values().all(|text| !text.is_empty()), "{alert}");
        assert_eq!(annotations["runbook_url"], format!("{RUNBOOK}{}", alert.to_lowercase()));
    }
}
