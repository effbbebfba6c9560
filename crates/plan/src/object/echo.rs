//! What comes back of a status that was written.
//!
//! ```text
//! the answer shows what was sent   nothing is remembered
//! the answer lacks some of it      whenever the object is shown like that, it is read as what was sent: nothing differs,
//!                                  so nothing is written. After minutes it is sent once more, as it may be kept by then
//! ```
//!
//! The answer lacks something if the installed definitions do not know a field, which is then dropped without a word, or if
//! a webhook rewrites it. What was lost is known here for as long as the process lives, so that decisions that need it (how
//! many failures a pause was for) are the same as under our own definitions.

use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use crate::backoff::{double, shorten};
use crate::time::after;

/// The first pause before what was not kept is sent once more.
pub const FIRST_AGAIN: Duration = Duration::from_mins(10);
/// No such pause is longer: so long it takes at most until mended definitions show.
pub const LONGEST_AGAIN: Duration = Duration::from_mins(20);

/// What came back of the statuses that were written to one object.
#[derive(Clone, Debug)]
pub struct Echo<S> {
    under_way: Option<S>,
    altered: Option<Altered<S>>,
}

/// A status that was not kept as it was sent.
#[derive(Clone, Debug)]
struct Altered<S> {
    sent: S,
    shown: Option<S>,
    /// How often it was tried in a row.
    times: u32,
    again_at: Timestamp,
}

/// A status as it was sent, and as the answer shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// As it was sent.
    pub sent: Value,
    /// As the answer shows it.
    pub shown: Value,
}

impl<S> Default for Echo<S> {
    fn default() -> Self {
        Self { under_way: None, altered: None }
    }
}

impl<S: Clone + PartialEq + Serialize> Echo<S> {
    /// What an object says whose status is shown like this.
    pub fn read(&self, shown: Option<S>) -> Option<S> {
        match &self.altered {
            Some(altered) if altered.shown == shown => Some(altered.sent.clone()),
            _ => shown,
        }
    }

    /// This status is being written.
    pub fn begin(&mut self, status: S) {
        self.under_way = Some(status);
    }

    /// The write did not arrive, or nobody knows: there is no answer.
    pub fn fail(&mut self) -> Option<Answer> {
        self.under_way = None;
        None
    }

    /// The write arrived, and the object is shown like this. Says what was sent and what came back, if it was a status.
    pub fn settle(&mut self, shown: Option<S>, now: Timestamp, jitter: f64) -> Option<Answer> {
        let sent = self.under_way.take()?;
        let answer = Answer { sent: json!(sent), shown: json!(shown) };
        if shown.as_ref() == Some(&sent) {
            self.altered = None;
        } else {
            let times = self.altered.as_ref().map_or(1, |altered| altered.times.saturating_add(1));
            let pause = shorten(double(FIRST_AGAIN, LONGEST_AGAIN, times), jitter);
            self.altered = Some(Altered { sent, shown, times, again_at: after(now, pause) });
        }
        Some(answer)
    }

    /// What is to be sent once more at this time.
    pub fn again(&self, now: Timestamp) -> Option<S> {
        let due = self.altered.as_ref().filter(|altered| altered.again_at <= now);
        due.map(|altered| altered.sent.clone())
    }

    /// When there will be something to be sent once more.
    pub fn again_at(&self) -> Option<Timestamp> {
        self.altered.as_ref().map(|altered| altered.again_at)
    }
}

impl Answer {
    /// The names of the fields that were sent and are missing or other in the answer.
    pub fn lost(&self) -> Vec<String> {
        let mut lost = Vec::new();
        collect_lost("status", &self.sent, &self.shown, &mut lost);
        lost.sort();
        lost.dedup();
        lost
    }

    /// Whether a field of this name was sent.
    pub fn has(&self, name: &str) -> bool {
        has(&self.sent, name)
    }
}

fn collect_lost(name: &str, sent: &Value, shown: &Value, lost: &mut Vec<String>) {
    match (sent, shown) {
        (Value::Object(sent), Value::Object(shown)) => {
            for (name, sent) in sent {
                collect_lost(name, sent, shown.get(name).unwrap_or(&Value::Null), lost);
            }
        }
        (Value::Array(sent), Value::Array(shown)) if sent.len() == shown.len() => {
            for (sent, shown) in sent.iter().zip(shown) {
                collect_lost(name, sent, shown, lost);
            }
        }
        (sent, shown) if sent == shown => {}
        _ => lost.push(name.to_owned()),
    }
}

fn has(value: &Value, wanted: &str) -> bool {
    match value {
        Value::Object(fields) => fields.iter().any(|(name, value)| name == wanted || has(value, wanted)),
        Value::Array(items) => items.iter().any(|item| has(item, wanted)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minutes: u64) -> Timestamp {
        Timestamp::UNIX_EPOCH + Duration::from_mins(minutes)
    }

    /// What a server makes of `whole` that does not know all of it.
    fn dropped() -> Echo<&'static str> {
        let mut echo = Echo::default();
        echo.begin("whole");
        echo.settle(Some("part"), at(0), 0.0);
        echo
    }

    #[test]
    fn what_the_server_made_of_a_status_is_read_as_that_status() {
        let echo = dropped();
        assert_eq!(echo.read(Some("part")), Some("whole"));
        assert_eq!(echo.read(Some("other")), Some("other"), "somebody else wrote");
        assert_eq!(echo.read(None), None, "somebody wiped it");
    }

    #[test]
    fn a_status_that_was_dropped_as_a_whole_is_read_as_it_was_sent() {
        let mut echo = Echo::default();
        echo.begin("whole");
        echo.settle(None, at(0), 0.0);
        assert_eq!(echo.read(None), Some("whole"));
    }

    #[test]
    fn what_was_not_kept_is_sent_again_after_minutes_and_then_less_often() {
        let (mut echo, mut now) = (dropped(), at(0));
        let mut pauses = Vec::new();
        for _ in 0..4 {
            let at = echo.again_at().unwrap();
            assert_eq!((echo.again(now), echo.again(at)), (None, Some("whole")));
            pauses.push(at.duration_since(now).as_mins());
            now = at;
            echo.begin("whole");
            echo.settle(Some("part"), now, 0.0);
        }
        assert_eq!(pauses, [10, 20, 20, 20]);
    }

    #[test]
    fn a_status_that_is_kept_ends_it() {
        let mut echo = dropped();
        echo.begin("whole");
        echo.settle(Some("whole"), at(5), 0.0);
        assert_eq!((echo.again_at(), echo.read(Some("part"))), (None, Some("part")));
    }

    #[test]
    fn a_write_that_failed_says_nothing() {
        let mut echo = dropped();
        echo.begin("other");
        echo.fail();
        assert_eq!(echo.settle(Some("part"), at(1), 0.0), None);
        assert_eq!(echo.read(Some("part")), Some("whole"));
    }

    #[test]
    fn the_fields_that_were_lost_are_named() {
        let sent = json!({"desired": 1, "conditions": [{"type": "Complete"}], "tags": [{"bytesDone": 1, "tag": "v"}]});
        let shown = json!({"desired": 1, "tags": [{"tag": "v"}]});
        let answer = Answer { sent: sent.clone(), shown };
        assert_eq!(answer.lost(), ["bytesDone", "conditions"]);
        assert!(answer.has("bytesDone") && !answer.has("skippedRuns"));
        assert_eq!(Answer { shown: sent.clone(), sent: sent.clone() }.lost(), [""; 0]);
        assert_eq!(Answer { sent, shown: Value::Null }.lost(), ["status"]);
    }
}
