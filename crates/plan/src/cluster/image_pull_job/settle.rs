//! What follows from the outcome of a write to an ImagePullJob.

use jiff::Timestamp;

use crate::cluster::command::{Outcome, Target, Ticket};
use crate::cluster::{Kernel, Object};
use crate::object::Uid;

impl Kernel {
    /// An ImagePullJob was written, or not.
    pub(in crate::cluster) fn settle_job(
        &mut self,
        uid: &Uid,
        ticket: &Ticket,
        outcome: Outcome<Object>,
        now: Timestamp,
        jitter: f64,
    ) {
        let Some(job) = self.jobs.all.get_mut(uid) else { return };
        outcome.note(&mut job.attempts, now, jitter);
        if matches!(outcome, Outcome::Refused(_) | Outcome::Failed(_)) {
            // What was not written need not wait for its second.
            job.written_at = None;
        }
        self.learn(ticket, outcome, now);
        if self.jobs.all.get(uid).is_some() {
            self.agenda.mark(Target::Job(uid.clone()));
        }
    }
}
