//! A kernel in a small world: its commands are carried out, agents answer, time passes when a test says so.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use prewarm_api::kruise::{
    ImagePullJob, ImagePullJobStatus, ImageStatus, ImageTagSpec, ImageTagStatus, NodeImage, PullPhase,
};
use prewarm_plan::cluster::command::{Command, Event, Outcome, Read, Verb, Write};
use prewarm_plan::cluster::demands::pod::PodFacts;
use prewarm_plan::cluster::secret::Excerpt;
use prewarm_plan::cluster::{Input, Kernel, Kind, Object, Settings};
use prewarm_plan::object::{ImageKey, ObjectKey};
use prewarm_plan::time::stamp;

use super::build::{at, job_key, key};
use super::store::{Store, WATCHES};

/// A world that has not come to rest after this many cycles never does.
const MOST_CYCLES: usize = 10_000;

/// A kernel and what is around it.
pub struct World {
    pub store: Store,
    pub kernel: Kernel,
    pub now: Timestamp,
    /// The events that were recorded.
    pub events: Vec<Event>,
    /// What was carried out, and when.
    pub log: Vec<(Timestamp, Command)>,
}

/// What becomes of a command on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It arrives, and so does the answer.
    Fine,
    /// It arrives, and the answer is lost.
    Unanswered,
    /// It does not arrive.
    Lost,
}

/// A kernel that has everything listed, of which there is nothing.
pub fn kernel() -> Kernel {
    with(Settings::default())
}

/// A kernel with these settings that has everything listed, of which there is nothing.
pub fn with(settings: Settings) -> Kernel {
    let mut kernel = Kernel::new(settings);
    for kind in Kind::ALL {
        let namespace = matches!(kind, Kind::Pod | Kind::Job).then(|| "default".to_owned());
        kernel.observe(Input::Listed { kind, namespace, names: BTreeSet::new() }, at(0));
    }
    kernel
}

/// Whether a command writes the status of a job.
pub fn is_job_status(command: &Command) -> bool {
    let is_status = |write: &Write| matches!(write.verb, Verb::PatchStatus(_));
    matches!(command, Command::Write(write) if write.ticket.kind == Kind::ImagePullJob && is_status(write))
}

/// The node whose NodeImage a command writes.
pub fn written_node(command: &Command) -> Option<&str> {
    match command {
        Command::Write(write) if write.ticket.kind == Kind::NodeImage => Some(&write.ticket.key.name),
        _ => None,
    }
}

/// Whoever draws no numbers has no jitter.
const JITTER: f64 = 0.0;

impl Default for World {
    fn default() -> Self {
        Self { store: Store::default(), kernel: kernel(), now: at(0), events: Vec::new(), log: Vec::new() }
    }
}

impl World {
    /// A world with these ready nodes, in which NodeImages were made already.
    pub fn of(nodes: &[&str]) -> Self {
        let mut world = Self::default();
        for name in nodes {
            world.store.put_node(super::build::node(name));
        }
        world.settle();
        world
    }

    /// A job is made.
    pub fn create(&mut self, job: ImagePullJob) -> &mut Self {
        self.store.create_job(job);
        self
    }

    /// A pod that jobs may select nodes by is like this.
    pub fn observe_pod(&mut self, namespace: &str, name: &str, facts: PodFacts) {
        let key = ObjectKey { namespace: namespace.to_owned(), name: name.to_owned() };
        self.kernel.observe(Input::Seen(Object::from((key, facts))), self.now);
    }

    /// A pod is gone.
    pub fn forget_pod(&mut self, namespace: &str, name: &str) {
        let key = ObjectKey { namespace: namespace.to_owned(), name: name.to_owned() };
        self.kernel.observe(Input::Gone { kind: Kind::Pod, key, uid: None }, self.now);
    }

    /// All watches say what they have to say.
    pub fn observe(&mut self) {
        for watch in 0..WATCHES {
            while let Some(input) = self.store.event(watch) {
                self.kernel.observe(input, self.now);
            }
        }
    }

    /// The next commands, without events.
    pub fn cycle(&mut self) -> Vec<Command> {
        self.observe();
        self.decide()
    }

