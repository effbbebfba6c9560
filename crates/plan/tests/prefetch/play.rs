//! What can happen, and a world in which it does.

use std::time::Duration;

use prewarm_api::kruise::{FailureClass, PullPhase};
use prewarm_plan::cluster::Settings;
use prewarm_plan::cluster::image_prefetch::wave::Limits;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::check::Check;
use super::support::build::{labelled, unready};
use super::support::prefetch::prefetch;
use super::support::world::{Fate, World, with, written_node};

/// The images that are prefetched.
pub const IMAGES: [&str; 2] = ["nginx:1", "redis:7"];
const NAMES: [&str; 2] = ["a", "b"];
const NODES: usize = 6;
/// Nothing takes so many rounds.
const MOST_ROUNDS: usize = 400;

/// One thing that happens.
#[derive(Clone, Debug)]
pub enum Step {
    /// Somebody makes an ImagePrefetch, or changes it.
    Put(usize, Draft),
    Delete(usize),
    /// A node is made or changed.
    PutNode {
        node: usize,
        is_ready: bool,
        zone: bool,
    },
    DeleteNode(usize),
    /// An agent says how far an image is.
    Report {
        node: usize,
        image: usize,
        word: Word,
    },
    /// The kernel decides, and its first commands arrive as it is said here.
    Turn(Vec<Fate>),
    Pass(u64),
    Restart,
}

/// What an agent says.
#[derive(Clone, Copy, Debug)]
pub enum Word {
    Pulling,
    Succeeded,
    NotFound,
    Lost,
}

/// What somebody asks for.
#[derive(Clone, Debug)]
pub struct Draft {
    images: usize,
    replicas: Option<usize>,
    by_selector: bool,
}

impl Draft {
    fn fields(&self) -> Value {
        let images = &[&IMAGES[..1], &IMAGES[1..], &IMAGES[..]][self.images];
        let selector = self.by_selector.then(|| json!({"matchLabels": {"zone": "x"}}));
        json!({
            "images": images, "replicas": self.replicas, "allNodes": self.replicas.is_none(), "nodeSelector": selector,
        })
    }
}

fn drafts() -> impl Strategy<Value = Draft> {
    (0..3_usize, proptest::option::of(1..NODES), prop::bool::weighted(0.2))
        .prop_map(|(images, replicas, by_selector)| Draft { images, replicas, by_selector })
}

fn fates() -> impl Strategy<Value = Vec<Fate>> {
    let fate = prop_oneof![8 => Just(Fate::Fine), 1 => Just(Fate::Unanswered), 1 => Just(Fate::Lost)];
    proptest::collection::vec(fate, 0..6)
}

pub fn steps() -> impl Strategy<Value = Step> {
    let word = prop_oneof![
        2 => Just(Word::Pulling), 6 => Just(Word::Succeeded), 2 => Just(Word::NotFound), 1 => Just(Word::Lost)
    ];
    prop_oneof![
        3 => (0..NAMES.len(), drafts()).prop_map(|(name, draft)| Step::Put(name, draft)),
        1 => (0..NAMES.len()).prop_map(Step::Delete),
        3 => (0..NODES, prop::bool::weighted(0.8), any::<bool>())
            .prop_map(|(node, is_ready, zone)| Step::PutNode { node, is_ready, zone }),
        1 => (0..NODES).prop_map(Step::DeleteNode),
        14 => (0..NODES, 0..IMAGES.len(), word).prop_map(|(node, image, word)| Step::Report { node, image, word }),
        16 => fates().prop_map(Step::Turn),
        4 => (1..40_u64).prop_map(Step::Pass),
        1 => (250..2000_u64).prop_map(Step::Pass),
        1 => Just(Step::Restart),
    ]
}

pub struct Play {
    world: World,
    check: Check,
    limits: Limits,
    /// How many ImagePrefetches were made: no UID comes back.
    made: usize,
}

impl Play {
    /// A world in which so many nodes may ask the registry.
    pub fn new(limit: usize) -> Self {
        let limits = Limits { seeds: limit, first: limit };
        let mut world = World { kernel: kernel(limits), ..World::default() };
        for number in 0..NODES - 1 {
            world.store.put_node(labelled(&node_name(number), &[("zone", "x")]));
        }
        world.settle();
        world.store.create_prefetch(prefetch("a", &json!({})));
        Self { world, check: Check::new(limit), limits, made: 1 }
    }

