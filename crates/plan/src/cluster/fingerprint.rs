//! What tells one write to an object from another, apart from the moment at which it was decided: a write that is undone and
//! decided again is the same one (`object::attempts`).

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde_json::Value;

use super::command::Verb;
use crate::object::Uid;

/// Fields that follow from the moment of a decision and not from what was decided. The TTL of a tag has a jitter that
/// changes every minute.
const OF_THE_MOMENT: [&str; 7] = [
    "lastTransitionTime",
    "lastProbeTime",
    "startTime",
    "completionTime",
    "createdAt",
    "renewedAt",
    "ttlSecondsAfterFinished",
];

impl Verb {
    /// A number that is the same for the same write to one object.
    pub(super) fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        std::mem::discriminant(self).hash(&mut hasher);
        match self {
            Self::Create(object) => timeless(object).hash(&mut hasher),
            Self::Patch(operations, _) | Self::PatchStatus(operations) => {
                // The tests in front name the version that was decided on.
                let lasting = |operation: &&Value| operation["op"] != "test" && !is_of_the_moment(operation);
                let changes = operations.iter().filter(lasting);
                changes.map(timeless).collect::<Vec<Value>>().hash(&mut hasher);
            }
            Self::Delete => {}
            Self::Judge(verdicts) => {
                let tasks =
                    verdicts.iter().map(|verdict| (&verdict.key.name, &verdict.key.tag, verdict.version));
                tasks.collect::<Vec<_>>().hash(&mut hasher);
            }
            Self::Copy(excerpt, action) => format!("{excerpt:?} {action:?}").hash(&mut hasher),
        }
        hasher.finish()
    }

    /// The same for a write to the object with this UID alone: one that is made anew under its name begins anew.
    pub(super) fn fingerprint_for(&self, uid: Option<&Uid>) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.fingerprint(), uid).hash(&mut hasher);
        hasher.finish()
    }
}

/// Whether an operation is about nothing but such a field.
fn is_of_the_moment(operation: &Value) -> bool {
    let field = operation["path"].as_str().and_then(|path| path.rsplit('/').next());
    field.is_some_and(|field| OF_THE_MOMENT.contains(&field))
}

/// The same without what follows from the moment.
fn timeless(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let lasting = fields.iter().filter(|(name, _)| !OF_THE_MOMENT.contains(&name.as_str()));
            lasting.map(|(name, value)| (name.clone(), timeless(value))).collect()
        }
        Value::Array(items) => items.iter().map(timeless).collect(),
        value => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn status(version: &str, desired: i32, since: &str) -> u64 {
        let operations = vec![
            json!({"op": "test", "path": "/metadata/resourceVersion", "value": version}),
            json!({"op": "add", "path": "/status", "value": {
                "desired": desired, "conditions": [{"type": "Complete", "lastTransitionTime": since}],
            }}),
        ];
        Verb::PatchStatus(operations).fingerprint()
    }

    #[test]
    fn a_write_that_is_decided_again_is_the_same_write() {
        let first = status("5", 3, "2026-11-15T08:00:00Z");
        assert_eq!(status("6", 3, "2026-11-15T08:00:09Z"), first);
        assert_ne!(status("6", 4, "2026-11-15T08:00:00Z"), first);
    }

    #[test]
    fn the_moment_makes_no_difference_where_a_field_is_written_by_itself() {
        let grant = |version: i64, created_at: &str| {
            let tag = |field: &str| format!("/spec/images/nginx/tags/0/{field}");
            let operations = vec![
                json!({"op": "add", "path": tag("version"), "value": version}),
                json!({"op": "add", "path": tag("createdAt"), "value": created_at}),
            ];
            Verb::Patch(operations, 1).fingerprint()
        };
        assert_eq!(grant(1, "2026-11-15T08:00:00Z"), grant(1, "2026-11-15T08:00:09Z"));
        assert_ne!(grant(1, "2026-11-15T08:00:00Z"), grant(2, "2026-11-15T08:00:00Z"));
    }

    #[test]
    fn what_is_done_to_an_object_counts_too() {
        let operations = vec![json!({"op": "remove", "path": "/status"})];
        let (patch, status) = (Verb::Patch(operations.clone(), 0), Verb::PatchStatus(operations));
        assert_ne!(patch.fingerprint(), status.fingerprint());
    }
}
