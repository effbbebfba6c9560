//! The rules of BroadcastJob, also for its spec inside a cron job.

use serde_json::Value;

use super::{Check, Rule, object_name, pull};
use crate::names::{BROADCAST_JOB_NAME_LABEL, BROADCAST_JOB_UID_LABEL};

/// The longest name of a cron or broadcast job, which becomes the value of a label.
pub(super) const MAX_NAME: usize = 63;

pub fn broadcast_job() -> Vec<Rule> {
    let mut rules = vec![name("kruise V50")];
    rules.extend(spec("spec"));
    rules
}

/// The rules of a broadcast job's spec, at this path.
pub(super) fn spec(at: &str) -> Vec<Rule> {
    vec![
        Rule {
            id: "kruise V51",
            at: format!("{at}.completionPolicy"),
            field: "",
            cel: "self.type != 'Never' || !(has(self.activeDeadlineSeconds) || has(self.ttlSecondsAfterFinished))"
                .to_owned(),
            message: pull::NEVER_HAS_NO_END,
            check: Check::Value(pull::never_has_no_end),
        },
        Rule {
            id: "kruise V52",
            at: format!("{at}.template"),
            field: "metadata.labels",
            cel: format!(
                "!has(self.metadata) || !has(self.metadata.labels) || \
                 !('{BROADCAST_JOB_NAME_LABEL}' in self.metadata.labels || '{BROADCAST_JOB_UID_LABEL}' in self.metadata.labels)"
            ),
            message: "the labels broadcastjob-name and broadcastjob-controller-uid are set by the controller: remove them",
            check: Check::Value(|template| {
                let label = |name: &str| template.pointer("/metadata/labels").is_some_and(|labels| labels.get(name).is_some());
                !label(BROADCAST_JOB_NAME_LABEL) && !label(BROADCAST_JOB_UID_LABEL)
            }),
        },
        Rule {
            id: "kruise R120",
            at: format!("{at}.parallelism"),
            field: "",
            cel: "type(self) == int ? self >= 0 && self <= 2147483647 : self.matches('^[0-9]{1,9}%$')".to_owned(),
            message: "parallelism is a number of pods from 0 to 2147483647, such as 10, or a percentage, such as 25%",
            check: Check::Value(is_pod_count),
        },
    ]
}

/// The rule on the names of objects whose pods carry them in a label.
pub(super) fn name(id: &'static str) -> Rule {
    Rule {
        id,
        at: String::new(),
        field: "metadata.name",
        cel: format!("size(self.metadata.name) <= {MAX_NAME} && !self.metadata.name.contains('.')"),
        message: "the name is longer than 63 characters or has a dot: use letters, digits and '-'",
        check: Check::Creation(|object| {
            object_name(object).is_none_or(|name| name.len() <= MAX_NAME && !name.contains('.'))
        }),
    }
}

fn is_pod_count(parallelism: &Value) -> bool {
    match parallelism {
        Value::Number(number) => {
            number.as_i64().is_some_and(|count| (0..=i64::from(i32::MAX)).contains(&count))
        }
        Value::String(text) => crate::schema::matches("^[0-9]{1,9}%$", text),
        _ => false,
    }
}
