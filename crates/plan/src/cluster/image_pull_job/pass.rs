//! The pass over an ImagePullJob.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use prewarm_api::condition::Condition;
use prewarm_api::kruise::ImagePullJobStatus;
use prewarm_api::names::condition::{NODES_FOUND, SECRETS_READY};
use prewarm_api::names::event::{IMAGE_NOT_ALLOWED, NO_ROOM, SECRET_MISSING, SECRET_UNUSABLE, UNKNOWN_NODES};
use serde_json::json;

use super::record::Job;
use super::{Hold, Jobs, Observed, report, wants};
use crate::cluster::Kernel;
use crate::cluster::command::{Command, Event, Notice, Settled, Target, Verb, Write};
use crate::cluster::demands::DemandRecord;
use crate::cluster::demands::roll::Roll;
use crate::cluster::guard::{guarded, replace_status};
use crate::cluster::interface::Pass;
use crate::cluster::kind::Subject;
use crate::condition::Reason;
use crate::object::Uid;
use crate::time::{after, earliest};

/// How long a child waits for the other children of its list, so that a node gets all images at once.
pub const SIBLING_PATIENCE: Duration = Duration::from_secs(5);

impl Pass for Jobs {
    type Id = Uid;

    fn pass(kernel: &mut Kernel, uid: &Uid, now: Timestamp, commands: &mut Vec<Command>) {
        kernel.job_pass(uid, now, commands);
    }

    fn settle(kernel: &mut Kernel, uid: &Uid, settled: Settled) {
        kernel.settle_job(uid, settled);
    }
}

impl Kernel {
    fn job_pass(&mut self, uid: &Uid, now: Timestamp, commands: &mut Vec<Command>) {
        let Some(job) = self.jobs.all.get_mut(uid) else { return };
        self.passes.count(Subject::Job);
        job.begun_at.get_or_insert(now);
        if !job.is_active() {
            return self.closing_pass(uid, now, commands);
        }
        if self.awaits_pods(uid) {
            return;
        }
        self.find_unknown_nodes(uid);
        let (hold, hold_until) = self.hold(uid, now);
        let mut wake_at = hold_until;
        self.want(uid, hold.as_ref(), now, &mut wake_at);
        self.report(uid, hold, now, &mut wake_at, commands);
        self.show_list(uid);
        self.agenda.wake(Target::Job(uid.clone()), wake_at);
    }

    /// The list of a child looks again when the child's counts have changed, whether or not they are written.
    fn show_list(&mut self, uid: &Uid) {
        let Some(job) = self.jobs.all.get_mut(uid) else { return };
        let Some(list) = job.list() else { return };
        let counts = self.demands.get(uid).and_then(|record| record.roll.as_ref()).map(Roll::counts);
        if job.seen_counts != counts {
            job.seen_counts = counts;
            self.agenda.mark(Target::List(list.uid));
        }
    }

    /// What keeps a job from granting, and until when at most.
    fn hold(&self, uid: &Uid, now: Timestamp) -> (Option<Hold>, Option<Timestamp>) {
        let Some((job, record)) = self.jobs.all.get(uid).zip(self.demands.get(uid)) else {
            return (None, None);
        };
        if record.demand.image.is_none() {
            return (Some(Hold::Image), None);
        }
        if let Some(why) = &record.refusal {
            return (Some(Hold::NotAllowed(why.clone())), None);
        }
        if let Some(why) = &record.secrets_wait {
            return (Some(Hold::Secrets(why.clone())), None);
        }
        let list = job.list().and_then(|list| self.lists.get(&list.uid));
        let list = list.filter(|list| list.key.namespace == job.key.namespace);
        if list.is_some_and(|list| !list.is_complete) {
            let Time(made) =
                job.object.metadata.creation_timestamp.clone().unwrap_or(Time(Timestamp::UNIX_EPOCH));
            let until = after(made, SIBLING_PATIENCE);
            if now < until {
                return (Some(Hold::Siblings), Some(until));
            }
        }
        (None, None)
    }

    /// A grant that was never written is withdrawn before another node takes its place; the node is not silent.
    fn drop_unwritten(&mut self, uid: &Uid, now: Timestamp) {
        let Some(record) = self.demands.get_mut(uid) else { return };
        let (Some(roll), Some(image)) = (&mut record.roll, record.demand.image.clone()) else { return };
        for name in roll.find_overdue(now) {
            if self.nodes.all.get_mut(&name).is_some_and(|node| node.drop_unwritten(&image, uid)) {
                self.update_standing(uid, &name);
            }
        }
    }