    /// The next commands on what was observed.
    pub fn decide(&mut self) -> Vec<Command> {
        let mut commands = Vec::new();
        for command in self.kernel.cycle(self.now) {
            match command {
                Command::Record(event) => self.events.push(event),
                command => commands.push(command),
            }
        }
        commands
    }

    /// Carries a command out, and lets the kernel know what became of it.
    pub fn carry_out(&mut self, command: Command, fate: Fate) {
        let answer = self.begin(command, fate);
        self.kernel.observe(answer, self.now);
    }

    /// Carries a command out and keeps the answer.
    pub fn begin(&mut self, command: Command, fate: Fate) -> Input {
        self.log.push((self.now, command.clone()));
        match command {
            Command::Write(write) => {
                let ticket = write.ticket.clone();
                let arrives = fate != Fate::Lost;
                let outcome = arrives.then(|| self.store.write(write, self.now));
                let outcome = outcome.filter(|_| fate == Fate::Fine);
                let outcome = outcome.unwrap_or_else(|| Outcome::Failed(Some("nobody answers".to_owned())));
                Input::Settled { ticket, outcome, jitter: JITTER }
            }
            Command::Read(Read::Source(Excerpt { source, .. })) => {
                let state = (fate == Fate::Fine).then(|| self.store.read_source(&source));
                Input::SourceRead { source, state, jitter: JITTER }
            }
            command => panic!("there is nothing to read or record here: {command:?}"),
        }
    }

    /// Runs cycles until there is nothing to do at this time. Says how many writes that took.
    pub fn settle(&mut self) -> usize {
        self.settle_with(|_| Fate::Fine)
    }

    /// Runs cycles in which not every command is fine.
    pub fn settle_with(&mut self, fate: impl Fn(&Command) -> Fate) -> usize {
        let before = self.log.len();
        for _ in 0..MOST_CYCLES {
            let commands = self.cycle();
            if commands.is_empty() && self.store.is_quiet() {
                return self.log.len() - before;
            }
            for command in commands {
                let fate = fate(&command);
                self.carry_out(command, fate);
            }
        }
        panic!("the kernel does not come to rest")
    }

    /// Time passes, and what is due is done when it is due. Says how many writes that took.
    pub fn pass(&mut self, time: Duration) -> usize {
        self.pass_with(time, |_| Fate::Fine)
    }

    /// Time passes in which not every command is fine.
    pub fn pass_with(&mut self, time: Duration, fate: impl Fn(&Command) -> Fate) -> usize {
        let (before, end) = (self.log.len(), self.now + time);
        self.settle_with(&fate);
        while let Some(next) = self.kernel.wake_at().filter(|next| *next <= end) {
            self.now = self.now.max(next);
            self.settle_with(&fate);
        }
        self.now = end;
        self.settle_with(&fate);
        self.log.len() - before
    }

    /// The controller is started anew and knows nothing but what there is.
    pub fn restart(&mut self) {
        self.kernel = kernel();
        self.store.forget_events();
        for input in self.store.all() {
            self.kernel.observe(input, self.now);
        }
    }

    /// The status of a job.
    pub fn status(&self, job: &str) -> ImagePullJobStatus {
        self.store.jobs[&job_key(job)].status.clone().unwrap_or_default()
    }

    /// Desired, active, succeeded and failed nodes of a job.
    pub fn counts(&self, job: &str) -> [i32; 4] {
        let status = self.status(job);
        [status.desired, status.active, status.succeeded, status.failed]
    }

    /// What a node is told about an image, if anything.
    pub fn tag(&self, node: &str, image: &str) -> Option<ImageTagSpec> {
        self.store.images.get(node).and_then(|object| tag_of(object, &key(image))).cloned()
    }

    /// The nodes that have an image of a job in their spec.
    pub fn granted(&self, job: &str) -> Vec<String> {
        let uid = self.store.jobs[&job_key(job)].metadata.uid.clone();
        let has = |object: &NodeImage| {
            let tags = object.spec.images.values().flat_map(|image| &image.tags);
            tags.flat_map(|tag| tag.owner_references.iter().flatten()).any(|owner| owner.uid == uid)
        };
        let images = self.store.images.iter().filter(|(_, object)| has(object));
        images.map(|(name, _)| name.clone()).collect()
    }

