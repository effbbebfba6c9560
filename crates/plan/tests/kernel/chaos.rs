//! A world in which steps happen one by one, and in which nothing happens at once.

use std::time::Duration;

use prewarm_api::kruise::{NodeImage, PullPhase};
use prewarm_plan::cluster::Command;
use prewarm_plan::object::ImageKey;
use serde_json::json;

use super::check::{self, Check};
use super::draft::{BY_HAND, IMAGES, Pace, Step};
use super::support::build::{self, job_key, key};
use super::support::store::WATCHES;
use prewarm_plan::cluster::Input;

use super::support::world::{Fate, World, is_over, report_open, status_of};

/// Whatever is due later is a day's work: a job that never ends, an image that keeps being lost.
const HORIZON: Duration = Duration::from_hours(2);
/// Nothing takes so many rounds.
const MOST_ROUNDS: usize = 3000;

pub struct Chaos {
    pub world: World,
    pub check: Check,
    /// Commands that were decided and have not arrived.
    sent: Vec<Command>,
    /// Answers on their way back.
    answers: Vec<Input>,
}

pub fn node_name(number: usize) -> String {
    format!("n{number}")
}

fn job_name(number: usize) -> String {
    format!("j{number}")
}

impl Chaos {
    /// A world with so many nodes, of which the even ones are in the pool.
    pub fn new(nodes: usize) -> Self {
        let mut world = World::default();
        for number in 0..nodes {
            world.store.put_node(node(number, number.is_multiple_of(2), true));
        }
        world.settle();
        Self { world, check: Check::default(), sent: Vec::new(), answers: Vec::new() }
    }

    pub fn take(&mut self, step: Step) {
        let Self { world, .. } = self;
        match step {
            Step::CreateJob(job, draft) => {
                if !world.store.jobs.contains_key(&job_key(&job_name(job))) {
                    world.create(build::job(&job_name(job), &draft.fields()));
                }
            }
            Step::SetParallelism(job, parallelism) => {
                use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
                world.store.edit_job(&job_key(&job_name(job)), |job| {
                    job.spec.parallelism = Some(IntOrString::Int(parallelism));
                });
            }
            Step::SetImage(job, image) => {
                world
                    .store
                    .edit_job(&job_key(&job_name(job)), |job| IMAGES[image].clone_into(&mut job.spec.image));
                self.check.edited(&job_name(job));
            }
            Step::DeleteJob(job) => world.store.delete_job(&job_key(&job_name(job)), world.now),
            Step::PutNode { node: number, is_in_pool, is_ready } => {
                world.store.put_node(node(number, is_in_pool, is_ready));
                self.check.flipped(&node_name(number));
            }
            Step::DeleteNode(number) => world.store.delete_node(&node_name(number)),
            Step::DeleteImage(number) => world.store.delete_image(&node_name(number)),
            Step::Progress { node, pace } => self.progress(node, pace),
            Step::WriteByHand(number) => self.write_by_hand(&node_name(number)),
            Step::Lose { node, image } => self.lose(node, image),
            Step::Hear(watch) => {
                if let Some(event) = world.store.event(watch) {
                    world.kernel.observe(event, world.now);
                }
            }
            Step::Turn => self.turn(),
            Step::Arrive { command, fate } => self.arrive(command, fate),
            Step::Answer(answer) => self.answer(answer),
            Step::Pass(seconds) => self.pass(Duration::from_secs(seconds)),
            Step::Restart => {
                self.sent.clear();
                self.answers.clear();
                world.restart();
            }
        }
        self.check.stepped(&self.world.store);
    }

    /// What nodes report is heard before time goes on: a view that is older than an answer may take is not promised.
    fn pass(&mut self, time: Duration) {
        while let Some(event) = self.world.store.event(1) {
            self.world.kernel.observe(event, self.world.now);
        }
        self.world.now += time;
    }

    fn turn(&mut self) {
        self.sent.extend(self.world.decide());
    }

    fn arrive(&mut self, command: usize, fate: Fate) {
        if self.sent.is_empty() {
            return;
        }
        let command = self.sent.remove(command % self.sent.len());
        let before = self.world.store.clone();
        check::decided(&command);
        let reply = self.world.begin(command, fate);
        self.check.written(&before, &self.world.store, self.world.now);
        self.answers.push(reply);
    }