    fn want(&mut self, uid: &Uid, hold: Option<&Hold>, now: Timestamp, wake_at: &mut Option<Timestamp>) {
        self.drop_unwritten(uid, now);
        loop {
            let Some((job, record)) = self.jobs.all.get(uid).zip(self.demands.get_mut(uid)) else { return };
            let Some(mut roll) = record.roll.take() else { return };
            let wants = wants(&observe(job, record, hold.cloned(), now), &mut roll);
            record.roll = Some(roll);
            if self.note_wants(uid, wants.of_nodes, now) {
                *wake_at = earliest(*wake_at, wants.wake_at);
                return;
            }
            // Nodes without room stand aside, and others come in their place.
        }
    }

    fn report(
        &mut self,
        uid: &Uid,
        hold: Option<Hold>,
        now: Timestamp,
        wake_at: &mut Option<Timestamp>,
        commands: &mut Vec<Command>,
    ) {
        let is_blind = self.demands.get(uid).is_some_and(|record| self.awaits_first_read(record));
        let protection = self.protection(uid);
        let Some((job, record)) = self.jobs.all.get_mut(uid).zip(self.demands.get(uid)) else { return };
        let Some(roll) = &record.roll else { return };
        let report = report(&observe(job, record, hold, now), roll);
        *wake_at = earliest(*wake_at, report.wake_at);
        if job.attempts.is_blocked(now) {
            *wake_at = earliest(*wake_at, job.attempts.pause_ends());
            return;
        }
        let status = report.status.or_else(|| job.echo.again(now)).filter(|_| !is_blind);
        *wake_at = earliest(*wake_at, job.echo.again_at().filter(|at| *at > now));
        let verb = match (protection, &status) {
            (Some(change), _) => Verb::Patch(guarded(&job.object.metadata, change), 0),
            (None, Some(status)) => {
                Verb::PatchStatus(guarded(&job.object.metadata, replace_status(json!(status))))
            }
            (None, None) => return,
        };
        if let Some(at) = job.attempts.repeats_at(verb.fingerprint(), now) {
            return *wake_at = earliest(*wake_at, Some(at));
        }
        if let (Verb::PatchStatus(_), Some(status)) = (&verb, status) {
            job.written_at = Some(now);
            self.events.extend(new_events(job, record, &status));
            job.echo.begin(status);
        }
        job.attempts.begin(verb.fingerprint());
        commands.push(Command::Write(Write { ticket: job.ticket(uid), verb }));
    }
}

fn observe<'a>(job: &'a Job, record: &'a DemandRecord, hold: Option<Hold>, now: Timestamp) -> Observed<'a> {
    Observed {
        job: &job.object,
        demand: &record.demand,
        hold,
        unknown_nodes: record.unknown_nodes.clone().unwrap_or_default(),
        missing_secrets: record.missing_secrets.clone(),
        unusable_secrets: record.unusable_secrets.clone(),
        written_at: job.written_at,
        begun_at: job.begun_at.unwrap_or(now),
        is_child: job.list().is_some(),
        now,
    }
}

/// What a new status says that is worth an event: names without nodes, Secrets that are missing or hold no credentials.
fn new_events(job: &Job, record: &DemandRecord, status: &ImagePullJobStatus) -> Vec<Event> {
    let found = |conditions: &Option<Vec<Condition>>, type_: &str| {
        let mut all = conditions.iter().flatten();
        all.find(|condition| condition.type_ == type_ && condition.status == "False").cloned()
    };
    let old = job.object.status.as_ref().map(|status| status.conditions.clone()).unwrap_or_default();
    let waits = [(Reason::WaitingForRoom, NO_ROOM), (Reason::ImageNotAllowed, IMAGE_NOT_ALLOWED)];
    let waits = waits.into_iter().filter_map(|(why, event)| {
        let has = |one: &&Condition| one.reason == why.as_str();
        let is_known = old.iter().flatten().any(|one| has(&one));
        let wait = status.conditions.iter().flatten().find(has).filter(|_| !is_known)?;
        Some(Notice::warning(event, wait.message.clone()).about(record.demand.owner.clone()))
    });
    let kinds = [(NODES_FOUND, UNKNOWN_NODES), (SECRETS_READY, SECRET_MISSING)];
    let fresh = kinds.into_iter().filter_map(|(type_, reason)| {
        let Condition { message: note, reason: word, .. } = found(&status.conditions, type_)?;
        let reason = if word == Reason::SecretUnusable.as_str() { SECRET_UNUSABLE } else { reason };
        let is_known = found(&old, type_).is_some_and(|old| old.message == note);
        let is_recorded = is_known || record.secrets_wait.as_ref() == Some(&note);
        (!is_recorded).then(|| Notice::warning(reason, note).about(record.demand.owner.clone()))
    });
    fresh.chain(waits).collect()
}
