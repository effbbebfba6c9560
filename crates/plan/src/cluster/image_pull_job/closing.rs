//! How an ImagePullJob ends: its finalizer, which is there for the copies of its Secrets, and its time.

use jiff::Timestamp;
use serde_json::Value;

use super::expires_at;
use crate::cluster::Kernel;
use crate::cluster::command::{Command, Target, Verb, Write};
use crate::cluster::guard::{add_finalizer, guarded, has_finalizer, remove_finalizer};
use crate::object::Uid;

impl Kernel {
    /// What has to be done about the finalizer of an unfinished job. It is there for the copies of its Secrets, which have to
    /// go before the job does; any other job can be deleted while no controller runs.
    pub(super) fn protection(&self, uid: &Uid) -> Option<Vec<Value>> {
        let (job, record) = (self.jobs.all.get(uid)?, self.demands.get(uid)?);
        let metadata = &job.object.metadata;
        match (record.names_secrets(), has_finalizer(metadata)) {
            (true, false) => Some(add_finalizer(metadata)),
            (false, true) if self.is_released(&job.key) => Some(remove_finalizer(metadata)),
            _ => None,
        }
    }

    /// A job that is over or on its way out: its Secrets are released, its finalizer taken off, its time runs out.
    pub(super) fn closing_pass(&mut self, uid: &Uid, now: Timestamp, commands: &mut Vec<Command>) {
        let is_released = self.jobs.all.get(uid).is_some_and(|job| self.is_released(&job.key));
        let Some(job) = self.jobs.all.get_mut(uid) else { return };
        let mut wake_at = None;
        let verb = if job.attempts.is_blocked(now) {
            wake_at = job.attempts.pause_ends();
            None
        } else if has_finalizer(&job.object.metadata) {
            // Copies that still list the job wake it when they are gone.
            is_released.then(|| {
                Verb::Patch(guarded(&job.object.metadata, remove_finalizer(&job.object.metadata)), 0)
            })
        } else if job.is_terminating() {
            None
        } else {
            let expires_at = expires_at(&job.object);
            wake_at = expires_at.filter(|at| *at > now);
            expires_at.filter(|at| *at <= now).map(|_| Verb::Delete)
        };
        if let Some(verb) = verb {
            job.attempts.begin(verb.fingerprint());
            commands.push(Command::Write(Write { ticket: job.ticket(uid), verb }));
        }
        self.agenda.wake(Target::Job(uid.clone()), wake_at);
    }
}
