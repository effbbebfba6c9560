//! Events have two APIs, the core's and `events.k8s.io`, with one store behind them: the same fields under two names.

use serde_json::{Value, json};

use super::Resource;

/// The group of the newer API.
const NEWER: &str = "events.k8s.io";

/// The fields that differ: the name in the core, and the one in the newer API.
const NAMES: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// For events, the group of the other API that shows the same objects.
pub fn other_group(resource: &Resource) -> Option<&'static str> {
    match resource.group.as_str() {
        _ if resource.is_custom || resource.kind != "Event" => None,
        "" => Some(NEWER),
        _ => Some(""),
    }
}

/// An event as the API of a group shows it.
pub fn convert(event: &mut Value, group: &str) {
    let is_newer = group == NEWER;
    if let Some(fields) = event.as_object_mut() {
        for (core, newer) in NAMES {
            let (from, to) = if is_newer { (core, newer) } else { (newer, core) };
            if let Some(value) = fields.remove(from) {
                fields.insert(to.to_owned(), value);
            }
        }
    }
    complete(event, group);
}

/// Both APIs always show some fields, even without a value.
pub fn complete(event: &mut Value, group: &str) {
    let blanks: &[(&str, Value)] = if group == NEWER {
        &[
            ("deprecatedFirstTimestamp", Value::Null),
            ("deprecatedLastTimestamp", Value::Null),
            ("deprecatedSource", json!({})),
            ("eventTime", Value::Null),
            ("regarding", json!({})),
        ]
    } else {
        &[
            ("eventTime", Value::Null),
            ("firstTimestamp", Value::Null),
            ("involvedObject", json!({})),
            ("lastTimestamp", Value::Null),
            ("reportingComponent", json!("")),
            ("reportingInstance", json!("")),
            ("source", json!({})),
        ]
    };
    if let Some(fields) = event.as_object_mut() {
        for (name, value) in blanks {
            fields.entry(*name).or_insert_with(|| value.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_survives_conversion_and_back() {
        let mut event = json!({ "message": "hello", "involvedObject": { "name": "web" }, "count": 3 });
        complete(&mut event, "");
        let before = event.clone();
        convert(&mut event, NEWER);
        assert_eq!(event["note"], "hello");
        assert_eq!(event["regarding"], json!({ "name": "web" }));
        assert_eq!(event.get("message"), None);
        convert(&mut event, "");
        assert_eq!(event, before);
    }
}
