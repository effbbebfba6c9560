//! What another program reports for this node: a second agent, or one of another maker. Two that pull the same would each
//! correct the other's times for ever, so whoever sees that a task has ended takes that end over, and of two beginnings the
//! earlier one.

use std::collections::BTreeMap;

use jiff::Timestamp;
use prewarm_api::names::message::TASK_DEADLINE;

use super::Worklist;
use crate::agent::entry::{End, Entry, Failed, Stage};
use crate::agent::state::{Note, Phase, TaskState};
use crate::object::ImageKey;

impl Worklist {
    /// Takes over the ends and beginnings that another program reported. Returns the attempts that are over with that.
    pub fn adopt_foreign(&mut self, reported: &BTreeMap<ImageKey, TaskState>) -> Vec<u64> {
        let mut over = Vec::new();
        for (key, entry) in &mut self.entries {
            let Some(state) = reported.get(key) else { continue };
            let Some(at) = end_of(state, entry) else {
                entry.begin_as(state);
                continue;
            };
            if let Some(attempt) = entry.stage.attempt() {
                self.inventory.forget(&entry.task.reference);
                over.push(attempt);
            }
            entry.end_as(state, at);
        }
        for (entry, since) in &mut self.bad {
            let state = reported.get(&entry.key).filter(|state| state.version == entry.version);
            *since = state.and_then(|state| state.completed_at).unwrap_or(*since);
        }
        over
    }
}

/// When that ended which an entry is about, if a state says so.
fn end_of(state: &TaskState, entry: &Entry) -> Option<Timestamp> {
    let at = state.completed_at.filter(|_| state.version == entry.task.version)?;
    // The controller's verdicts are for nodes that do not answer, and this one does.
    let is_verdict = match &state.note {
        Some(Note::Silence) => true,
        Some(Note::Text(text)) => text == TASK_DEADLINE && state.class.is_none(),
        _ => false,
    };
    // What ended before this began again is another end.
    let begun = entry.course.started_at.filter(|_| !entry.stage.is_finished());
    let is_earlier = entry.loss.at.or(begun).is_some_and(|begun| at < begun);
    let counts = match state.phase {
        Phase::Waiting | Phase::Pulling => false,
        Phase::Succeeded => true,
        // What one of two has pulled is there, and other credentials deserve their try.
        Phase::Failed => !entry.stage.has_succeeded() && !entry.has_retried,
    };
    (counts && !is_verdict && !is_earlier).then_some(at)
}

impl Entry {
    /// Takes over an earlier beginning of what goes on.
    fn begin_as(&mut self, state: &TaskState) {
        let goes_on = state.phase == Phase::Pulling && state.version == self.task.version;
        if let (Some(own), Some(other)) = (&mut self.course.started_at, state.started_at)
            && goes_on
            && !self.stage.is_finished()
        {
            *own = other.min(*own);
        }
    }

