//! The pass over an ImagePullJob.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use prewarm_api::condition::Condition;
use prewarm_api::kruise::ImagePullJobStatus;
use prewarm_api::names::condition::{NODES_FOUND, SECRETS_READY};
use prewarm_api::names::event::{SECRET_MISSING, UNKNOWN_NODES};
use serde_json::{Value, json};

use super::record::Job;
use super::roll::Roll;
use super::{Hold, Observed, UnknownNodes, expires_at, report, wants};
use crate::cluster::Kernel;
use crate::cluster::command::{Command, Event, Notice, Target, Verb, Write};
use crate::cluster::guard::{add_finalizer, guarded, has_finalizer, remove_finalizer, replace_status};
use crate::demand::selection::Selection;
use crate::object::Uid;
use crate::time::{after, earliest};

/// How long a child waits for the other children of its list, so that a node gets all images at once.
pub const SIBLING_PATIENCE: Duration = Duration::from_secs(5);

impl Kernel {
    /// Finds the entries of jobs that are gone or over (kruise R58): one look at all nodes for all of these jobs.
    pub(in crate::cluster) fn find_left_entries(&mut self) {
        if self.jobs.left.is_empty() {
            return;
        }
        let left = std::mem::take(&mut self.jobs.left);
        for (name, node) in &self.nodes.all {
            let tags =
                node.image.iter().flat_map(|image| image.images.values()).flat_map(|image| &image.tags);
            let mut owners = tags.flat_map(|tag| tag.owners.iter()).filter_map(|owner| owner.uid.as_deref());
            if owners.any(|uid| left.contains(uid)) {
                self.agenda.mark(Target::Node(name.clone()));
            }
        }
    }

    pub(in crate::cluster) fn job_pass(&mut self, uid: &Uid, now: Timestamp, commands: &mut Vec<Command>) {
        let Some(job) = self.jobs.all.get_mut(uid) else { return };
        self.passes.jobs += 1;
        job.begun_at.get_or_insert(now);
        if !job.is_active() {
            return self.closing_pass(uid, now, commands);
        }
        let by_pods = matches!(job.demand.nodes, Selection::Pods(_));
        if by_pods && !self.jobs.pods.is_known(&job.key.namespace) {
            // Without all pods, the job would look as if it had no node.
            return;
        }
        self.find_unknown_nodes(uid);
        let (hold, hold_until) = self.hold(uid, now);
        let mut wake_at = hold_until;
        self.want(uid, hold.clone(), now, &mut wake_at);
        self.report(uid, hold, now, &mut wake_at, commands);
        self.show_list(uid);
        self.agenda.wake(Target::Job(uid.clone()), wake_at);
    }

    /// The list of a child looks again when the child's counts have changed, whether or not they are written.
    fn show_list(&mut self, uid: &Uid) {
        let Some(job) = self.jobs.all.get_mut(uid) else { return };
        let Some(list) = job.list_uid().map(Uid::from) else { return };
        let counts = job.roll.as_ref().map(Roll::counts);
        if job.seen_counts != counts {
            job.seen_counts = counts;
            self.agenda.mark(Target::List(list));
        }
    }

    fn find_unknown_nodes(&mut self, uid: &Uid) {
        let Some(job) = self.jobs.all.get_mut(uid) else { return };
        let Selection::Names(names) = &job.demand.nodes else { return };
        if job.unknown_nodes.is_none() {
            let mut unknown = UnknownNodes::default();
            for name in names {
                match self.nodes.all.get(name.as_str()) {
                    Some(node) if node.is_agentless() => unknown.agentless.push(name.clone()),
                    Some(node) if node.live_image().is_some() => {}
                    _ => unknown.absent.push(name.clone()),
                }
            }
            job.unknown_nodes = Some(unknown);
        }
    }

