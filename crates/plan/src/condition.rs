//! Keeping the conditions of an object: one per type, with the time of its last flip.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use prewarm_api::condition::Condition;

use crate::time::stamp;

mod reason;

pub use reason::Reason;

/// Longer messages are cut. A schema allows more, but nobody reads it.
pub const LONGEST_MESSAGE: usize = 4096;
/// What a cut message ends with.
const ELLIPSIS: char = '…';

/// Whether what a condition is about holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// Nobody can say.
    Unknown,
}

impl ConditionStatus {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl From<bool> for ConditionStatus {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

/// What a condition says, without when it began to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it is about.
    pub type_: &'static str,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// Why, in one word.
    pub reason: Reason,
    /// Why, in a sentence.
    pub message: String,
}

/// Writes a finding into the conditions of an object of this generation. The transition time moves only when the status
/// flips, and the other conditions stay as they are.
pub fn set_condition(
    conditions: &mut Vec<Condition>,
    finding: Finding,
    generation: Option<i64>,
    now: Timestamp,
) {
    let present = conditions.iter_mut().find(|condition| condition.type_ == finding.type_);
    let since = match &present {
        Some(condition) if condition.status == finding.status.as_str() => {
            condition.last_transition_time.clone()
        }
        _ => Time(stamp(now)),
    };
    let condition = Condition {
        type_: finding.type_.to_owned(),
        status: finding.status.as_str().to_owned(),
        observed_generation: generation,
        last_transition_time: since,
        reason: finding.reason.as_str().to_owned(),
        message: shorten(finding.message),
        unknown: present.as_deref().map(|condition| condition.unknown.clone()).unwrap_or_default(),
    };
    match present {
        Some(present) => *present = condition,
        None => conditions.push(condition),
    }
}

/// The message, cut if it is too long.
pub(crate) fn shorten(message: String) -> String {
    if message.chars().nth(LONGEST_MESSAGE).is_none() {
        return message;
    }
    message.chars().take(LONGEST_MESSAGE - 1).chain([ELLIPSIS]).collect()
}

#[cfg(test)]
mod tests {
    use prewarm_api::unknown::Unknown;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_millisecond(second * 1000 + 700).unwrap()
    }

    fn finding(status: ConditionStatus, message: &str) -> Finding {
        Finding { type_: "Complete", status, reason: Reason::Finished, message: message.to_owned() }
    }

    #[test]
    fn a_first_finding_is_added_with_its_time_in_whole_seconds() {
        let mut conditions = Vec::new();
        set_condition(&mut conditions, finding(ConditionStatus::True, "done"), Some(3), at(10));
        let expected = Condition {
            type_: "Complete".to_owned(),
            status: "True".to_owned(),
            observed_generation: Some(3),
            last_transition_time: Time(Timestamp::from_second(10).unwrap()),
            reason: "Finished".to_owned(),
            message: "done".to_owned(),
            unknown: Unknown::default(),
        };
        assert_eq!(conditions, [expected]);
    }

    #[test]
    fn the_transition_time_moves_only_on_a_flip() {
        let mut conditions = Vec::new();
        let mut since = |status, message, second| {
            set_condition(&mut conditions, finding(status, message), Some(1), at(second));
            (conditions[0].last_transition_time.0.as_second(), conditions[0].message.clone())
        };
        assert_eq!(since(ConditionStatus::False, "one", 10), (10, "one".to_owned()));
        assert_eq!(since(ConditionStatus::False, "two", 20), (10, "two".to_owned()));
        assert_eq!(since(ConditionStatus::True, "three", 30), (30, "three".to_owned()));
        assert_eq!(since(ConditionStatus::Unknown, "four", 40), (40, "four".to_owned()));
    }

    #[test]
    fn other_conditions_stay_where_and_as_they_are() {
        let mut conditions = Vec::new();
        for type_ in ["First", "Complete", "Last"] {
            let first = Finding { type_, ..finding(ConditionStatus::False, "") };
            set_condition(&mut conditions, first, None, at(10));
        }
        let before = conditions.clone();
        set_condition(&mut conditions, finding(ConditionStatus::True, ""), None, at(20));
        assert_eq!((&conditions[0], &conditions[2]), (&before[0], &before[2]));
        assert_eq!(conditions[1].status, "True");
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let mut conditions = Vec::new();
        let cut = finding(ConditionStatus::True, &"ü".repeat(LONGEST_MESSAGE + 1));
        set_condition(&mut conditions, cut, None, at(10));
        assert_eq!(conditions[0].message.chars().count(), LONGEST_MESSAGE);
        let whole = "ü".repeat(LONGEST_MESSAGE);
        set_condition(&mut conditions, finding(ConditionStatus::True, &whole), None, at(10));
        assert_eq!(conditions[0].message, whole);
    }
}
