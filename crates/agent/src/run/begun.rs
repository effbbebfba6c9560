//! What attempts from mirrors leave for the next one, and when nobody goes on with it: the task was withdrawn or has ended, or the
//! node needs the room. An agent that stops leaves it to the next one.

use prewarm_api::reference::ImageRef;
use prewarm_plan::agent::source::Source;
use prewarm_plan::agent::worklist::{Outcome, Start};

use super::Loop;

impl Loop {
    pub(super) fn note_begun(&mut self, start: &Start) {
        if let Source::Mirrors { .. } = start.source {
            self.begun.insert(start.task.reference.clone());
        }
    }

    /// An image that was brought keeps itself, and nothing else is left of it.
    pub(super) fn note_brought(&mut self, reference: Option<ImageRef>, outcome: &Outcome) {
        if let (Some(reference), Outcome::Succeeded { was_present: false, .. }) = (reference, outcome) {
            self.begun.remove(&reference);
        }
    }

    /// Discards what was begun of images that nobody waits for any more.
    pub(super) fn discard_unwanted(&mut self) {
        let wanted = self.assignment.worklist.from_mirrors();
        let unwanted = self.begun.iter().filter(|reference| !wanted.contains(reference));
        let unwanted = unwanted.cloned().collect();
        self.discard(unwanted);
    }

    /// Discards everything that no attempt works on, because the node has no room for it.
    pub(super) fn discard_waiting(&mut self) {
        let worklist = &self.assignment.worklist;
        let waiting = self.begun.iter().filter(|reference| !worklist.is_attempted(reference));
        let waiting = waiting.cloned().collect();
        self.discard(waiting);
    }

    fn discard(&mut self, images: Vec<ImageRef>) {
        // While the runtime is away, it stays noted.
        let Some((runtime, _)) = &self.runtime else { return };
        for reference in images {
            self.begun.remove(&reference);
            self.mirrors.discard(reference, runtime);
        }
    }
}
