//! What can happen, drawn at random.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::support::world::Fate;

/// The images that jobs pull.
pub const IMAGES: [&str; 3] = ["nginx:1", "nginx:2", "redis:7"];

/// An image that no job pulls.
pub const BY_HAND: &str = "busybox:1";

/// One thing that happens.
#[derive(Clone, Debug)]
pub enum Step {
    /// Somebody makes a job, if there is none of that name.
    CreateJob(usize, JobDraft),
    /// Somebody changes how many nodes a job pulls on at once.
    SetParallelism(usize, i32),
    /// Somebody has a job pull another image.
    SetImage(usize, usize),
    DeleteJob(usize),
    /// A node is made or changed.
    PutNode {
        node: usize,
        is_in_pool: bool,
        is_ready: bool,
    },
    DeleteNode(usize),
    /// Somebody deletes a NodeImage.
    DeleteImage(usize),
    /// The agent of a node goes on with what it is told.
    Progress {
        node: usize,
        pace: Pace,
    },
    /// A person writes an entry that no job wants.
    WriteByHand(usize),
    /// A node loses an image that it has.
    Lose {
        node: usize,
        image: usize,
    },
    /// A watch says the next thing.
    Hear(usize),
    /// The kernel decides.
    Turn,
    /// A command that was decided arrives or does not.
    Arrive {
        command: usize,
        fate: Fate,
    },
    /// The answer to a command that arrived comes back.
    Answer(usize),
    /// So many seconds pass.
    Pass(u64),
    Restart,
}

/// How far an agent goes at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// It says that it knows.
    Acknowledge,
    /// It begins what it knows.
    Begin,
    /// It ends what it has begun.
    End,
    /// It does all that it is told.
    All,
}

/// What somebody asks for.
#[derive(Clone, Debug)]
pub struct JobDraft {
    pub image: usize,
    pub parallelism: i32,
    pub ends: bool,
    pub asks_registry: bool,
    pub is_for_pool: bool,
    pub ttl: Option<i32>,
}

impl JobDraft {
    /// As fields of a spec.
    pub fn fields(&self) -> Value {
        let mut fields = json!({
            "image": IMAGES[self.image],
            "parallelism": self.parallelism,
            "imagePullPolicy": if self.asks_registry { "Always" } else { "IfNotPresent" },
            "completionPolicy": {"type": if self.ends { "Always" } else { "Never" }},
        });
        if self.is_for_pool {
            fields["selector"] = json!({"matchLabels": {"pool": "x"}});
        }
        if let Some(ttl) = self.ttl.filter(|_| self.ends) {
            fields["completionPolicy"]["ttlSecondsAfterFinished"] = json!(ttl);
        }
        fields
    }
}

pub fn jobs() -> impl Strategy<Value = JobDraft> {
    let numbers = (0..IMAGES.len(), prop_oneof![1 => Just(0), 6 => 1..4], proptest::option::of(0..9));
    (numbers, any::<bool>(), prop::bool::weighted(0.3), prop::bool::weighted(0.3)).prop_map(
        |((image, parallelism, ttl), ends, asks_registry, is_for_pool)| JobDraft {
            image,
            parallelism,
            ends,
            asks_registry,
            is_for_pool,
            ttl,
        },
    )
}

pub fn fates() -> impl Strategy<Value = Fate> {
    prop_oneof![8 => Just(Fate::Fine), 1 => Just(Fate::Unanswered), 1 => Just(Fate::Lost)]
}

pub fn paces() -> impl Strategy<Value = Pace> {
    prop_oneof![Just(Pace::Acknowledge), Just(Pace::Begin), Just(Pace::End), Just(Pace::All)]
}

pub fn steps() -> impl Strategy<Value = Step> {
    let node = 0..4_usize;
    prop_oneof![
        6 => (0..4_usize, jobs()).prop_map(|(job, draft)| Step::CreateJob(job, draft)),
        1 => (0..4_usize, 0..4).prop_map(|(job, parallelism)| Step::SetParallelism(job, parallelism)),
        1 => (0..4_usize, 0..IMAGES.len()).prop_map(|(job, image)| Step::SetImage(job, image)),
        1 => (0..4_usize).prop_map(Step::DeleteJob),
        4 => (node.clone(), prop::bool::weighted(0.7), prop::bool::weighted(0.8))
            .prop_map(|(node, is_in_pool, is_ready)| Step::PutNode { node, is_in_pool, is_ready }),
        1 => node.clone().prop_map(Step::DeleteNode),
        1 => node.clone().prop_map(Step::DeleteImage),
        12 => (node.clone(), paces()).prop_map(|(node, pace)| Step::Progress { node, pace }),
        1 => node.clone().prop_map(Step::WriteByHand),
        2 => (node, 0..IMAGES.len()).prop_map(|(node, image)| Step::Lose { node, image }),
        16 => (0..3_usize).prop_map(Step::Hear),
        16 => Just(Step::Turn),
        20 => (0..8_usize, fates()).prop_map(|(command, fate)| Step::Arrive { command, fate }),
        16 => (0..8_usize).prop_map(Step::Answer),
        6 => (0..20_u64).prop_map(Step::Pass),
        1 => (300..2500_u64).prop_map(Step::Pass),
        1 => Just(Step::Restart),
    ]
}
