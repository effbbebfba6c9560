//! The pass over a BroadcastJob.

use std::collections::BTreeSet;

use jiff::Timestamp;
use prewarm_api::names::event::PAUSED;
use serde_json::json;

use super::record::Broadcast;
use super::shape::pod;
use super::{Broadcasts, Decision, Observed, decide, is_over};
use crate::cluster::command::{Command, Event, Notice, Settled, Target, Ticket, Verb, Write};
use crate::cluster::guard::{guarded, replace_status};
use crate::cluster::interface::Pass;
use crate::cluster::interface::STATUS_INTERVAL;
use crate::cluster::kind::Subject;
use crate::cluster::{Kernel, Kind};
use crate::object::{NodeName, ObjectKey, Uid};
use crate::time::earliest;

impl Pass for Broadcasts {
    type Id = Uid;

    fn pass(kernel: &mut Kernel, uid: &Uid, now: Timestamp, commands: &mut Vec<Command>) {
        kernel.broadcast_pass(uid, now, commands);
    }

    fn settle(kernel: &mut Kernel, uid: &Uid, settled: Settled) {
        if settled.ticket.kind == Kind::BroadcastPod {
            kernel.settle_pod(uid, settled);
        } else {
            kernel.settle_broadcast(uid, settled);
        }
    }
}

impl Kernel {
    fn broadcast_pass(&mut self, uid: &Uid, now: Timestamp, commands: &mut Vec<Command>) {
        let is_known = self.broadcasts.is_known;
        let Some(job) = self.broadcasts.jobs.get_mut(uid).filter(|_| is_known) else { return };
        self.passes.count(Subject::Broadcast);
        let unreadable =
            job.shape.as_ref().err().map(|error| format!("the pod template cannot be read: {error}"));
        let observed = Observed {
            job: &job.object,
            refusal: unreadable.as_deref().or(job.refusal.as_deref()),
            creating: job.creating.len(),
            has_warned_of_too_many: job.has_warned_of_too_many,
            now,
        };
        let decision = decide(&observed, &job.roll);
        let mut wake_at = decision.wake_at;
        if job.pod_attempts.is_blocked(now) {
            wake_at = earliest(wake_at, job.pod_attempts.pause_ends());
        } else {
            job.write_pods(uid, &decision, self.settings.assigns_by_scheduler, commands);
        }
        wake_at = earliest(wake_at, job.write(uid, &decision, now, commands));
        self.agenda.wake(Target::Broadcast(uid.clone()), wake_at);
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
        let creating: BTreeSet<&NodeName> = self.creating.values().collect();
        let nodes = self.roll.empty().filter(|node| !creating.contains(node)).take(room);
        let nodes: Vec<NodeName> = nodes.cloned().collect();
        for node in nodes {
            let pod = Box::new(pod(&self.object, &node, by_scheduler));
            let name = pod["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            self.creating.insert(name.clone(), node);
            let ticket = self.pod_ticket(uid, name, None);
            commands.push(Command::Write(Write { ticket, verb: Verb::Create(pod) }));
        }
        for (name, pod) in &decision.delete {
            if self.deleting.insert(pod.clone()) {
                let ticket = self.pod_ticket(uid, name.to_string(), Some(pod.clone()));
                commands.push(Command::Write(Write { ticket, verb: Verb::Delete }));
            }
        }
    }

    fn pod_ticket(&self, uid: &Uid, name: String, pod: Option<Uid>) -> Ticket {
        let key = ObjectKey { namespace: self.key.namespace.clone(), name };
        Ticket { asker: Target::Broadcast(uid.clone()), kind: Kind::BroadcastPod, key, uid: pod }
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
        let events: Vec<Event> = decision.notices.iter().cloned().map(|notice| self.event(notice)).collect();
        let again_at = self.echo.again_at().filter(|at| *at > now && !is_over(&self.object));
        let again = || self.echo.again(now).filter(|_| !is_over(&self.object));
        let status = decision.status.clone().or_else(again);
        let ends = status.as_ref().is_some_and(|status| status.completion_time.is_some());
        // Whether it goes on or pauses is said at once: before its second is over, the next pod may have failed.
        let phase = self.object.status.as_ref().and_then(|old| old.phase);
        let turns = status.as_ref().is_some_and(|status| status.phase != phase);
        let quiet_at =
            self.written_at.map(|at| at + STATUS_INTERVAL).filter(|at| *at > now && !ends && !turns);
        let verb = match &status {
            _ if decision.is_expired => Verb::Delete,
            _ if decision.pauses => {
                let pause = json!({"op": "add", "path": "/spec/paused", "value": true});
                Verb::Patch(guarded(&self.object.metadata, vec![pause]), 0)
            }
            Some(_) if quiet_at.is_some() => return quiet_at,
            Some(status) => Verb::PatchStatus(guarded(&self.object.metadata, replace_status(json!(status)))),
            None => {
                // Nothing is written that these could wait for.
                commands.extend(events.into_iter().map(Command::Record));
                self.has_warned_of_too_many = decision.has_too_many;
                return again_at;
            }
        };
        if let Some(at) = self.attempts.repeats_at(verb.fingerprint(), now) {
            return Some(at);
        }
        match (&verb, status) {
            (Verb::PatchStatus(_), Some(status)) => {
                (self.written_at, self.events) = (Some(now), events);
                self.echo.begin(status);
            }
            (Verb::Patch(..), _) => self.events = vec![self.event(paused())],
            _ => {}
        }
        self.has_warned_of_too_many = decision.has_too_many;
        self.attempts.begin(verb.fingerprint());
        let ticket = Ticket {
            asker: Target::Broadcast(uid.clone()),
            kind: Kind::BroadcastJob,
            key: self.key.clone(),
            uid: Some(uid.clone()),
        };
        commands.push(Command::Write(Write { ticket, verb }));
        None
    }
}

/// The event when the failure policy pauses a job (kruise R117).
fn paused() -> Notice {
    let note = "a pod failed, and the failure policy is Pause; set spec.paused to false to go on".to_owned();
    Notice::warning(PAUSED, note)
}
