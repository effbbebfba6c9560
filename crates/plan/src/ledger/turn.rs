//! One turn: everything that has changed is looked at once, and what is to be done comes out as commands.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use prewarm_api::condition::Condition;
use prewarm_api::kruise::{ImagePullJobStatus, SecretReference};
use prewarm_api::names::DELETION_PROTECTION_FINALIZER;
use prewarm_api::names::condition::{NODES_FOUND, SECRETS_READY};
use prewarm_api::names::event::{SECRET_MISSING, UNKNOWN_NODES};
use serde_json::{Value, json};

use super::command::{Command, Telling, Write};
use super::job::Job;
use super::member::is_member;
use super::node::Want;
use super::{Ledger, Target};
use crate::image_pull_job::standing::{Need, needed};
use crate::image_pull_job::{self, Hold, Observed, UnknownNodes, expires_at};
use crate::node_image::{self, Action};
use crate::object::{NodeName, Uid};
use crate::selection::Selection;
use crate::time::after;
use crate::time::earliest;

/// So long a child waits until the other children of its list are there, so that a node is told of all images at once.
pub const SIBLING_PATIENCE: Duration = Duration::from_secs(5);

impl Ledger {
    /// Looks at everything that has changed and decides what to do.
    pub fn turn(&mut self, now: Timestamp) -> Vec<Command> {
        while let Some(target) = self.timers.take_due(now) {
            self.soil(target);
        }
        self.find_left_entries();
        let mut commands = Vec::new();
        while let Some(target) = self.dirty.pop_first() {
            match target {
                Target::Source(key) => self.source_pass(&key, now, &mut commands),
                Target::Job(uid) => self.job_pass(&uid, now, &mut commands),
                Target::List(uid) => self.list_pass(&uid, now, &mut commands),
                Target::Node(name) => self.node_pass(&name, now, &mut commands),
            }
        }
        commands.extend(self.tellings.drain(..).map(Command::Tell));
        self.broadcasts.turn(now, &mut commands);
        self.crons.turn(now, &mut commands);
        commands
    }

    /// Finds the entries of jobs that are gone or over (kruise R58): one look at all nodes for all of these jobs.
    fn find_left_entries(&mut self) {
        if self.left.is_empty() {
            return;
        }
        let left = std::mem::take(&mut self.left);
        for (name, node) in &self.nodes {
            let tags =
                node.image.iter().flat_map(|image| image.images.values()).flat_map(|image| &image.tags);
            let mut owners = tags.flat_map(|tag| tag.owners.iter()).filter_map(|owner| owner.uid.as_deref());
            if owners.any(|uid| left.contains(uid)) {
                self.dirty.insert(Target::Node(name.clone()));
            }
        }
    }

    fn job_pass(&mut self, uid: &Uid, now: Timestamp, commands: &mut Vec<Command>) {
        let Some(job) = self.jobs.get(uid) else { return };
        self.passes.jobs += 1;
        if !job.is_active() {
            return self.closing_pass(uid, now, commands);
        }
        let by_pods = matches!(job.selection, Selection::Pods(_));
        if by_pods && !self.pods.is_synced(&job.key.namespace) {
            // Without all pods, the job would look as if it had no node.
            return;
        }
        self.find_unknown_nodes(uid);
        let (hold, hold_until) = self.hold(uid, now);
        let mut wake_at = hold_until;
        self.want(uid, hold.clone(), now, &mut wake_at);
        self.report(uid, hold, now, &mut wake_at, commands);
        self.timers.set(Target::Job(uid.clone()), wake_at);
    }