    pub fn take(&mut self, step: Step) {
        let world = &mut self.world;
        match step {
            Step::Put(name, draft) => {
                let name = NAMES[name];
                if world.store.prefetches.keys().any(|key| key.name == name) {
                    world.store.edit_prefetch(name, &draft.fields());
                } else {
                    let mut object = prefetch(name, &draft.fields());
                    object.metadata.uid = Some(format!("{name}-{}", self.made));
                    self.made += 1;
                    world.store.create_prefetch(object);
                }
            }
            Step::Delete(name) => world.store.delete_prefetch(NAMES[name], world.now),
            Step::PutNode { node, is_ready, zone } => {
                let labels = [("zone", "x"), ("topology.kubernetes.io/zone", if zone { "y" } else { "z" })];
                let object = labelled(&node_name(node), &labels[usize::from(zone && node > 2)..]);
                world.store.put_node(if is_ready { object } else { unready(object) });
                if !is_ready {
                    self.check.is_troubled(&self.world.store, &node_name(node));
                }
            }
            Step::DeleteNode(node) => world.store.delete_node(&node_name(node)),
            Step::Report { node, image, word } => self.report(&node_name(node), IMAGES[image], word),
            Step::Turn(fates) => self.turn(&fates),
            Step::Pass(seconds) => {
                world.observe();
                world.now += Duration::from_secs(seconds);
            }
            Step::Restart => self.restart(),
        }
    }

    fn restart(&mut self) {
        self.world.kernel = kernel(self.limits);
        self.world.store.forget_events();
        for input in self.world.store.all() {
            self.world.kernel.observe(input, self.world.now);
        }
    }

    fn report(&mut self, node: &str, image: &'static str, said: Word) {
        let world = &mut self.world;
        let before = world.store.clone();
        match said {
            Word::Pulling => world.report(node, image, PullPhase::Pulling),
            Word::Succeeded => world.report(node, image, PullPhase::Succeeded),
            Word::NotFound => world.struggle(node, image, FailureClass::NotFound, "there is no such image"),
            Word::Lost => {
                let lost_at = prewarm_plan::time::stamp(world.now);
                let lost_at = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(lost_at));
                if self.check.is_done(&world.store, node, image) {
                    world.report_as(node, image, PullPhase::Succeeded, |status| status.lost_at = lost_at);
                }
            }
        }
        self.check.reported(&before, &world.store, node, image, world.now);
    }

    /// The kernel decides on all that there is, and its commands arrive one after the other.
    fn turn(&mut self, fates: &[Fate]) {
        let commands = self.world.cycle();
        for (number, command) in commands.into_iter().enumerate() {
            let before = self.world.store.clone();
            let fate = fates.get(number).copied().unwrap_or(Fate::Fine);
            let node = written_node(&command).map(str::to_owned);
            self.world.carry_out(command, fate);
            self.check.written(&before, &self.world.store);
            if let Some(node) = node.filter(|_| fate != Fate::Fine) {
                self.check.missed(&self.world.store, &node);
            }
        }
        self.check.check_places(&self.world.store, self.world.now);
    }

    /// Trouble ends: everything arrives, agents do what they are told, and time passes until nothing is due.
    pub fn come_to_rest(&mut self) {
        for _ in 0..MOST_ROUNDS {
            loop {
                let before = self.world.log.len();
                self.turn(&[]);
                if self.world.log.len() == before && self.world.store.is_quiet() {
                    break;
                }
            }
            let due =
                self.world.kernel.wake_at().filter(|at| *at <= self.world.now + Duration::from_mins(10));
            let is_open = self.pull();
            match due {
                Some(at) => self.world.now = self.world.now.max(at),
                None if is_open => {}
                None => return self.check_rest(),
            }
        }
        panic!("this does not come to rest")
    }

    /// All agents of ready nodes do what they are told. Returns whether there was anything.
    fn pull(&mut self) -> bool {
        let mut has_pulled = false;
        for number in 0..NODES {
            for image in IMAGES {
                let name = node_name(number);
                if self.check.is_open(&self.world.store, &name, image) {
                    self.report(&name, image, Word::Succeeded);
                    has_pulled = true;
                }
            }
        }
        has_pulled
    }

    fn check_rest(&mut self) {
        self.check.rest(&self.world.store);
        assert_eq!(self.world.cycle(), [], "another turn has something to do");
        self.restart();
        assert_eq!(self.world.decide(), [], "a fresh kernel has something to do");
    }
}

fn kernel(limits: Limits) -> prewarm_plan::cluster::Kernel {
    with(Settings { waves: limits, ..Settings::default() })
}

fn node_name(number: usize) -> String {
    format!("n{number}")
}
