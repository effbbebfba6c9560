//! What follows from the outcome of a write to a BroadcastJob or to one of its pods.

use jiff::Timestamp;

use super::record::Broadcast;
use crate::cluster::command::{Outcome, Settled, Target};
use crate::cluster::{Kernel, Object};
use crate::object::Uid;

impl Kernel {
    /// A BroadcastJob was written, or not.
    pub(super) fn settle_broadcast(&mut self, uid: &Uid, settled: Settled) {
        let Settled { ticket, outcome, now, jitter } = settled;
        let Some(job) = self.broadcasts.jobs.get_mut(uid) else { return };
        outcome.note(&mut job.attempts, now, jitter);
        let answer = match &outcome {
            Outcome::Written(Object::BroadcastJob(object)) => {
                job.echo.settle(object.status.clone(), now, jitter)
            }
            _ => job.echo.fail(),
        };
        let events = std::mem::take(&mut job.events);
        match &outcome {
            Outcome::Written(_) => self.events.extend(events),
            Outcome::Gone => {}
            // What was not written need not wait for its second.
            Outcome::Collided(_) | Outcome::Refused(_) | Outcome::Failed(_) => job.written_at = None,
        }
        let (about, complaint) = (job.reference(), outcome.complaint(&mut job.attempts, now));
        self.complain(about.clone(), complaint, now);
        self.note_answer(ticket.kind, about, answer.as_ref());
        self.learn(&ticket, outcome, now);
        if self.broadcasts.jobs.get(uid).is_some() {
            self.agenda.mark(Target::Broadcast(uid.clone()));
        }
    }

    /// A pod was made or deleted, or not.
    pub(super) fn settle_pod(&mut self, uid: &Uid, settled: Settled) {
        let Settled { ticket, outcome, now, jitter } = settled;
        if let Some(job) = self.broadcasts.jobs.get_mut(uid) {
            self.agenda.mark(Target::Broadcast(uid.clone()));
            match &ticket.uid {
                None => job.pod_created(uid, &ticket.key.name, &outcome, now, jitter),
                Some(pod) => job.pod_deleted(pod, &outcome, now, jitter),
            }
            let (about, complaint) = (job.reference(), outcome.complaint(&mut job.pod_attempts, now));
            self.complain(about, complaint, now);
        }
        let is_strange =
            |object: &Object| matches!(object, Object::BroadcastPod(pod) if pod.1.owner.is_empty());
        if !matches!(&outcome, Outcome::Collided(object) if is_strange(object)) {
            self.learn(&ticket, outcome, now);
        }
    }
}

impl Broadcast {
    fn pod_created(&mut self, uid: &Uid, name: &str, outcome: &Outcome<Object>, now: Timestamp, jitter: f64) {
        let node = self.creating.remove(name).unwrap_or_default();
        let is_own = |object: &Object| matches!(object, Object::BroadcastPod(pod) if pod.1.owner == *uid);
        let is_taken = match outcome {
            Outcome::Written(_) => true,
            Outcome::Collided(object) => is_own(object),
            _ => false,
        };
        self.refusal = match outcome {
            _ if is_taken => None,
            Outcome::Collided(_) => Some(format!("pod {name} is there already and not of this job")),
            Outcome::Refused(words) => Some(format!("pod for node {node}: {words}")),
            // Nobody has said no.
            _ => self.refusal.take(),
        };
        if is_taken {
            self.window = self.window.saturating_add(1);
            self.pod_attempts.succeed(now);
        } else {
            self.window = 1;
            outcome.pause(&mut self.pod_attempts, now, jitter);
        }
    }

    fn pod_deleted(&mut self, pod: &Uid, outcome: &Outcome<Object>, now: Timestamp, jitter: f64) {
        self.deleting.remove(pod);
        match outcome {
            Outcome::Written(_) | Outcome::Gone => self.pod_attempts.succeed(now),
            _ => outcome.pause(&mut self.pod_attempts, now, jitter),
        }
    }
}
