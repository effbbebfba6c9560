//! What follows from the answer to a report.

use std::time::Duration;

use kube::api::DynamicObject;
use prewarm_plan::backoff;
use prewarm_plan::cluster::unkept;
use prewarm_plan::object::echo::Answer;

use super::{Reporter, Trouble, moment};

/// The longest pause after a write that nobody answered: when the server can be reached again, the status is current soon
/// (reliability L5). No server suffers from what does not reach it.
const LONGEST_PAUSE_UNANSWERED: Duration = Duration::from_secs(5);

impl Reporter {
    /// Takes note of how a write to the object with this UID ended. The watch may know another object by now, and
    /// about that one the answer says nothing. Returns what to tell about fields that are not kept, when that is new.
    pub fn written(
        &mut self,
        uid: &str,
        result: Result<Box<DynamicObject>, Trouble>,
        now: Duration,
        jitter: f64,
    ) -> Option<String> {
        self.is_writing = false;
        let is_known = self.uid.as_deref() == Some(uid);
        match result {
            Ok(object) if is_known => {
                self.failures = 0;
                self.attempts.succeed(moment(now));
                let shown =
                    object.data.get("status").and_then(|status| serde_json::from_value(status.clone()).ok());
                let answer = self.echo.settle(shown, moment(now), jitter);
                self.observe(&object);
                return answer.and_then(|answer| self.note_answer(&answer));
            }
            Ok(_) | Err(Trouble::OtherObject) if !is_known => {}
            // If the object is gone, the watch will say so. If it does not, the answer was wrong: while definitions are
            // changed, an API server may deny what it has, and a report that waited for the watch would wait for ever.
            Ok(_) | Err(Trouble::OtherObject | Trouble::Failed) => {
                self.failures = self.failures.saturating_add(1);
                self.not_before = now + backoff::pause(self.failures, jitter);
                self.echo.fail();
            }
            Err(Trouble::Unanswered) => {
                self.failures = self.failures.saturating_add(1);
                let pause = backoff::double(backoff::FIRST_PAUSE, LONGEST_PAUSE_UNANSWERED, self.failures);
                self.not_before = now + backoff::shorten(pause, jitter);
            }
        }
        None
    }

    fn note_answer(&mut self, answer: &Answer) -> Option<String> {
        let lost = answer.lost();
        self.unkept.retain(|name| lost.contains(name) || !answer.has(name));
        let new: Vec<String> = lost.into_iter().filter(|name| self.unkept.insert(name.clone())).collect();
        (!new.is_empty()).then(|| unkept::sentence(&new.join(", ")))
    }

    /// What the server does not keep, in words; nothing if it keeps everything.
    pub fn unkept(&self) -> Option<String> {
        let names: Vec<&str> = self.unkept.iter().map(String::as_str).collect();
        (!names.is_empty()).then(|| unkept::sentence(&names.join(", ")))
    }
}
