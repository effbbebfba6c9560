//! What the kernel learns, as plain values: they can be printed, compared, recorded and replayed.

use std::collections::BTreeSet;

use jiff::SignedDuration;

use super::command::{Outcome, Ticket};
use super::kind::{Kind, Object};
use super::secret::SourceState;
use crate::object::{ObjectKey, SourceKey, Uid};

/// One thing that a watch, or the answer to a command, says.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// An object is like this.
    Seen(Object),
    /// An object is gone. With a UID, only that one; without, whichever has the name.
    Gone {
        /// Its kind.
        kind: Kind,
        /// Its name.
        key: ObjectKey,
        /// Its UID, if whoever says so knows it.
        uid: Option<Uid>,
    },
    /// Everything of a kind has been listed.
    Listed {
        /// The kind.
        kind: Kind,
        /// The namespace, of kinds that are watched in single namespaces.
        namespace: Option<String>,
        /// What there is.
        names: BTreeSet<ObjectKey>,
    },
    /// An object is there and cannot be read.
    Unreadable {
        /// Its kind.
        kind: Kind,
        /// Its name.
        key: ObjectKey,
        /// Its UID.
        uid: Uid,
        /// Why.
        reason: String,
    },
    /// A kind may not be read.
    Forbidden(Kind),
    /// The API server does not know a kind.
    Undefined(Kind),
    /// A kind is no longer watched in a namespace.
    Unwatched {
        /// The kind.
        kind: Kind,
        /// The namespace.
        namespace: String,
    },
    /// The time of day was set: it is ahead of the time that the kernel is handed by this much, or behind it.
    Clock {
        /// How far it is ahead.
        ahead: SignedDuration,
    },
    /// A Secret that jobs name was read, or could not be: then there is no state.
    SourceRead {
        /// The Secret.
        source: SourceKey,
        /// What it is like.
        state: Option<SourceState>,
        /// A random number from 0 to 1.
        jitter: f64,
    },
    /// A write has come to its end.
    Settled {
        /// The write.
        ticket: Ticket,
        /// What became of it.
        outcome: Outcome<Object>,
        /// A random number from 0 to 1.
        jitter: f64,
    },
}

impl Input {
    /// This object was seen.
    pub fn seen(object: impl Into<Object>) -> Self {
        Self::Seen(object.into())
    }
}
