//! What the controller knows of the cluster, kept by difference, and what it does next.
//!
//! Whatever a watch or an answer of the API server says is an [`Input`] and is *observed*; a *cycle* looks at everything
//! that has changed since and returns commands. Nothing that matters lives only here: grants are in the NodeImages, results
//! in their statuses, and a kernel that is filled anew decides the same.
//!
//! The time that a kernel is handed never jumps: pauses, deadlines and silence are counted on it. Only schedules are about the time
//! of day, which may be set: [`Input::Clock`] says how far it is ahead.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use prewarm_api::kruise::TemplateKind;
use prewarm_api::names::DEFAULT_CONFIG_NAMESPACE;
use prewarm_api::reference_object::ObjectReference;

use super::advanced_cron_job::runs::Runs;
use super::advanced_cron_job::{Crons, RunKey};
use super::agenda::Agenda;
use super::broadcast_job::Broadcasts;
use super::command::{Command, Event, Notice, Outcome, Read, Target, Ticket};
use super::demands::Demands;
use super::image_list_pull_job::Lists;
use super::image_pull_job::Jobs;
use super::image_pull_job::explain::Why;
use super::input::{Input, Object};
use super::kind::Kind;
use super::measure::Measured;
use super::node_image::Nodes;
use super::node_image::record::Shared;
use super::quarantine::Quarantine;
use super::secret::Secrets;
use super::size::Size;
use super::unkept::Unkept;
use crate::demand::selection::Requirements;
use crate::object::{NodeName, ObjectKey, Uid};
use crate::time::after;

/// The same trouble elsewhere is not told again within this time.
const SAME_TROUBLE: Duration = Duration::from_mins(10);

/// How a kernel is set up.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The namespace of the copied Secrets.
    pub config_namespace: String,
    /// What is added to the TTL of a job that ends.
    pub always_ttl: i32,
    /// Whether the scheduler places the pods of BroadcastJobs; otherwise they are bound to their nodes directly.
    pub assigns_by_scheduler: bool,
    /// What the nodes have in common that agents run on, besides Linux. Others get no NodeImage and count for no job.
    pub agent_nodes: Requirements,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            config_namespace: DEFAULT_CONFIG_NAMESPACE.to_owned(),
            always_ttl: 300,
            assigns_by_scheduler: true,
            agent_nodes: Requirements::default(),
        }
    }
}

/// What the controller knows.
#[derive(Debug, Default)]
pub struct Kernel {
    pub(super) settings: Settings,
    pub(super) shared: Shared,
    pub(super) agenda: Agenda,
    pub(super) nodes: Nodes,
    pub(super) demands: Demands,
    pub(super) jobs: Jobs,
    pub(super) lists: Lists,
    pub(super) secrets: Secrets,
    pub(super) broadcasts: Broadcasts,
    pub(super) crons: Crons,
    #[cfg(test)]
    pub(super) wishes: super::wish::Wishes,
    /// What people are to be told with the next commands.
    pub(super) events: Vec<Event>,
    pub(super) measured: Vec<Measured>,
    pub(super) unkept: Unkept,
    pub(super) quarantine: Quarantine,
    /// The trouble that was last told, and when.
    complaint: Option<(String, Timestamp)>,
    pub(super) passes: Passes,
    /// Kinds of which everything is known, or as much as can be known.
    known: BTreeSet<Kind>,
    /// How far the time of day is ahead of the time that never jumps.
    ahead: SignedDuration,
    /// What the next cycle asks to be read.
    reads: Vec<Read>,
}

/// How many passes there were, by what they looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passes {
    /// Over Secrets that jobs name.
    pub sources: u64,
    /// Over ImagePullJobs.
    pub jobs: u64,
    /// Over ImageListPullJobs.
    pub lists: u64,
    /// Over NodeImages.
    pub nodes: u64,
    /// Over BroadcastJobs.
    pub broadcasts: u64,
    /// Over AdvancedCronJobs.
    pub crons: u64,
}

