//! What the ledger asks the controller to do. A command is whole: carrying it out needs no further choice.

use prewarm_api::kruise::ImagePullJob;
use prewarm_api::reference_object::ObjectReference;
use serde_json::Value;

use super::cron::RunKey;
use crate::node_image;
use crate::object::SourceKey;
use crate::object::{NodeName, ObjectKey, Uid};

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Write a NodeImage.
    NodeImage {
        /// The node.
        node: NodeName,
        /// What to do with it.
        action: node_image::Action,
    },
    /// Write an ImagePullJob.
    Job {
        /// The job's UID.
        uid: Uid,
        /// Where it is.
        key: ObjectKey,
        /// What to do with it.
        write: Write,
    },
    /// Write an ImageListPullJob.
    List {
        /// The job's UID.
        uid: Uid,
        /// Where it is.
        key: ObjectKey,
        /// What to do with it.
        write: Write,
    },
    /// Make a child of an ImageListPullJob.
    CreateChild {
        /// The UID of the list.
        list: Uid,
        /// The child.
        child: Box<ImagePullJob>,
    },
    /// Delete a child of an ImageListPullJob.
    DeleteChild {
        /// The UID of the list.
        list: Uid,
        /// Where the child is.
        key: ObjectKey,
        /// Its UID.
        uid: String,
    },
    /// Write a BroadcastJob.
    Broadcast {
        /// The job's UID.
        uid: Uid,
        /// Where it is.
        key: ObjectKey,
        /// What to do with it.
        write: Write,
    },
    /// Make a pod of a BroadcastJob.
    CreatePod {
        /// The UID of the job.
        job: Uid,
        /// The node that it is for.
        node: NodeName,
        /// The pod.
        pod: Box<Value>,
    },
    /// Delete a pod of a BroadcastJob.
    DeletePod {
        /// The UID of the job.
        job: Uid,
        /// Where the pod is.
        key: ObjectKey,
        /// Its UID.
        uid: Uid,
    },
    /// Write an AdvancedCronJob's status.
    Cron {
        /// The cron job's UID.
        uid: Uid,
        /// Where it is.
        key: ObjectKey,
        /// What to do with it.
        write: Write,
    },
    /// Make a run of an AdvancedCronJob.
    CreateRun {
        /// The UID of the cron job.
        cron: Uid,
        /// Where it will be.
        key: RunKey,
        /// The run.
        run: Box<Value>,
    },
    /// Delete a run of an AdvancedCronJob.
    DeleteRun {
        /// The UID of the cron job.
        cron: Uid,
        /// Where it is.
        key: RunKey,
        /// Its UID.
        uid: Uid,
    },
    /// Read a Secret that jobs name.
    ReadSource(SourceKey),
    /// Write a copy of a Secret.
    Copy {
        /// The Secret.
        source: SourceKey,
        /// What to do with its copy.
        action: crate::secret::Action,
    },
    /// Tell people.
    Tell(Telling),
}

/// A write to a job.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// Change the object.
    Patch(Vec<Value>),
    /// Change its status.
    Status(Vec<Value>),
    /// Delete it.
    Delete,
}

/// Something that people are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Telling {
    /// On which object.
    pub about: ObjectReference,
    /// Whether it is something bad.
    pub is_warning: bool,
    /// What kind of thing it is.
    pub reason: &'static str,
    /// What happened.
    pub note: String,
}

/// Something that people hear of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct News {
    /// Whether it is something bad.
    pub is_warning: bool,
    /// What kind of thing it is.
    pub reason: &'static str,
    /// What happened.
    pub note: String,
}

impl News {
    /// As told about this object.
    pub fn about(self, about: ObjectReference) -> Telling {
        let Self { is_warning, reason, note } = self;
        Telling { about, is_warning, reason, note }
    }
}

impl<T> Outcome<T> {
    /// The same with the object seen otherwise.
    pub fn map<U>(self, see: impl FnOnce(T) -> U) -> Outcome<U> {
        match self {
            Self::Written(object) => Outcome::Written(see(object)),
            Self::Gone => Outcome::Gone,
            Self::Collided(object) => Outcome::Collided(Box::new(see(*object))),
            Self::Refused(reason) => Outcome::Refused(reason),
            Self::Failed => Outcome::Failed,
        }
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
    Collided(Box<T>),
    /// It will never be taken, for this reason.
    Refused(String),
    /// It failed for reasons outside, or nobody knows.
    Failed,
}
