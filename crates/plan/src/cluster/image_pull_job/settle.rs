//! What follows from the outcome of a write to an ImagePullJob.

use crate::cluster::command::{Outcome, Settled, Target};
use crate::cluster::{Kernel, Object};
use crate::object::Uid;

impl Kernel {
    /// An ImagePullJob was written, or not.
    pub(super) fn settle_job(&mut self, uid: &Uid, settled: Settled) {
        let Settled { ticket, outcome, now, jitter } = settled;
        let Some((job, record)) = self.jobs.all.get_mut(uid).zip(self.demands.get(uid)) else { return };
        outcome.note(&mut job.attempts, now, jitter);
        let answer = match &outcome {
            Outcome::Written(Object::ImagePullJob(object)) => {
                job.echo.settle(object.status.clone(), now, jitter)
            }
            _ => job.echo.fail(),
        };
        if matches!(outcome, Outcome::Refused(_) | Outcome::Failed(_)) {
            // What was not written need not wait for its second.
            job.written_at = None;
        }
        let (about, complaint) = (record.demand.owner.clone(), outcome.complaint(&mut job.attempts, now));
        self.complain(about.clone(), complaint, now);
        self.note_answer(ticket.kind, about, answer.as_ref());
        self.learn(&ticket, outcome, now);
        if self.jobs.all.get(uid).is_some() {
            self.agenda.mark(Target::Job(uid.clone()));
        }
    }
}