    /// What keeps a job from granting, and until when at most.
    fn hold(&self, uid: &Uid, now: Timestamp) -> (Option<Hold>, Option<Timestamp>) {
        let Some(job) = self.jobs.all.get(uid) else { return (None, None) };
        if job.demand.image.is_none() {
            return (Some(Hold::Image), None);
        }
        if let Some(why) = &job.secrets_wait {
            return (Some(Hold::Secrets(why.clone())), None);
        }
        let list = job.list_uid().and_then(|list| self.lists.get(list));
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

    fn want(&mut self, uid: &Uid, hold: Option<Hold>, now: Timestamp, wake_at: &mut Option<Timestamp>) {
        let Some(job) = self.jobs.all.get_mut(uid) else { return };
        let Some(mut roll) = job.roll.take() else { return };
        let wants = wants(&observe(job, hold, now), &mut roll);
        let image = job.demand.image.clone();
        job.roll = Some(roll);
        *wake_at = earliest(*wake_at, wants.wake_at);
        let Some(image) = image else { return };
        for (name, want) in wants.of_nodes {
            let Some(node) = self.nodes.all.get_mut(&name) else { continue };
            node.intend(&image, uid.clone(), want, now);
            self.update_standing(uid, &name);
            self.agenda.mark(Target::Node(name));
        }
        // What was just noted needs no further pass.
        self.agenda.unmark(&Target::Job(uid.clone()));
    }

    fn report(
        &mut self,
        uid: &Uid,
        hold: Option<Hold>,
        now: Timestamp,
        wake_at: &mut Option<Timestamp>,
        commands: &mut Vec<Command>,
    ) {
        let is_blind = self.jobs.all.get(uid).is_some_and(|job| self.awaits_first_read(job));
        let protection = self.jobs.all.get(uid).and_then(|job| self.protection(job));
        let Some(job) = self.jobs.all.get_mut(uid) else { return };
        let Some(roll) = job.roll.take() else { return };
        let report = report(&observe(job, hold, now), &roll);
        job.roll = Some(roll);
        *wake_at = earliest(*wake_at, report.wake_at);
        if job.attempts.is_blocked(now) {
            *wake_at = earliest(*wake_at, job.attempts.pause_ends());
            return;
        }
        let verb = if let Some(change) = protection {
            Some(Verb::Patch(guarded(&job.object.metadata, change), 0))
        } else {
            report.status.filter(|_| !is_blind).map(|status| {
                job.written_at = Some(now);
                self.events.extend(new_events(job, &status));
                Verb::PatchStatus(guarded(&job.object.metadata, replace_status(json!(status))))
            })
        };
        if let Some(verb) = verb {
            job.attempts.begin();
            commands.push(Command::Write(Write { ticket: job.ticket(uid), verb }));
        }
    }

    /// What has to be done about the finalizer of an unfinished job. It is there for the copies of its Secrets, which have to
    /// go before the job does; any other job can be deleted while no controller runs.
    fn protection(&self, job: &Job) -> Option<Vec<Value>> {
        let metadata = &job.object.metadata;
        match (job.names_secrets(), has_finalizer(metadata)) {
            (true, false) => Some(add_finalizer(metadata)),
            (false, true) if self.is_released(&job.key) => Some(remove_finalizer(metadata)),
            _ => None,
        }
    }

    /// A job that is over or on its way out: its Secrets are released, its finalizer taken off, its time runs out.
    fn closing_pass(&mut self, uid: &Uid, now: Timestamp, commands: &mut Vec<Command>) {
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
            job.attempts.begin();
            commands.push(Command::Write(Write { ticket: job.ticket(uid), verb }));
        }
        self.agenda.wake(Target::Job(uid.clone()), wake_at);
    }
}

fn observe(job: &Job, hold: Option<Hold>, now: Timestamp) -> Observed<'_> {
    Observed {
        job: &job.object,
        demand: &job.demand,
        hold,
        unknown_nodes: job.unknown_nodes.clone().unwrap_or_default(),
        missing_secrets: job.missing_secrets.clone(),
        written_at: job.written_at,
        begun_at: job.begun_at.unwrap_or(now),
        is_child: job.list_uid().is_some(),
        now,
    }
}

/// What a new status says that is worth an event: names without nodes, Secrets that are missing.
fn new_events(job: &Job, status: &ImagePullJobStatus) -> Vec<Event> {
    let message = |conditions: &Option<Vec<Condition>>, type_: &str| {
        let found = conditions
            .iter()
            .flatten()
            .find(|condition| condition.type_ == type_ && condition.status == "False");
        found.map(|condition| condition.message.clone())
    };
    let old = job.object.status.as_ref().map(|status| status.conditions.clone()).unwrap_or_default();
    let kinds = [(NODES_FOUND, UNKNOWN_NODES), (SECRETS_READY, SECRET_MISSING)];
    let fresh = kinds.into_iter().filter_map(|(type_, reason)| {
        let note = message(&status.conditions, type_)?;
        let is_recorded =
            message(&old, type_).as_ref() == Some(&note) || job.secrets_wait.as_ref() == Some(&note);
        (!is_recorded).then(|| Notice::warning(reason, note).about(job.reference()))
    });
    fresh.collect()
}
