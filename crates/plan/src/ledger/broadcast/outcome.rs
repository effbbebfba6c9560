//! What became of commands.

use jiff::Timestamp;
use prewarm_api::kruise::BroadcastJob;

use super::Broadcasts;
use crate::broadcast_job::pod::Pod;
use crate::ledger::command::Outcome;
use crate::object::{NodeName, ObjectKey, Uid};

impl Broadcasts {
    /// A BroadcastJob was written, or not.
    pub fn job_outcome(
        &mut self,
        key: &ObjectKey,
        uid: &Uid,
        outcome: Outcome<BroadcastJob>,
        now: Timestamp,
        jitter: f64,
    ) {
        let Some(job) = self.jobs.get_mut(uid) else { return };
        let tellings = std::mem::take(&mut job.tellings);
        match outcome {
            Outcome::Written(object) => {
                job.attempts.succeed();
                self.tellings.extend(tellings);
                self.hear_job(object);
            }
            Outcome::Gone => self.lose_job(key, Some(uid)),
            Outcome::Collided(object) => {
                job.attempts.collide(now, jitter);
                job.written_at = None;
                self.hear_job(*object);
            }
            Outcome::Refused(_) | Outcome::Failed => {
                // What was not written need not wait for its second.
                job.written_at = None;
                job.attempts.fail(now, jitter);
            }
        }
        if self.jobs.contains_key(uid) {
            self.dirty.insert(uid.clone());
        }
    }

    /// A pod was made, or not.
    pub fn pod_created(
        &mut self,
        uid: &Uid,
        node: &NodeName,
        namespace: &str,
        outcome: Outcome<Pod>,
        now: Timestamp,
        jitter: f64,
    ) {
        if let Some(job) = self.jobs.get_mut(uid) {
            job.creating.remove(node);
            self.dirty.insert(uid.clone());
            let is_taken = match &outcome {
                Outcome::Written(_) => true,
                Outcome::Collided(pod) => pod.owner == *uid,
                _ => false,
            };
            job.refusal = match &outcome {
                _ if is_taken => None,
                Outcome::Collided(pod) => {
                    Some(format!("pod {} is there already and not of this job", pod.name))
                }
                Outcome::Refused(words) => Some(format!("pod for node {node}: {words}")),
                // Nobody has said no.
                _ => job.refusal.take(),
            };
            if is_taken {
                job.window = job.window.saturating_add(1);
                job.pod_attempts.succeed();
            } else {
                job.window = 1;
                job.pod_attempts.fail(now, jitter);
            }
        }
        match outcome {
            Outcome::Written(pod) => self.hear_pod(namespace, pod),
            Outcome::Collided(pod) if !pod.owner.is_empty() => self.hear_pod(namespace, *pod),
            _ => {}
        }
    }

    /// A pod was deleted, or not.
    pub fn pod_deleted(
        &mut self,
        job_uid: &Uid,
        key: &ObjectKey,
        uid: &Uid,
        outcome: Outcome<Pod>,
        now: Timestamp,
        jitter: f64,
    ) {
        if let Some(job) = self.jobs.get_mut(job_uid) {
            job.deleting.remove(uid);
            self.dirty.insert(job_uid.clone());
            match &outcome {
                Outcome::Written(_) | Outcome::Gone => job.pod_attempts.succeed(),
                _ => job.pod_attempts.fail(now, jitter),
            }
        }
        match outcome {
            // It is on its way out.
            Outcome::Written(pod) => self.hear_pod(&key.namespace, pod),
            Outcome::Gone => self.lose_pod(&key.namespace, &key.name, Some(uid)),
            Outcome::Collided(pod) if !pod.owner.is_empty() => self.hear_pod(&key.namespace, *pod),
            _ => {}
        }
    }
}