    /// Ends it the way that another program reported.
    fn end_as(&mut self, state: &TaskState, at: Timestamp) {
        let fingerprint = match &self.stage {
            Stage::Finished(End::Failed { failure, .. }) => failure.fingerprint,
            _ => self.last_failure.fingerprint,
        };
        self.stage = Stage::Finished(match state.phase {
            Phase::Succeeded => {
                let (image_id, digest) = (state.image_id.clone(), state.digest.clone());
                End::Succeeded { at, image_id, digest, results: state.results.clone() }
            }
            _ => End::Failed {
                at,
                failure: Failed { class: state.class, note: state.note.clone(), fingerprint },
            },
        });
        self.course.started_at = state.started_at.or(self.course.started_at);
        (self.failures, self.bytes, self.loss.at) = (state.failed_attempts, state.bytes, state.lost_at);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use prewarm_api::kruise::FailureClass;
    use serde_json::json;

    use super::*;
    use crate::agent::Moment;
    use crate::agent::conditions::Conditions;
    use crate::agent::kruise::read;
    use crate::agent::state::Phase::{Failed, Pulling, Succeeded};
    use crate::agent::worklist::{Held, Outcome};

    fn at(seconds: u64) -> Moment {
        let elapsed = Duration::from_secs(seconds);
        Moment { elapsed, wall: Timestamp::UNIX_EPOCH + elapsed }
    }

    fn key() -> ImageKey {
        ImageKey { name: "reg.example/app".to_owned(), tag: "1".to_owned() }
    }

    /// A worklist with one task that is being pulled since second 10.
    fn pulling() -> Worklist {
        let mut worklist = Worklist::default();
        let spec = json!({ "images": { "reg.example/app": { "tags": [{ "tag": "1", "version": 2 }] } } });
        worklist.adopt(read(&spec), &BTreeMap::new(), at(0));
        let conditions = Conditions { parallel: 2, hold: None, no_room: None };
        assert_eq!(worklist.decide(&conditions, at(10)).starts.len(), 1);
        worklist
    }

    fn succeeded() -> Worklist {
        let mut worklist = pulling();
        let outcome = Outcome::Succeeded {
            image: Held { id: "ours".to_owned(), digest: None },
            was_present: false,
            results: None,
        };
        worklist.ended(1, outcome, at(20), 0.0);
        worklist
    }

    fn foreign(phase: Phase, second: u64) -> TaskState {
        let completed_at = Some(at(second).wall).filter(|_| phase != Pulling);
        let class = Some(FailureClass::NotFound).filter(|_| phase == Failed);
        TaskState { completed_at, class, ..TaskState::new(key(), 2, phase) }
    }

    /// What is reported after another program has reported this, and the attempts that are over.
    fn after(mut worklist: Worklist, state: TaskState) -> (Phase, Option<i64>, Vec<u64>) {
        let over = worklist.adopt_foreign(&BTreeMap::from([(key(), state)]));
        let state = worklist.states().remove(0);
        (state.phase, state.completed_at.map(Timestamp::as_second), over)
    }

    #[test]
    fn a_foreign_end_ends_what_is_being_pulled() {
        assert_eq!(after(pulling(), foreign(Succeeded, 15)), (Succeeded, Some(15), vec![1]));
        assert_eq!(after(pulling(), foreign(Failed, 15)), (Failed, Some(15), vec![1]));
    }

    #[test]
    fn of_two_ends_the_one_that_is_stored_stays_unless_it_is_the_worse() {
        assert_eq!(after(succeeded(), foreign(Succeeded, 21)), (Succeeded, Some(21), vec![]));
        assert_eq!(after(succeeded(), foreign(Failed, 21)), (Succeeded, Some(20), vec![]));
    }

    #[test]
    fn an_end_from_before_the_beginning_is_another_end() {
        assert_eq!(after(pulling(), foreign(Succeeded, 9)), (Pulling, None, vec![]));
    }

    #[test]
    fn of_two_beginnings_the_earlier_one_counts() {
        for (second, wanted) in [(5, 5), (15, 10)] {
            let mut worklist = pulling();
            let state = TaskState { started_at: Some(at(second).wall), ..foreign(Pulling, 0) };
            worklist.adopt_foreign(&BTreeMap::from([(key(), state)]));
            let started_at = worklist.states().remove(0).started_at;
            assert_eq!(started_at.map(Timestamp::as_second), Some(wanted));
        }
    }

    #[test]
    fn what_goes_on_elsewhere_and_other_rounds_change_nothing() {
        assert_eq!(after(pulling(), foreign(Pulling, 15)), (Pulling, None, vec![]));
        let other = TaskState { version: 1, ..foreign(Succeeded, 15) };
        assert_eq!(after(pulling(), other), (Pulling, None, vec![]));
    }

    #[test]
    fn the_controllers_verdicts_are_no_ends() {
        let late = Note::Text(TASK_DEADLINE.to_owned());
        for note in [Note::Silence, late] {
            let verdict = TaskState { note: Some(note), class: None, ..foreign(Failed, 15) };
            assert_eq!(after(pulling(), verdict), (Pulling, None, vec![]));
        }
    }
}
