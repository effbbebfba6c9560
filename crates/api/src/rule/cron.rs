//! Rules of AdvancedCronJob.

use serde_json::Value;

use super::{Check, Rule, broadcast, has, object_name, pull, schedule, size, text};

/// A run's name is the cron's, a dash and ten digits, and may itself have at most 63 characters.
const MAX_NAME_WITH_PODS: usize = broadcast::MAX_NAME - 11;
/// The longest deadline of a scheduled image list: a day.
const MAX_CRON_DEADLINE: i64 = 86_400;

/// The rules of AdvancedCronJob. The function is long because it is a table.
pub fn advanced_cron_job() -> Vec<Rule> {
    const LIST: &str = "spec.template.imageListPullJobTemplate.spec";
    const BROADCAST: &str = "spec.template.broadcastJobTemplate.spec";
    let mut rules = vec![
        broadcast::name("kruise V40"),
        Rule {
            id: "kruise V40",
            at: String::new(),
            field: "metadata.name",
            cel: format!(
                "has(self.spec.template.imageListPullJobTemplate) || size(self.metadata.name) <= {MAX_NAME_WITH_PODS}"
            ),
            message: "the name is longer than 52 characters: with a dash and the time of a run it would not fit the \
                      63 characters of a Job or BroadcastJob",
            check: Check::Creation(|object| {
                object.pointer("/spec/template/imageListPullJobTemplate").is_some_and(|list| !list.is_null())
                    || object_name(object).is_none_or(|name| name.len() <= MAX_NAME_WITH_PODS)
            }),
        },
        Rule {
            id: "kruise V45",
            at: "spec".to_owned(),
            field: "concurrencyPolicy",
            cel: "!has(self.template.imageListPullJobTemplate) || !has(self.concurrencyPolicy) || \
                  self.concurrencyPolicy != 'Allow'"
                .to_owned(),
            message: "image lists are not pulled twice at once: use Replace or Forbid",
            check: Check::Value(|spec| {
                !spec.get("template").is_some_and(|template| has(template, "imageListPullJobTemplate"))
                    || text(spec, "concurrencyPolicy") != Some("Allow")
            }),
        },
        Rule {
            id: "kruise V46",
            at: "spec.template".to_owned(),
            field: "",
            cel:
                "has(oldSelf.imageListPullJobTemplate) ? has(self.imageListPullJobTemplate) : self == oldSelf"
                    .to_owned(),
            message: "the template cannot be changed, except for an imageListPullJobTemplate: make a new cron job",
            check: Check::Transition(|new, old| {
                if has(old, "imageListPullJobTemplate") {
                    has(new, "imageListPullJobTemplate")
                } else {
                    new == old
                }
            }),
        },
    ];
    rules.extend(schedule_rules());
    rules.extend(image_list(LIST));
    rules.extend(broadcast::spec(BROADCAST));
    rules
}

/// The rules of the schedule and its zone.
fn schedule_rules() -> Vec<Rule> {
    vec![
        Rule {
            id: "kruise V41",
            at: "spec.schedule".to_owned(),
            field: "",
            cel: format!("self.matches('{}')", pull::escape(schedule::PATTERN)),
            message: "not a schedule: write five fields (minute 0-59, hour 0-23, day of month 1-31, month 1-12, day of \
                      week 0-6), such as '0 2 * * *', or @hourly, @daily, @weekly, @monthly, @yearly or '@every 90m'",
            check: Check::Value(|line| line.as_str().is_some_and(schedule::looks_like_one)),
        },
        Rule {
            id: "kruise V41",
            at: "spec".to_owned(),
            field: "timeZone",
            cel: "!has(self.timeZone) || !self.schedule.contains('TZ')".to_owned(),
            message: "the zone is given twice: remove timeZone or the TZ= prefix of the schedule",
            check: Check::Value(|spec| {
                !has(spec, "timeZone") || !text(spec, "schedule").is_some_and(|line| line.contains("TZ"))
            }),
        },
        Rule {
            id: "kruise V42",
            at: "spec.timeZone".to_owned(),
            field: "",
            cel: format!("self.lowerAscii() != 'local' && self.matches('{}')", schedule::ZONE_PATTERN),
            message: "not a time zone: write its IANA name, such as Europe/Berlin or UTC; Local is not one",
            check: Check::Value(|zone| zone.as_str().is_some_and(schedule::looks_like_a_zone)),
        },
    ]
}

/// The rules of a scheduled image list, at the path of its spec.
fn image_list(at: &str) -> Vec<Rule> {
    let mut rules = vec![
        Rule {
            id: "kruise V45",
            at: format!("{at}.completionPolicy"),
            field: "type",
            cel: "self.type == 'Always'".to_owned(),
            message: "a scheduled image list must end: use type Always",
            check: Check::Value(|policy| text(policy, "type") == Some("Always")),
        },
        Rule {
            id: "kruise V45",
            at: format!("{at}.completionPolicy"),
            field: "activeDeadlineSeconds",
            cel: format!(
                "!has(self.activeDeadlineSeconds) || self.activeDeadlineSeconds <= {MAX_CRON_DEADLINE}"
            ),
            message: "the deadline of a scheduled image list is at most 86400 seconds, a day",
            check: Check::Value(|policy| {
                policy
                    .get("activeDeadlineSeconds")
                    .and_then(Value::as_i64)
                    .is_none_or(|limit| limit <= MAX_CRON_DEADLINE)
            }),
        },
        Rule {
            id: "kruise V45",
            at: format!("{at}.completionPolicy"),
            field: "ttlSecondsAfterFinished",
            cel: "!has(self.ttlSecondsAfterFinished)".to_owned(),
            message: "the history limits decide how long runs are kept: remove ttlSecondsAfterFinished",
            check: Check::Value(|policy| !has(policy, "ttlSecondsAfterFinished")),
        },
        pull::image("kruise V45", &format!("{at}.images[]")),
    ];
    rules.extend(pull::template(at));
    rules.extend(size::children(at));
    rules
}
