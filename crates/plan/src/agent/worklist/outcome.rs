//! What the worklist observes, and what it decides.

use std::time::Duration;

use prewarm_api::kruise::FailureClass;
use prewarm_api::reference::ImageRef;

use crate::agent::Moment;
use crate::agent::entry::{End, Entry, Stage};
use crate::agent::runtime::Absence;
use crate::agent::source::Source;
use crate::agent::state::{Note, OwnerResult};
use crate::agent::task::Task;
use crate::object::ImageKey;

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
    /// From where.
    pub source: Source,
    /// How long it may take.
    pub timeout: Duration,
    /// Whether the node did not have it a moment ago, so that the attempt need not look.
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

/// An image that the node has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Name and id, as statuses have it.
    pub id: String,
    /// The digest that the name stands for, if the runtime tells.
    pub digest: Option<String>,
}

/// What a look ahead found of one image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// The node has it.
    Present(Held),
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
        /// What it has.
        image: Held,
        /// Whether it had been there already.
        was_present: bool,
        /// How it ended for each owner of the task, if a pull took the credentials of one of them.
        results: Option<Vec<OwnerResult>>,
    },
    /// It failed.
    Failed(Failure),
    /// No mirror has it yet, and nobody else may be asked. That does not count as an attempt.
    Unserved(Failure),
    /// The disk ran out of room. Whose doing that was is decided by who else was pulled.
    NoRoom(Failure),
    /// The runtime went away. That does not count as an attempt.
    Interrupted(Absence),
}

/// What follows when the disk runs out of room.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shortage {
    /// The task that has failed of it, if one has.
    pub ending: Option<Ending>,
    /// Attempts to cancel. Their tasks wait for room.
    pub stopped: Vec<u64>,
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
    /// How it ended.
    pub result: Ended,
    /// How long it took from its first attempt on.
    pub took: Duration,
}

impl Ending {
    /// What kind of failure it ended with, if it did.
    pub fn failure(&self) -> Option<FailureClass> {
        if let Ended::Failed { class, .. } = self.result { Some(class) } else { None }
    }
}

/// How a task ended, for events and metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The image was pulled.
    Pulled {
        /// Its size, if the runtime reports it.
        bytes: Option<u64>,
        /// How it ended for each owner, if it does not count for whoever asks.
        results: Option<Vec<OwnerResult>>,
    },
    /// The image had been on the node already.
    Present,
    /// The task was given up.
    Failed {
        /// What kind of failure it was.
        class: FailureClass,
        /// What the status says of it.
        message: Option<String>,
    },
}

/// The ending of a task whose image was pulled.
pub(super) fn pulled(entry: &Entry, now: Moment) -> Ending {
    let results = match &entry.stage {
        Stage::Finished(End::Succeeded { results, .. }) => results.clone(),
        _ => None,
    };
    ending(entry, Ended::Pulled { bytes: entry.bytes.map(|bytes| bytes.total), results }, now)
}

/// The ending of a task whose image the node had already.
pub(super) fn present(entry: &Entry, now: Moment) -> Ending {
    ending(entry, Ended::Present, now)
}

/// The ending of a task that was given up.
pub(super) fn failed(entry: &Entry, now: Moment) -> Ending {
    let (class, message) = match &entry.stage {
        Stage::Finished(End::Failed { failure, .. }) => {
            (failure.class, failure.note.as_ref().map(Note::message))
        }
        _ => (None, None),
    };
    ending(entry, Ended::Failed { class: class.unwrap_or_default(), message }, now)
}

fn ending(entry: &Entry, result: Ended, now: Moment) -> Ending {
    Ending { task: entry.task.clone(), result, took: entry.elapsed(now) }
}
