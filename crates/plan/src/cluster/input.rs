//! What the kernel learns, as plain values: they can be printed, compared, recorded and replayed.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Node;
use prewarm_api::kruise::{AdvancedCronJob, BroadcastJob, ImageListPullJob, ImagePullJob, NodeImage};

use super::advanced_cron_job::RunKey;
use super::advanced_cron_job::child::Child;
use super::broadcast_job::pod::Pod;
use super::command::{Outcome, Ticket};
use super::demands::pod::PodFacts;
use super::kind::Kind;
use super::secret::{Copy, SourceState};
use crate::object::version::has_ended;
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

/// An object, as far as decisions need it.
#[derive(Clone, Debug, PartialEq)]
pub enum Object {
    /// A Node.
    Node(Box<Node>),
    /// A NodeImage.
    NodeImage(Box<NodeImage>),
    /// An ImagePullJob.
    ImagePullJob(Box<ImagePullJob>),
    /// An ImageListPullJob.
    ImageListPullJob(Box<ImageListPullJob>),
    /// A Secret of the config namespace, without what it holds.
    Copy(Copy),
    /// A pod that jobs may select nodes by.
    Pod(ObjectKey, PodFacts),
    /// A BroadcastJob.
    BroadcastJob(Box<BroadcastJob>),
    /// A pod that may be one of a BroadcastJob's.
    BroadcastPod(ObjectKey, Pod),
    /// An AdvancedCronJob.
    AdvancedCronJob(Box<AdvancedCronJob>),
    /// A Job, and the run that it is, if a cron job controls it.
    Job(ObjectKey, Option<Child>),
}

macro_rules! boxed {
    ($($kind:ident),*) => {
        $(impl From<$kind> for Object {
            fn from(object: $kind) -> Self {
                Self::$kind(Box::new(object))
            }
        })*
    };
}

boxed!(Node, NodeImage, ImagePullJob, ImageListPullJob, BroadcastJob, AdvancedCronJob);

impl From<Copy> for Object {
    fn from(copy: Copy) -> Self {
        Self::Copy(copy)
    }
}

impl Input {
    /// This object was seen.
    pub fn seen(object: impl Into<Object>) -> Self {
        Self::Seen(object.into())
    }
}

impl Object {
    /// Its kind.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Node(_) => Kind::Node,
            Self::NodeImage(_) => Kind::NodeImage,
            Self::ImagePullJob(_) => Kind::ImagePullJob,
            Self::ImageListPullJob(_) => Kind::ImageListPullJob,
            Self::Copy(_) => Kind::Secret,
            Self::Pod(..) => Kind::Pod,
            Self::BroadcastJob(_) => Kind::BroadcastJob,
            Self::BroadcastPod(..) => Kind::BroadcastPod,
            Self::AdvancedCronJob(_) => Kind::AdvancedCronJob,
            Self::Job(..) => Kind::Job,
        }
    }

    /// Its namespace and name; copies of Secrets are in the config namespace.
    pub fn key(&self, config_namespace: &str) -> ObjectKey {
        match self {
            Self::Node(node) => ObjectKey::of(&node.metadata),
            Self::NodeImage(image) => ObjectKey::of(&image.metadata),
            Self::ImagePullJob(job) => ObjectKey::of(&job.metadata),
            Self::ImageListPullJob(list) => ObjectKey::of(&list.metadata),
            Self::BroadcastJob(job) => ObjectKey::of(&job.metadata),
            Self::AdvancedCronJob(cron) => ObjectKey::of(&cron.metadata),
            Self::Copy(copy) => ObjectKey { namespace: config_namespace.to_owned(), name: copy.name.clone() },
            Self::Pod(key, _) | Self::BroadcastPod(key, _) | Self::Job(key, _) => key.clone(),
        }
    }

    /// Whether it is being deleted and has nothing left to wait for.
    pub fn has_ended(&self) -> bool {
        match self {
            Self::ImagePullJob(job) => has_ended(&job.metadata),
            Self::ImageListPullJob(list) => has_ended(&list.metadata),
            Self::BroadcastJob(job) => has_ended(&job.metadata),
            Self::AdvancedCronJob(cron) => has_ended(&cron.metadata),
            _ => false,
        }
    }

    /// Where a cron job would know it as a run.
    pub fn run_key(&self) -> Option<RunKey> {
        let key = match self {
            Self::ImageListPullJob(list) => ObjectKey::of(&list.metadata),
            Self::BroadcastJob(job) => ObjectKey::of(&job.metadata),
            Self::Job(key, _) => key.clone(),
            _ => return None,
        };
        RunKey::of(self.kind(), &key)
    }

    /// The run of a cron job that it is, if one controls it.
    pub fn run(&self) -> Option<Child> {
        match self {
            Self::ImageListPullJob(list) => Child::of_list(list),
            Self::BroadcastJob(job) => Child::of_broadcast(job),
            Self::Job(_, run) => run.clone(),
            _ => None,
        }
    }
}
