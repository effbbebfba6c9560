//! The pass over an ImageListPullJob.

use jiff::Timestamp;
use prewarm_api::kruise::ImageListPullJob;
use prewarm_api::names::REVISION_HASH_LABEL;
use prewarm_api::names::event::{CREATED_CHILDREN, DELETED_CHILDREN};
use serde_json::{Value, json};

use super::record::List;
use super::{Child, Decision, Lists, Observed, Progress, decide};
use crate::cluster::command::{Command, Notice, Settled, Target, Ticket, Verb, Write};
use crate::cluster::demands::DemandRecord;
use crate::cluster::guard::{guarded, replace_status};
use crate::cluster::image_pull_job::record::Job;
use crate::cluster::interface::Pass;
use crate::cluster::interface::STATUS_INTERVAL;
use crate::cluster::kind::Subject;
use crate::cluster::{Kernel, Kind};
use crate::object::{ObjectKey, OwnerKey, Uid};
use crate::time::earliest;

impl Pass for Lists {
    type Id = Uid;

    fn pass(kernel: &mut Kernel, uid: &Uid, now: Timestamp, commands: &mut Vec<Command>) {
        kernel.list_pass(uid, now, commands);
    }

    fn settle(kernel: &mut Kernel, uid: &Uid, settled: Settled) {
        if settled.ticket.kind == Kind::ImagePullJob {
            kernel.settle_child(uid, settled);
        } else {
            kernel.settle_list(uid, settled);
        }
    }
}

impl Kernel {
    fn list_pass(&mut self, uid: &Uid, now: Timestamp, commands: &mut Vec<Command>) {
        let Some(list) = self.lists.get(uid).filter(|list| !list.is_abandoned) else { return };
        self.passes.count(Subject::List);
        let owner = OwnerKey::new(&list.key.namespace, uid);
        let children = self.jobs.children.get(&owner).into_iter().flatten();
        let children = children.filter_map(|uid| self.jobs.all.get(uid).zip(self.demands.get(uid)));
        let children = children.map(|(job, record)| as_child(job, record)).collect();
        let namespace = &list.key.namespace;
        let is_taken = |name: &str| {
            self.jobs.all.has(&ObjectKey { namespace: namespace.clone(), name: name.to_owned() })
        };
        let observed = Observed { list: &list.object, children, refused: &list.refused, is_taken: &is_taken };
        let decision = decide(&observed, now);
        let Some(list) = self.lists.get_mut(uid) else { return };
        let wake_at = list.carry_out(uid, &decision, now, commands);
        self.agenda.wake(Target::List(uid.clone()), wake_at);
        self.record_children(uid);
        self.notice_completeness(uid);
    }

    /// Children that wait for their siblings are marked when all are there.
    fn notice_completeness(&mut self, uid: &Uid) {
        let Some(list) = self.lists.get_mut(uid).filter(|list| list.has_all_children && !list.is_complete)
        else {
            return;
        };
        list.is_complete = true;
        let owner = OwnerKey::new(&list.key.namespace, uid);
        let children = self.jobs.children.get(&owner).into_iter().flatten().cloned();
        self.agenda.mark_all(children.map(Target::Job));
    }

    /// What was done with children becomes an event when the batch is over, with a count (kruise R77).
    fn record_children(&mut self, uid: &Uid) {
        let Some(list) = self.lists.get_mut(uid) else { return };
        if list.has_writes() {
            return;
        }
        let (created, deleted) = (std::mem::take(&mut list.created), std::mem::take(&mut list.deleted));
        let done = [(created, CREATED_CHILDREN, "created"), (deleted, DELETED_CHILDREN, "deleted")];
        for (count, reason, word) in done.into_iter().filter(|(count, _, _)| *count > 0) {
            let note = format!("{word} {count} ImagePullJob{}", if count == 1 { "" } else { "s" });
            self.events.push(Notice::normal(reason, note).about(list.reference()));
        }
    }
}