/// What was measured since it was last asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measures {
    /// How long nodes took, and how grants ended.
    pub grants: Vec<Measured>,
    /// What became of runs of cron jobs.
    pub runs: Runs,
}

impl Kernel {
    /// A kernel that knows nothing.
    pub fn new(settings: Settings) -> Self {
        Self { settings, ..Self::default() }
    }

    /// Takes note of an input. Nothing is decided; what has changed is marked for the next cycle.
    pub fn observe(&mut self, input: Input, now: Timestamp) {
        match input {
            Input::Seen(object) => self.observe_object(object, now),
            Input::Gone { kind, key, uid } => self.forget(kind, &key, uid.as_deref()),
            Input::Listed { kind, namespace, names } => self.observe_list(kind, namespace, &names),
            // Children of a list that nobody may read are jobs like any other.
            Input::Forbidden(Kind::ImageListPullJob) => self.know(Kind::ImageListPullJob),
            Input::Unreadable { kind, key, uid, reason } => self.quarantine(kind, &key, &uid, &reason),
            Input::Unwatched { kind: Kind::Pod, namespace } => self.unwatch_pods(&namespace),
            Input::Unwatched { kind: Kind::Job, namespace } => self.unwatch_runs(&namespace),
            // Everything else is watched everywhere, or not at all.
            Input::Forbidden(_) | Input::Undefined(_) | Input::Unwatched { .. } => {}
            Input::Clock { ahead } => {
                self.ahead = ahead;
                self.mark_crons();
            }
            Input::SourceRead { source, state, jitter } => {
                self.observe_source(&source, state, now, jitter);
            }
            Input::Settled { ticket, outcome, jitter } => self.settle(&ticket, outcome, now, jitter),
        }
    }

    /// Looks at everything that has changed or is due, and decides what to do.
    pub fn cycle(&mut self, now: Timestamp) -> Vec<Command> {
        let mut commands: Vec<Command> = self.reads.drain(..).map(Command::Read).collect();
        if !self.is_synced() {
            return commands;
        }
        self.agenda.mark_due(now);
        self.find_left_entries();
        while let Some(target) = self.agenda.next() {
            match target {
                target if self.is_quarantined(&target) => {}
                Target::Source(key) => self.source_pass(&key, now, &mut commands),
                Target::Job(uid) => self.job_pass(&uid, now, &mut commands),
                Target::List(uid) => self.list_pass(&uid, now, &mut commands),
                Target::Node(name) => self.node_pass(&name, now, &mut commands),
                Target::Broadcast(uid) => self.broadcast_pass(&uid, now, &mut commands),
                Target::Cron(uid) => self.cron_pass(&uid, now, &mut commands),
                #[cfg(test)]
                Target::Wish(uid) => self.wish_pass(&uid, now),
            }
        }
        commands.extend(self.events.drain(..).map(Command::Record));
        commands
    }

    /// When the next cycle is due although nothing is observed.
    pub fn wake_at(&self) -> Option<Timestamp> {
        self.agenda.wake_at()
    }

    /// Whether enough is known of the cluster to decide anything.
    pub fn is_synced(&self) -> bool {
        Kind::NEEDED.iter().all(|kind| self.known.contains(kind))
    }

    /// How many targets the next cycle looks at, without those whose time has yet to come.
    pub fn backlog(&self) -> usize {
        self.agenda.len() + self.demands.left()
    }

    /// The namespaces in which a kind has to be watched because something depends on it there.
    pub fn watched_namespaces(&self, kind: Kind) -> BTreeSet<String> {
        match kind {
            Kind::Pod => self.pod_namespaces(),
            Kind::Job => self.run_namespaces(),
            _ => BTreeSet::new(),
        }
    }

    /// How many passes there were.
    pub fn passes(&self) -> Passes {
        self.passes
    }

    /// How often the passes over a job have looked at a node so far.
    pub fn visits(&self, kind: Kind, key: &ObjectKey) -> Option<u64> {
        match kind {
            Kind::BroadcastJob => self.broadcast_visits(key),
            _ => self.job_visits(key),
        }
    }

