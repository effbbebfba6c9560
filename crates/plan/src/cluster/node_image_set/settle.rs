//! What follows from the outcome of a write to a NodeImageSet.

use crate::cluster::command::{Outcome, Settled, Target};
use crate::cluster::{Kernel, Object};
use crate::object::Uid;

impl Kernel {
    /// A NodeImageSet was written, or not.
    pub(super) fn settle_set(&mut self, uid: &Uid, settled: Settled) {
        let Settled { ticket, outcome, now, jitter } = settled;
        let Some(set) = self.sets.all.get_mut(uid) else { return };
        outcome.note(&mut set.attempts, now, jitter);
        let answer = match &outcome {
            Outcome::Written(Object::NodeImageSet(object)) => {
                set.echo.settle(object.status.clone(), now, jitter)
            }
            _ => set.echo.fail(),
        };
        if matches!(outcome, Outcome::Refused(_) | Outcome::Failed(_)) {
            set.written_at = None;
        }
        let (about, complaint) = (set.reference(), outcome.complaint(&mut set.attempts, now));
        self.complain(about.clone(), complaint, now);
        self.note_answer(ticket.kind, about, answer.as_ref());
        self.learn(&ticket, outcome, now);
        if self.sets.all.get(uid).is_some() {
            self.agenda.mark(Target::NodeImageSet(uid.clone()));
        }
    }
}