    fn find_unknown_nodes(&mut self, uid: &Uid) {
        let Some(job) = self.jobs.get_mut(uid) else { return };
        let Selection::Names(names) = &job.selection else { return };
        if job.unknown_nodes.is_none() {
            let mut unknown = UnknownNodes::default();
            for name in names {
                match self.nodes.get(name.as_str()) {
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
        let job = &self.jobs[uid];
        if job.image.is_none() {
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
        let Some(job) = self.jobs.get_mut(uid) else { return };
        let Some(mut roll) = job.roll.take() else { return };
        let wants = image_pull_job::wants(&observe(job, hold, now), &mut roll);
        let image = job.image.clone();
        job.roll = Some(roll);
        *wake_at = earliest(*wake_at, wants.wake_at);
        let Some(image) = image else { return };
        for (name, want) in wants.of_nodes {
            let Some(node) = self.nodes.get_mut(&name) else { continue };
            node.intend(&image, uid.clone(), want, now);
            self.restand(uid, &name);
            self.soil(Target::Node(name));
        }
        // What was just noted needs no further pass.
        self.dirty.remove(&Target::Job(uid.clone()));
    }

    fn report(
        &mut self,
        uid: &Uid,
        hold: Option<Hold>,
        now: Timestamp,
        wake_at: &mut Option<Timestamp>,
        commands: &mut Vec<Command>,
    ) {
        let is_blind = self.jobs.get(uid).is_some_and(|job| self.awaits_first_read(job));
        let protection = self.jobs.get(uid).and_then(|job| self.protection(job));
        let Some(job) = self.jobs.get_mut(uid) else { return };
        let Some(roll) = job.roll.take() else { return };
        let report = image_pull_job::report(&observe(job, hold, now), &roll);
        job.roll = Some(roll);
        *wake_at = earliest(*wake_at, report.wake_at);
        if job.attempts.is_blocked(now) {
            *wake_at = earliest(*wake_at, job.attempts.pause_ends());
            return;
        }
        let write = if let Some(change) = protection {
            Some(Write::Patch(guarded(&job.object.metadata, change)))
        } else {
            report.status.filter(|_| !is_blind).map(|status| {
                job.written_at = Some(now);
                self.tellings.extend(news(job, &status));
                Write::Status(guarded(&job.object.metadata, replace_status(json!(status))))
            })
        };
        if let Some(write) = write {
            job.attempts.begin();
            commands.push(Command::Job { uid: uid.clone(), key: job.key.clone(), write });
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
        let is_released = self.is_released(&self.jobs[uid].key);
        let Some(job) = self.jobs.get_mut(uid) else { return };
        let mut wake_at = None;
        let write = if job.attempts.is_blocked(now) {
            wake_at = job.attempts.pause_ends();
            None
        } else if has_finalizer(&job.object.metadata) {
            // Copies that still list the job wake it when they are gone.
            is_released
                .then(|| Write::Patch(guarded(&job.object.metadata, remove_finalizer(&job.object.metadata))))
        } else if job.is_terminating() {
            None
        } else {
            let expires_at = expires_at(&job.object);
            wake_at = expires_at.filter(|at| *at > now);
            expires_at.filter(|at| *at <= now).map(|_| Write::Delete)
        };
        if let Some(write) = write {
            job.attempts.begin();
            commands.push(Command::Job { uid: uid.clone(), key: job.key.clone(), write });
        }
        self.timers.set(Target::Job(uid.clone()), wake_at);
    }

    fn node_pass(&mut self, name: &NodeName, now: Timestamp, commands: &mut Vec<Command>) {
        self.passes.nodes += 1;
        self.settle_intents(name);
        if self.drop_stale_pulls(name, now) {
            // The jobs come first; they come back to this node, or not.
            return self.soil(Target::Node(name.clone()));
        }
        let world = World {
            jobs: &self.jobs,
            copies: &self.copies,
            config_namespace: &self.settings.config_namespace,
        };
        let Some(node) = self.nodes.get_mut(name) else { return };
        let mut wake_at = None;
        let mut told = Vec::new();
        if node.attempts.is_blocked(now) {
            wake_at = node.attempts.pause_ends();
        } else {
            let always_ttl = self.settings.always_ttl;
            let observed = node_image::Observed { name, node, jobs: &world, now, always_ttl };
            let decision = node_image::decide(&observed);
            wake_at = earliest(wake_at, decision.wake_at);
            if let Some(action) = decision.action {
                node.attempts.begin();
                node.addressed = node.image.as_ref().map(|image| image.uid.clone());
                match &action {
                    Action::Judge { verdicts, .. } => node.judging.clone_from(verdicts),
                    Action::Patch { .. } => told = node.send(),
                    Action::Create { .. } | Action::Delete { .. } => {}
                }
                commands.push(Command::NodeImage { node: name.clone(), action });
            }
        }
        if node.is_empty() {
            self.nodes.remove(name);
        }
        self.timers.set(Target::Node(name.clone()), wake_at);
        for uid in told {
            // It is as active as before and holds the same place, so the job need not look.
            let is_dirty = self.dirty.contains(&Target::Job(uid.clone()));
            self.restand(&uid, name);
            if !is_dirty {
                self.dirty.remove(&Target::Job(uid));
            }
        }
    }

    /// Drops what is no longer wanted of a node: what was taken back while it waited to be written is not written.
    fn settle_intents(&mut self, name: &NodeName) {
        let Some(node) = self.nodes.get_mut(name).filter(|node| node.has_intents()) else { return };
        let jobs = &self.jobs;
        let dropped = node.settle_intents(|node, key, uid, intent| {
            let job = jobs.get(uid).filter(|job| job.is_active() && job.image.as_ref() == Some(key));
            let claim = job.and_then(|job| job.claim(is_member(job, name, node)));
            claim.is_some_and(|claim| match intent.want {
                Want::Grant => claim.is_member,
                want => needed(&claim, node).map(Need::want) == Some(want),
            })
        });
        for uid in dropped {
            self.restand(&uid, name);
        }
    }

    /// Pulls that had to wait were decided on an older view, and limits are counted on a fresh one (design 6). Returns
    /// whether there were any.
    fn drop_stale_pulls(&mut self, name: &NodeName, now: Timestamp) -> bool {
        let node = self.nodes.get_mut(name).filter(|node| !node.attempts.is_blocked(now));
        let dropped = node.map(|node| node.drop_stale_pulls(now)).unwrap_or_default();
        for uid in &dropped {
            self.restand(uid, name);
        }
        !dropped.is_empty()
    }
}

/// Jobs and Secrets, as entries of NodeImages know them.
struct World<'a> {
    jobs: &'a std::collections::BTreeMap<Uid, Job>,
    copies: &'a std::collections::BTreeMap<String, crate::secret::Copy>,
    config_namespace: &'a str,
}

impl node_image::Jobs for World<'_> {
    fn job(&self, uid: &str) -> Option<node_image::Job<'_>> {
        let job = self.jobs.get(uid)?;
        Some(node_image::Job {
            reference: job.reference(),
            spec: &job.object.spec,
            is_unfinished: job.is_active(),
            secrets: &job.secrets,
            lacks_secret: job.lacks_secret(),
        })
    }

    fn has_secret(&self, reference: &SecretReference) -> Option<bool> {
        let is_ours = reference.namespace.as_deref() == Some(self.config_namespace);
        is_ours.then(|| reference.name.as_deref().is_some_and(|name| self.copies.contains_key(name)))
    }
}

fn observe(job: &Job, hold: Option<Hold>, now: Timestamp) -> Observed<'_> {
    Observed {
        job: &job.object,
        hold,
        unknown_nodes: job.unknown_nodes.clone().unwrap_or_default(),
        missing_secrets: job.missing_secrets.clone(),
        written_at: job.written_at,
        now,
    }
}

/// What a new status says that people should hear of: names without nodes, Secrets that are missing.
fn news(job: &Job, status: &ImagePullJobStatus) -> Vec<Telling> {
    let told = |conditions: &Option<Vec<Condition>>, type_: &str| {
        let found = conditions
            .iter()
            .flatten()
            .find(|condition| condition.type_ == type_ && condition.status == "False");
        found.map(|condition| condition.message.clone())
    };
    let old = job.object.status.as_ref().map(|status| status.conditions.clone()).unwrap_or_default();
    let kinds = [(NODES_FOUND, UNKNOWN_NODES), (SECRETS_READY, SECRET_MISSING)];
    let fresh = kinds.into_iter().filter_map(|(type_, reason)| {
        let note = told(&status.conditions, type_)?;
        let has_been_told =
            told(&old, type_).as_ref() == Some(&note) || job.secrets_wait.as_ref() == Some(&note);
        (!has_been_told).then(|| Telling { about: job.reference(), is_warning: true, reason, note })
    });
    fresh.collect()
}

/// Puts tests on UID and version in front, so that a write that was decided on an older state does nothing.
pub(super) fn guarded(metadata: &ObjectMeta, operations: Vec<Value>) -> Vec<Value> {
    let tests = [
        json!({"op": "test", "path": "/metadata/uid", "value": metadata.uid}),
        json!({"op": "test", "path": "/metadata/resourceVersion", "value": metadata.resource_version}),
    ];
    tests.into_iter().chain(operations).collect()
}

pub(super) fn replace_status(status: Value) -> Vec<Value> {
    let mut operation = json!({"op": "add", "path": "/status"});
    operation["value"] = status;
    vec![operation]
}

fn has_finalizer(metadata: &ObjectMeta) -> bool {
    finalizer_index(metadata).is_some()
}

fn finalizer_index(metadata: &ObjectMeta) -> Option<usize> {
    metadata.finalizers.as_ref()?.iter().position(|finalizer| finalizer == DELETION_PROTECTION_FINALIZER)
}

fn add_finalizer(metadata: &ObjectMeta) -> Vec<Value> {
    let has_others = metadata.finalizers.as_ref().is_some_and(|finalizers| !finalizers.is_empty());
    vec![if has_others {
        json!({"op": "add", "path": "/metadata/finalizers/-", "value": DELETION_PROTECTION_FINALIZER})
    } else {
        json!({"op": "add", "path": "/metadata/finalizers", "value": [DELETION_PROTECTION_FINALIZER]})
    }]
}

fn remove_finalizer(metadata: &ObjectMeta) -> Vec<Value> {
    let path = finalizer_index(metadata).map(|index| format!("/metadata/finalizers/{index}"));
    path.into_iter().map(|path| json!({"op": "remove", "path": path})).collect()
}