    /// What was measured since this was last called.
    pub fn take_measures(&mut self) -> Measures {
        Measures { grants: std::mem::take(&mut self.measured), runs: self.take_runs() }
    }

    /// How much there is.
    pub fn size(&self, now: Timestamp) -> Size {
        self.count(now)
    }

    /// Why each node of an unfinished ImagePullJob is where it is. `None` if the job is over or not known.
    pub fn explain(&self, key: &ObjectKey, now: Timestamp) -> Option<BTreeMap<NodeName, Why>> {
        self.explain_job(key, now)
    }

    /// The time of day at a moment of the time that never jumps.
    pub(super) fn time_of_day(&self, now: Timestamp) -> Timestamp {
        now.checked_add(self.ahead).unwrap_or(now)
    }

    /// The moment at which it is this time of day, if nobody sets the clock before.
    pub(super) fn moment_of(&self, time_of_day: Timestamp) -> Timestamp {
        time_of_day.checked_sub(self.ahead).unwrap_or(time_of_day)
    }

    /// A run of a cron job is known twice: as what it is, and to its cron job.
    fn observe_object(&mut self, object: Object, now: Timestamp) {
        if !self.quarantine.is_empty() {
            self.release(object.kind(), &object.key(&self.settings.config_namespace));
        }
        if let Some(key) = object.run_key() {
            self.observe_run(&key, object.run());
        }
        match object {
            Object::Node(node) => self.observe_node(*node),
            Object::NodeImage(image) => self.observe_node_image(*image, now),
            Object::ImagePullJob(job) => self.observe_job(*job),
            Object::ImageListPullJob(list) => self.observe_image_list(*list),
            Object::Copy(copy) => self.observe_copy(copy),
            Object::Pod(key, facts) => self.observe_pod(&key, Some(facts)),
            Object::BroadcastJob(job) => self.observe_broadcast(*job),
            Object::BroadcastPod(key, pod) => self.observe_broadcast_pod(&key, pod),
            Object::AdvancedCronJob(cron) => self.observe_cron(*cron),
            Object::Job(..) => {}
        }
    }

    fn forget(&mut self, kind: Kind, key: &ObjectKey, uid: Option<&str>) {
        self.release(kind, key);
        if let Some(run) = RunKey::of(kind, key) {
            self.forget_run(&run, uid);
        }
        match kind {
            Kind::Node => self.forget_node(&key.name),
            Kind::NodeImage => self.forget_node_image(&key.name, uid),
            Kind::ImagePullJob => self.forget_job(key, uid),
            Kind::ImageListPullJob => self.forget_list(key, uid),
            Kind::Secret => self.forget_copy(&key.name, uid),
            Kind::Pod => self.observe_pod(key, None),
            Kind::BroadcastJob => self.forget_broadcast(key, uid),
            Kind::BroadcastPod => self.forget_broadcast_pod(key, uid),
            Kind::AdvancedCronJob => self.forget_cron(key, uid),
            Kind::Job => {}
        }
    }

    /// Everything of a kind is known. What is held and not listed is gone, or younger than the list: it has to be read. An
    /// object that we made ourselves may come and go while no watch runs, so that only its absence from a list tells.
    fn observe_list(&mut self, kind: Kind, namespace: Option<String>, names: &BTreeSet<ObjectKey>) {
        let is_here = |key: &ObjectKey| namespace.as_ref().is_none_or(|here| *here == key.namespace);
        let missing = self.held(kind).into_iter().filter(|(key, _)| is_here(key) && !names.contains(key));
        self.reads.extend(missing.map(|(key, uid)| Read::Object { kind, key, uid }));
        match (kind, namespace) {
            (Kind::Pod, namespace) => return self.know_pods(&namespace.unwrap_or_default()),
            (Kind::Job, namespace) => self.know_jobs(&namespace.unwrap_or_default()),
            (Kind::ImageListPullJob, _) => self.know_runs(TemplateKind::ImageListPullJob),
            (Kind::BroadcastJob, _) => self.know_runs(TemplateKind::BroadcastJob),
            _ => {}
        }
        self.know(kind);
    }

