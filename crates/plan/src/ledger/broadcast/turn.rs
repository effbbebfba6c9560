//! The pass over a BroadcastJob.

use jiff::Timestamp;
use prewarm_api::names::event::PAUSED;
use serde_json::json;

use super::Broadcasts;
use super::job::Broadcast;
use crate::broadcast_job::shape::pod;
use crate::broadcast_job::{Decision, Observed, decide};
use crate::image_pull_job::STATUS_INTERVAL;
use crate::ledger::command::{Command, News, Telling, Write};
use crate::ledger::turn::{guarded, replace_status};
use crate::object::{NodeName, ObjectKey, Uid};
use crate::time::earliest;

impl Broadcasts {
    /// Looks at every job that has changed and decides what to do.
    pub fn turn(&mut self, now: Timestamp, commands: &mut Vec<Command>) {
        if !self.is_synced {
            return;
        }
        while let Some(uid) = self.timers.take_due(now) {
            self.dirty.insert(uid);
        }
        while let Some(uid) = self.dirty.pop_first() {
            self.pass(&uid, now, commands);
        }
        commands.extend(self.tellings.drain(..).map(Command::Tell));
    }

    fn pass(&mut self, uid: &Uid, now: Timestamp, commands: &mut Vec<Command>) {
        let Some(job) = self.jobs.get_mut(uid) else { return };
        self.passes += 1;
        let unreadable =
            job.shape.as_ref().err().map(|error| format!("the pod template cannot be read: {error}"));
        let observed = Observed {
            job: &job.object,
            refusal: unreadable.as_deref().or(job.refusal.as_deref()),
            creating: job.creating.len(),
            has_told_too_many: job.has_told_too_many,
            now,
        };
        let decision = decide(&observed, &job.roll);
        let mut wake_at = decision.wake_at;
        if job.pod_attempts.is_blocked(now) {
            wake_at = earliest(wake_at, job.pod_attempts.pause_ends());
        } else {
            job.write_pods(uid, &decision, !self.is_direct, commands);
        }
        wake_at = earliest(wake_at, job.write(uid, &decision, now, commands));
        self.timers.set(uid.clone(), wake_at);
    }
}

impl Broadcast {
    /// Makes and deletes pods, as far as it was decided.
    fn write_pods(
        &mut self,
        uid: &Uid,
        decision: &Decision,
        by_scheduler: bool,
        commands: &mut Vec<Command>,
    ) {
        let room = decision.create.min(self.window.saturating_sub(self.creating.len()));
        let nodes = self.roll.empty().filter(|node| !self.creating.contains(*node)).take(room);
        let nodes: Vec<NodeName> = nodes.cloned().collect();
        for node in nodes {
            let pod = Box::new(pod(&self.object, &node, by_scheduler));
            self.creating.insert(node.clone());
            commands.push(Command::CreatePod { job: uid.clone(), node, pod });
        }
        for (name, pod) in &decision.delete {
            if self.deleting.insert(pod.clone()) {
                let key = ObjectKey { namespace: self.key.namespace.clone(), name: name.to_string() };
                commands.push(Command::DeletePod { job: uid.clone(), key, uid: pod.clone() });
            }
        }
    }

    /// Writes the job itself, and says when to look again.
    fn write(
        &mut self,
        uid: &Uid,
        decision: &Decision,
        now: Timestamp,
        commands: &mut Vec<Command>,
    ) -> Option<Timestamp> {
        if self.attempts.is_blocked(now) {
            return self.attempts.pause_ends();
        }
        let tellings: Vec<Telling> = decision.news.iter().cloned().map(|news| self.telling(news)).collect();
        let ends = decision.status.as_ref().is_some_and(|status| status.completion_time.is_some());
        let quiet_at = self.written_at.map(|at| at + STATUS_INTERVAL).filter(|at| *at > now && !ends);
        let write = if decision.is_expired {
            Write::Delete
        } else if decision.pauses {
            self.tellings = vec![self.telling(paused())];
            let pause = json!({"op": "add", "path": "/spec/paused", "value": true});
            Write::Patch(guarded(&self.object.metadata, vec![pause]))
        } else if let Some(status) = &decision.status {
            if quiet_at.is_some() {
                return quiet_at;
            }
            self.written_at = Some(now);
            self.tellings = tellings;
            Write::Status(guarded(&self.object.metadata, replace_status(json!(status))))
        } else {
            // Nothing is written that these could wait for.
            commands.extend(tellings.into_iter().map(Command::Tell));
            self.has_told_too_many = decision.has_too_many;
            return None;
        };
        self.has_told_too_many = decision.has_too_many;
        self.attempts.begin();
        commands.push(Command::Broadcast { uid: uid.clone(), key: self.key.clone(), write });
        None
    }
}

/// What people hear when the failure policy pauses a job (kruise R117).
fn paused() -> News {
    let note = "a pod failed, and the failure policy is Pause; set spec.paused to false to go on".to_owned();
    News { is_warning: true, reason: PAUSED, note }
}
