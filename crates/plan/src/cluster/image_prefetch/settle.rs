//! What follows from the outcome of a write to an ImagePrefetch, and of a NodeImageSet that is made for it.

use crate::cluster::command::{Outcome, Settled};
use crate::cluster::node_image_set::spec;
use crate::cluster::{Kernel, Object, Target};
use crate::object::{NodeName, Uid};

impl Kernel {
    /// An ImagePrefetch was written, or not.
    pub(super) fn settle_prefetch(&mut self, uid: &Uid, settled: Settled) {
        let Settled { ticket, outcome, now, jitter } = settled;
        let Some(prefetch) = self.prefetches.all.get_mut(uid) else { return };
        outcome.note(&mut prefetch.attempts, now, jitter);
        let answer = match &outcome {
            Outcome::Written(Object::ImagePrefetch(object)) => {
                prefetch.echo.settle(object.status.clone(), now, jitter)
            }
            _ => prefetch.echo.fail(),
        };
        if matches!(outcome, Outcome::Refused(_) | Outcome::Failed(_)) {
            // What was not written need not wait for its second.
            prefetch.written_at = None;
        }
        let (about, complaint) = (prefetch.reference(), outcome.complaint(&mut prefetch.attempts, now));
        self.complain(about.clone(), complaint, now);
        self.note_answer(ticket.kind, about, answer.as_ref());
        self.learn(&ticket, outcome, now);
        self.mark_prefetch(uid);
    }

    /// A NodeImageSet was made, or not.
    pub(super) fn settle_new_set(&mut self, uid: &Uid, settled: Settled) {
        let Settled { ticket, outcome, now, jitter } = settled;
        let Some(prefetch) = self.prefetches.all.get_mut(uid) else {
            return self.learn(&ticket, outcome, now);
        };
        let key = prefetch.key.clone();
        let is_for = |node: &&NodeName| spec::name(&key.name, &key.namespace, node) == ticket.key.name;
        let node = prefetch.creating.iter().find(is_for).cloned();
        if let Some(node) = &node {
            prefetch.creating.remove(node);
            if let Some(attempts) = prefetch.made.get_mut(node) {
                outcome.note(attempts, now, jitter);
            }
        }
        let is_taken = matches!(outcome, Outcome::Collided(_));
        outcome.note(&mut prefetch.set_attempts, now, jitter);
        let (about, complaint) = (prefetch.reference(), outcome.complaint(&mut prefetch.set_attempts, now));
        self.complain(about, complaint, now);
        self.learn(&ticket, outcome, now);
        if let Some(node) = node.filter(|_| is_taken) {
            self.claim_set(&ticket.key, &key, &node);
        }
        self.mark_prefetch(uid);
    }

    fn mark_prefetch(&mut self, uid: &Uid) {
        if self.prefetches.all.get(uid).is_some() {
            self.agenda.mark(Target::Prefetch(uid.clone()));
        }
    }
}
