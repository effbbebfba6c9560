//! What the kernel asks the controller to do, as plain values. A command is whole: carrying it out needs no further choice.

use jiff::Timestamp;
use prewarm_api::names::event::WRITE_FAILED;
use prewarm_api::reference_object::ObjectReference;
use serde_json::Value;

pub use super::kind::Target;
use super::kind::{Kind, Object};
use super::node_image::Verdict;
use super::secret;
use crate::object::attempts::Attempts;
use crate::object::{ObjectKey, Uid};

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Write an object. What became of it is an input.
    Write(Write),
    /// Read an object. What it is like is an input.
    Read(Read),
    /// Record a Kubernetes event.
    Record(Event),
}

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// What it is for; comes back with its outcome.
    pub ticket: Ticket,
    /// What to do.
    pub verb: Verb,
}

/// Who asked for a write, and to which object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// Whose decision it was.
    pub asker: Target,
    /// The object's kind.
    pub kind: Kind,
    /// The object's name.
    pub key: ObjectKey,
    /// The object's UID, if there is one already.
    pub uid: Option<Uid>,
}

/// What a write does.
#[derive(Clone, Debug, PartialEq)]
pub enum Verb {
    /// Create this object.
    Create(Box<Value>),
    /// Apply a JSON patch to the object. It carries this many grants.
    Patch(Vec<Value>, usize),
    /// Apply a JSON patch to its status.
    PatchStatus(Vec<Value>),
    /// Delete it, and let the garbage collector take what it owns.
    Delete,
    /// Write verdicts on a silent node into the status as it is at that moment.
    Judge(Vec<Verdict>),
    /// Write the copy of a Secret. What it holds is read at that moment and is no part of the command.
    Copy(secret::Excerpt, secret::Action),
}

/// One thing to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Read {
    /// A Secret that jobs name, as far as they need it.
    Source(secret::Excerpt),
    /// An object that a list lacks: it is gone, or younger than the list.
    Object {
        /// Its kind.
        kind: Kind,
        /// Its name.
        key: ObjectKey,
        /// Its UID.
        uid: Uid,
    },
}

/// A Kubernetes event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// On which object.
    pub about: ObjectReference,
    /// What happened.
    pub notice: Notice,
}

/// What an event says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Whether it is something bad.
    pub is_warning: bool,
    /// What kind of thing it is.
    pub reason: &'static str,
    /// What happened, in a sentence.
    pub note: String,
}

impl Notice {
    /// Something that is as it should be.
    pub fn normal(reason: &'static str, note: impl Into<String>) -> Self {
        Self { is_warning: false, reason, note: note.into() }
    }

    /// Something bad.
    pub fn warning(reason: &'static str, note: impl Into<String>) -> Self {
        Self { is_warning: true, reason, note: note.into() }
    }

    /// As an event on this object.
    pub fn about(self, about: ObjectReference) -> Event {
        Event { about, notice: self }
    }
}

/// What became of a write.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome<T> {
    /// It arrived, and the object is like this.
    Written(T),
    /// The object is gone.
    Gone,
    /// The object was another than thought. This is how it is.
    Collided(T),
    /// It will never be taken, for this reason.
    Refused(String),
    /// It failed for reasons outside, which the API server named, or nobody answered.
    Failed(Option<String>),
}

/// A write that has come to its end.
#[derive(Debug)]
pub struct Settled {
    /// The write.
    pub ticket: Ticket,
    /// What became of it.
    pub outcome: Outcome<Object>,
    /// When that was observed.
    pub now: Timestamp,
    /// A random number from 0 to 1.
    pub jitter: f64,
}

impl<T> Outcome<T> {
    /// The same with the object read otherwise.
    pub fn map<U>(self, read: impl FnOnce(T) -> U) -> Outcome<U> {
        match self {
            Self::Written(object) => Outcome::Written(read(object)),
            Self::Gone => Outcome::Gone,
            Self::Collided(object) => Outcome::Collided(read(object)),
            Self::Refused(reason) => Outcome::Refused(reason),
            Self::Failed(trouble) => Outcome::Failed(trouble),
        }
    }

    /// Notes in the attempts of an object how a write to it went. `jitter` is a random number from 0 to 1.
    pub fn note(&self, attempts: &mut Attempts, now: Timestamp, jitter: f64) {
        match self {
            Self::Written(_) | Self::Gone => attempts.succeed(now),
            Self::Collided(_) => attempts.collide(now, jitter),
            Self::Refused(_) | Self::Failed(_) => self.pause(attempts, now, jitter),
        }
    }

    /// Notes in the attempts of an object that this was not what the write was meant to bring.
    pub fn pause(&self, attempts: &mut Attempts, now: Timestamp, jitter: f64) {
        match self {
            Self::Failed(None) => attempts.miss(now, jitter),
            _ => attempts.fail(now, jitter),
        }
    }

    /// What people should know when writes to an object have failed for a while. Whoever gets no answer at all has other
    /// troubles.
    pub fn complaint(&self, attempts: &mut Attempts, now: Timestamp) -> Option<Notice> {
        let Self::Failed(Some(words)) = self else { return None };
        let note = || format!("writes have failed for more than a minute and are tried again: {words}");
        attempts.is_news(now).then(|| Notice::warning(WRITE_FAILED, note()))
    }

    /// The object as the answer shows it.
    pub fn object(&self) -> Option<&T> {
        match self {
            Self::Written(object) | Self::Collided(object) => Some(object),
            Self::Gone | Self::Refused(_) | Self::Failed(_) => None,
        }
    }
}
