//! What the worklist is told, and what it answers.

use std::time::Duration;

use prewarm_api::kruise::{FailureClass, ImageTagStatus};
use prewarm_api::reference::ImageRef;

use crate::agent::Moment;
use crate::agent::entry::Entry;
use crate::agent::task::Task;
use crate::object::ImageKey;

/// What holds for all tasks at the moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conditions {
    /// How many pulls may run at once.
    pub parallel: usize,
    /// Why nothing new starts, if so.
    pub hold: Option<String>,
    /// Why nothing starts because of the disk, if so.
    pub no_room: Option<String>,
}

/// What to do now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// Attempts to begin.
    pub starts: Vec<Start>,
    /// What the runtime is asked about waiting tasks. Until it is answered, there is no other.
    pub look: Option<LookAhead>,
    /// Tasks that ended without an attempt: their time was used up.
    pub endings: Vec<Ending>,
    /// When to decide again, if nothing else happens.
    pub wake_at: Option<Duration>,
}

/// One attempt to begin.
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    /// Names the attempt in its answer.
    pub attempt: u64,
    /// What to pull.
    pub task: Task,
    /// How long it may take.
    pub timeout: Duration,
    /// Whether a look ahead has just found that the node does not have it, so that the attempt need not look.
    pub is_known_absent: bool,
    /// How long the task had waited, if this is its first attempt.
    pub waited: Option<Duration>,
}

/// Images of waiting tasks to look for on the node.
#[derive(Clone, Debug, PartialEq)]
pub struct LookAhead {
    /// Names the look in its answer.
    pub number: u64,
    /// The images.
    pub images: Vec<(ImageKey, ImageRef)>,
}

/// What a look ahead found of one image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// The node has it.
    Present {
        /// Name and id, as statuses have it.
        image_id: String,
    },
    /// The node does not have it.
    Absent,
    /// The runtime could not say.
    Unclear,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The image is on the node.
    Succeeded {
        /// Name and id, as statuses have it.
        image_id: String,
        /// Whether it had been there already.
        was_present: bool,
    },
    /// It failed.
    Failed(Failure),
    /// The runtime went away, or the agent gave the attempt up for its own reasons. It does not count.
    Interrupted(String),
}

/// A failed attempt.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// What kind of failure it was.
    pub class: FailureClass,
    /// What the runtime said, without credentials.
    pub text: String,
    /// What was wrong with credentials on the way.
    pub problems: Vec<String>,
    /// What a person can do about it.
    pub advice: String,
    /// Whether the registry asked for fewer requests.
    pub is_registry_overloaded: bool,
    /// Whether trying again is pointless.
    pub is_final: bool,
    /// The credentials that were at hand.
    pub fingerprint: Option<u64>,
}

/// A task that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Ending {
    /// The task.
    pub task: Task,
    /// What is reported of it.
    pub status: ImageTagStatus,
    /// How long it took from its first attempt on.
    pub took: Duration,
    /// Whether the image had been there already.
    pub was_present: bool,
}

impl Conditions {
    /// Why nothing new starts, if so.
    pub(super) fn blocks(&self) -> Option<&str> {
        self.hold.as_deref().or(self.no_room.as_deref())
    }
}

pub(super) fn ending(entry: &Entry, now: Moment, was_present: bool) -> Ending {
    Ending { task: entry.task.clone(), status: entry.status(), took: entry.elapsed(now), was_present }
}