    /// Nothing more will be known of a kind for now.
    fn know(&mut self, kind: Kind) {
        self.known.insert(kind);
        if Kind::NEEDED_FOR_BROADCASTS.iter().all(|kind| self.known.contains(kind)) {
            self.know_broadcasts();
        }
    }

    /// The objects of a kind that is also known by the answers to our own writes.
    fn held(&self, kind: Kind) -> BTreeSet<(ObjectKey, Uid)> {
        let own: Vec<(ObjectKey, Uid)> = match kind {
            Kind::NodeImage => self.nodes.held(),
            Kind::ImagePullJob => owned(self.jobs.held()),
            Kind::ImageListPullJob => owned(self.lists.held()),
            Kind::Secret => self.held_copies(),
            Kind::BroadcastJob => owned(self.broadcasts.held_jobs()),
            Kind::BroadcastPod => owned(self.broadcasts.held_pods()),
            Kind::AdvancedCronJob => owned(self.crons.held()),
            Kind::Node | Kind::Pod | Kind::Job => Vec::new(),
        };
        own.into_iter().chain(self.crons.held_runs(kind)).collect()
    }

    /// What a write changed reaches what is known of the object's own kind, and whoever asked for the write learns what
    /// became of it.
    fn settle(&mut self, ticket: &Ticket, outcome: Outcome<Object>, now: Timestamp, jitter: f64) {
        match &ticket.asker {
            Target::Source(source) => self.settle_copy(source, ticket, outcome, now, jitter),
            Target::Node(name) => self.settle_node_image(name, outcome, now, jitter),
            Target::Job(uid) => self.settle_job(uid, ticket, outcome, now, jitter),
            Target::List(uid) if ticket.kind == Kind::ImagePullJob => {
                self.settle_child(uid, ticket, outcome, now, jitter);
            }
            Target::List(uid) => self.settle_list(uid, ticket, outcome, now, jitter),
            Target::Broadcast(uid) if ticket.kind == Kind::BroadcastPod => {
                self.settle_pod(uid, ticket, outcome, now, jitter);
            }
            Target::Broadcast(uid) => self.settle_broadcast(uid, ticket, outcome, now, jitter),
            Target::Cron(uid) if ticket.kind != Kind::AdvancedCronJob => {
                self.settle_run(uid, ticket, outcome, now, jitter);
            }
            Target::Cron(uid) => self.settle_cron(uid, ticket, outcome, now, jitter),
            #[cfg(test)]
            Target::Wish(_) => {}
        }
    }

    /// Tells of trouble that lasts. What ails all nodes is told of one of them.
    pub(super) fn complain(&mut self, about: ObjectReference, complaint: Option<Notice>, now: Timestamp) {
        let Some(complaint) = complaint else { return };
        let is_fresh =
            |(note, at): &(String, Timestamp)| *note == complaint.note && now < after(*at, SAME_TROUBLE);
        if !self.complaint.as_ref().is_some_and(is_fresh) {
            self.complaint = Some((complaint.note.clone(), now));
            self.events.push(complaint.about(about));
        }
    }

    /// The answer to a write reaches what is known of the object's own kind as its watch would tell it, only sooner. A watch
    /// may be broken for a minute, and nobody waits for it.
    pub(super) fn learn(&mut self, ticket: &Ticket, outcome: Outcome<Object>, now: Timestamp) {
        match outcome {
            Outcome::Written(object) if object.has_ended() => {
                self.forget(ticket.kind, &ticket.key, ticket.uid.as_deref());
            }
            Outcome::Written(object) | Outcome::Collided(object) => self.observe_object(object, now),
            Outcome::Gone => self.forget(ticket.kind, &ticket.key, ticket.uid.as_deref()),
            Outcome::Refused(_) | Outcome::Failed(_) => {}
        }
    }
}

fn owned<'a>(held: impl Iterator<Item = (&'a ObjectKey, &'a Uid)>) -> Vec<(ObjectKey, Uid)> {
    held.map(|(key, uid)| (key.clone(), uid.clone())).collect()
}

#[cfg(test)]
mod tests;