impl List {
    /// Begins what was decided, as far as nothing is under way, and says when to look again.
    fn carry_out(
        &mut self,
        uid: &Uid,
        decision: &Decision,
        now: Timestamp,
        commands: &mut Vec<Command>,
    ) -> Option<Timestamp> {
        let mut wake_at = decision.wake_at;
        self.has_all_children =
            decision.has_all_children || self.object.metadata.deletion_timestamp.is_some();
        if self.child_attempts.is_blocked(now) {
            wake_at = earliest(wake_at, self.child_attempts.pause_ends());
        } else if !self.has_writes() {
            self.write_children(uid, decision, commands);
        }
        if self.attempts.is_blocked(now) {
            return earliest(wake_at, self.attempts.pause_ends());
        }
        let (verb, write_at) = self.choose(decision, now);
        wake_at = earliest(wake_at, write_at);
        if let Some(verb) = verb {
            self.attempts.begin(verb.fingerprint());
            let ticket = Ticket {
                asker: Target::List(uid.clone()),
                kind: Kind::ImageListPullJob,
                key: self.key.clone(),
                uid: Some(uid.clone()),
            };
            commands.push(Command::Write(Write { ticket, verb }));
        }
        wake_at
    }

    /// What is written to the list itself now, and when to look again for the sake of what is not.
    fn choose(&mut self, decision: &Decision, now: Timestamp) -> (Option<Verb>, Option<Timestamp>) {
        if decision.is_expired {
            return (Some(Verb::Delete), None);
        }
        let is_over = self.object.status.as_ref().is_some_and(|status| status.completion_time.is_some());
        let again_at = self.echo.again_at().filter(|at| *at > now && !is_over);
        let again = || self.echo.again(now).filter(|_| !is_over);
        let status = decision.status.clone().or_else(again);
        let ends = status.as_ref().is_some_and(|status| status.completion_time.is_some());
        let quiet_at = self.written_at.map(|at| at + STATUS_INTERVAL).filter(|at| *at > now && !ends);
        let verb = match (&decision.label, &status) {
            (Some(label), _) => {
                Verb::Patch(guarded(&self.object.metadata, set_label(&self.object, label)), 0)
            }
            (None, Some(_)) if quiet_at.is_some() => return (None, earliest(quiet_at, again_at)),
            (None, Some(status)) => {
                Verb::PatchStatus(guarded(&self.object.metadata, replace_status(json!(status))))
            }
            (None, None) => return (None, again_at),
        };
        if let Some(at) = self.attempts.repeats_at(verb.fingerprint(), now) {
            return (None, Some(at));
        }
        if let (Verb::PatchStatus(_), Some(status)) = (&verb, status) {
            self.written_at = Some(now);
            self.echo.begin(status);
        }
        (Some(verb), again_at)
    }

    /// Children are made in batches that double, so that a refusal costs one request and not two hundred (kruise R75).
    fn write_children(&mut self, uid: &Uid, decision: &Decision, commands: &mut Vec<Command>) {
        for child in decision.create.iter().take(self.batch) {
            let key = ObjectKey::of(&child.metadata);
            self.creating.insert(key.name.clone(), child.spec.image.clone());
            let verb = Verb::Create(Box::new(json!(child)));
            commands.push(Command::Write(Write { ticket: child_ticket(uid, key, None), verb }));
        }
        self.batch = self.batch.saturating_mul(2);
        for child in &decision.delete {
            self.deleting.insert(child.uid.clone());
            let key = ObjectKey { namespace: self.key.namespace.clone(), name: child.name.clone() };
            let ticket = child_ticket(uid, key, Some(child.uid.clone()));
            commands.push(Command::Write(Write { ticket, verb: Verb::Delete }));
        }
    }
}

/// A job as its list counts it: while it is at work by the counts of this moment, afterwards by its status.
fn as_child<'a>(job: &'a Job, record: &DemandRecord) -> Child<'a> {
    let live = job.live_counts(record).map(|counts| Progress {
        is_active: counts.active > 0,
        is_completed: counts.succeeded + counts.failed == counts.desired,
        is_succeeded: counts.succeeded == counts.desired,
        has_failed: counts.failed > 0,
    });
    let child = Child::from(&job.object);
    Child { progress: live.unwrap_or(child.progress), ..child }
}

fn child_ticket(list: &Uid, key: ObjectKey, uid: Option<Uid>) -> Ticket {
    Ticket { asker: Target::List(list.clone()), kind: Kind::ImagePullJob, key, uid }
}

fn set_label(list: &ImageListPullJob, label: &str) -> Vec<Value> {
    let operation = match &list.metadata.labels {
        Some(_) => {
            json!({"op": "add", "path": format!("/metadata/labels/{REVISION_HASH_LABEL}"), "value": label})
        }
        None => json!({"op": "add", "path": "/metadata/labels", "value": {REVISION_HASH_LABEL: label}}),
    };
    vec![operation]
}