    /// The agent of a node reports where an image is.
    pub fn report(&mut self, node: &str, image: &str, phase: PullPhase) {
        self.report_as(node, image, phase, |_| {});
    }

    /// The agent of a node reports where an image is, with details.
    pub fn report_as(
        &mut self,
        node: &str,
        image: &str,
        phase: PullPhase,
        change: impl FnOnce(&mut ImageTagStatus),
    ) {
        let (key, now) = (key(image), self.now);
        self.store.report(node, |object| {
            let old = status_of(object, &key).cloned();
            let Some(tag) = tag_of(object, &key) else { return };
            let mut status = answer(tag, old.as_ref(), phase, now);
            change(&mut status);
            put_status(object, &key, status);
        });
    }

    /// The agent of a node reports all that it is told, and nothing else.
    pub fn report_all(&mut self, node: &str, phase: PullPhase) {
        let now = self.now;
        self.store.report(node, |object| report_open(object, now, |_| Some(phase)));
    }

    /// Every agent does all that it is told.
    pub fn pull_all(&mut self) {
        let names: Vec<String> = self.store.images.keys().cloned().collect();
        for name in names {
            self.report_all(&name, PullPhase::Succeeded);
        }
    }
}

/// An agent's whole report: what it is told and not done with goes on to a phase, what it is not told is dropped.
pub fn report_open(
    object: &mut NodeImage,
    now: Timestamp,
    mut phase: impl FnMut(&ImageKey) -> Option<PullPhase>,
) {
    let old = object.clone();
    let mut images: BTreeMap<String, ImageStatus> = BTreeMap::new();
    for (name, image) in &object.spec.images {
        for tag in &image.tags {
            let key = ImageKey { name: name.clone(), tag: tag.tag.clone() };
            let held = status_of(&old, &key);
            let is_over = held.is_some_and(|held| held.version == tag.version && is_over(held.phase));
            let status = match phase(&key).filter(|_| !is_over) {
                Some(phase) => Some(answer(tag, held, phase, now)),
                None => held.cloned(),
            };
            images.entry(name.clone()).or_insert_with(|| ImageStatus { tags: vec![] }).tags.extend(status);
        }
    }
    images.retain(|_, image| !image.tags.is_empty());
    object.status.get_or_insert_default().image_statuses = Some(images);
}

/// Whether a phase is an end.
pub fn is_over(phase: PullPhase) -> bool {
    matches!(phase, PullPhase::Succeeded | PullPhase::Failed)
}

/// One tag of a NodeImage's spec.
pub fn tag_of<'a>(object: &'a NodeImage, key: &ImageKey) -> Option<&'a ImageTagSpec> {
    object.spec.images.get(&key.name)?.tags.iter().find(|tag| tag.tag == key.tag)
}

/// One tag of a NodeImage's status.
pub fn status_of<'a>(object: &'a NodeImage, key: &ImageKey) -> Option<&'a ImageTagStatus> {
    let images = object.status.as_ref()?.image_statuses.as_ref()?;
    images.get(&key.name)?.tags.iter().find(|tag| tag.tag == key.tag)
}

fn put_status(object: &mut NodeImage, key: &ImageKey, status: ImageTagStatus) {
    let images = object.status.get_or_insert_default().image_statuses.get_or_insert_default();
    let tags = &mut images.entry(key.name.clone()).or_default().tags;
    tags.retain(|tag| tag.tag != key.tag);
    tags.push(status);
}

fn answer(
    tag: &ImageTagSpec,
    old: Option<&ImageTagStatus>,
    phase: PullPhase,
    now: Timestamp,
) -> ImageTagStatus {
    let begun = old.filter(|old| old.version == tag.version).and_then(|old| old.start_time.clone());
    ImageTagStatus {
        tag: tag.tag.clone(),
        phase,
        version: tag.version,
        start_time: (phase != PullPhase::Waiting).then(|| begun.unwrap_or(Time(stamp(now)))),
        completion_time: is_over(phase).then(|| Time(stamp(now))),
        ..ImageTagStatus::default()
    }
}