    fn answer(&mut self, answer: usize) {
        if !self.answers.is_empty() {
            let reply = self.answers.remove(answer % self.answers.len());
            self.world.kernel.observe(reply, self.world.now);
        }
    }

    /// An agent goes on. Whether a pull succeeds depends on node and image alone.
    fn progress(&mut self, node: usize, pace: Pace) {
        let Self { world, check, .. } = self;
        let now = world.now;
        world.store.report(&node_name(node), |object| {
            let old = object.clone();
            report_open(object, now, |key| next_phase(&old, key, node, pace));
            check.reported(&old, object, now);
        });
    }

    fn write_by_hand(&mut self, node: &str) {
        let Some(mut object) = self.world.store.images.get(node).cloned() else { return };
        let lasting = json!({"pullPolicy": {"ttlSecondsAfterFinished": i32::MAX}});
        let written = build::node_image(node, &[build::entry(BY_HAND).with(&lasting)]);
        object.spec.images.extend(written.spec.images);
        self.world.store.put_image(object);
        self.check.wrote_by_hand(&self.world.store.images[node]);
    }

    fn lose(&mut self, node: usize, image: usize) {
        let (name, image) = (node_name(node), IMAGES[image]);
        let Some(object) = self.world.store.images.get(&name) else { return };
        if phase(object, &key(image)) == Some(PullPhase::Succeeded) {
            let lost_at = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
                prewarm_plan::time::stamp(self.world.now),
            ));
            self.world.report_as(&name, image, PullPhase::Succeeded, |status| status.lost_at = lost_at);
        }
    }

    /// Trouble ends: everything arrives, agents do what they are told, and time passes until nothing is due.
    pub fn come_to_rest(&mut self) {
        for _ in 0..MOST_ROUNDS {
            for watch in 0..WATCHES {
                while let Some(event) = self.world.store.event(watch) {
                    self.world.kernel.observe(event, self.world.now);
                }
            }
            self.turn();
            let is_idle = self.sent.is_empty() && self.answers.is_empty();
            while !self.sent.is_empty() {
                self.arrive(0, Fate::Fine);
            }
            while !self.answers.is_empty() {
                self.answer(0);
            }
            for node in 0..4 {
                self.progress(node, Pace::All);
            }
            if is_idle && self.world.store.is_quiet() && !self.wait() {
                return self.check_rest();
            }
        }
        panic!("this does not come to rest")
    }

    /// Waits for what is due before the horizon. Returns whether there is anything.
    fn wait(&mut self) -> bool {
        let due = self.world.kernel.wake_at().filter(|at| *at <= self.world.now + HORIZON);
        self.world.now = due.map_or(self.world.now, |at| at.max(self.world.now));
        due.is_some()
    }

    fn check_rest(&mut self) {
        assert_eq!(self.world.cycle(), [], "another turn has something to do");
        self.check.rest(&self.world.store);
        self.world.restart();
        assert_eq!(self.world.decide(), [], "a fresh kernel has something to do");
    }
}

fn node(number: usize, is_in_pool: bool, is_ready: bool) -> k8s_openapi::api::core::v1::Node {
    let labels = if is_in_pool { &[("pool", "x")][..] } else { &[] };
    let node = build::labelled(&node_name(number), labels);
    if is_ready { node } else { build::unready(node) }
}

fn phase(object: &NodeImage, key: &ImageKey) -> Option<PullPhase> {
    let tag = super::support::world::tag_of(object, key)?;
    status_of(object, key).filter(|status| status.version == tag.version).map(|status| status.phase)
}

fn next_phase(object: &NodeImage, key: &ImageKey, node: usize, pace: Pace) -> Option<PullPhase> {
    let end = if can_pull(node, key) { PullPhase::Succeeded } else { PullPhase::Failed };
    match (phase(object, key), pace) {
        (Some(phase), _) if is_over(phase) => None,
        (_, Pace::All) | (Some(PullPhase::Pulling), Pace::End) => Some(end),
        (None, Pace::Acknowledge) => Some(PullPhase::Waiting),
        (Some(PullPhase::Waiting), Pace::Begin) => Some(PullPhase::Pulling),
        _ => None,
    }
}

/// Some images cannot be pulled on some nodes.
pub fn can_pull(node: usize, key: &ImageKey) -> bool {
    !(node == 1 && key.name == "nginx" || node == 2 && key.name == "redis")
}
