//! One ImageListPullJob.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use prewarm_api::kruise::{IMAGE_LIST_PULL_JOB, ImageListPullJob, ImageListPullJobStatus};
use prewarm_api::reference_object::ObjectReference;

use crate::cluster::reference;
use crate::object::attempts::Attempts;
use crate::object::echo::Echo;
use crate::object::store::Entry;
use crate::object::version::version;
use crate::object::{ObjectKey, Uid};

/// One list.
#[derive(Clone, Debug)]
pub struct List {
    /// The object.
    pub object: ImageListPullJob,
    /// Where it is.
    pub key: ObjectKey,
    /// Why the API server takes no child for an image.
    pub refused: BTreeMap<String, String>,
    /// The names of children that are being made, and their images.
    pub creating: BTreeMap<String, String>,
    /// UIDs of children that are being deleted.
    pub deleting: BTreeSet<Uid>,
    /// How many children were made since the last event about it.
    pub created: usize,
    /// How many children were deleted since the last event about it.
    pub deleted: usize,
    /// How many children are made at once next.
    pub batch: usize,
    /// Whether no further child is to come.
    pub has_all_children: bool,
    /// Whether its children know that all of them are there.
    pub is_complete: bool,
    /// Whether whatever made it is gone, so that the garbage collector is about to take it.
    pub is_abandoned: bool,
    /// Writes to it.
    pub attempts: Attempts,
    /// What comes back of its status.
    pub echo: Echo<ImageListPullJobStatus>,
    /// Writes of its children.
    pub child_attempts: Attempts,
    /// When its status was last written.
    pub written_at: Option<Timestamp>,
}

impl List {
    /// Reads a list.
    pub fn new(object: ImageListPullJob) -> Self {
        let metadata = &object.metadata;
        let key = ObjectKey::of(metadata);
        Self {
            key,
            object,
            refused: BTreeMap::new(),
            creating: BTreeMap::new(),
            deleting: BTreeSet::new(),
            created: 0,
            deleted: 0,
            batch: 1,
            has_all_children: false,
            is_complete: false,
            is_abandoned: false,
            attempts: Attempts::default(),
            echo: Echo::default(),
            child_attempts: Attempts::default(),
            written_at: None,
        }
    }

    /// Takes a newer object.
    pub fn renew(&mut self, mut object: ImageListPullJob) {
        object.status = self.echo.read(object.status.take());
        if self.object.spec != object.spec {
            // What was refused may be taken now.
            self.refused.clear();
        }
        self.object = object;
    }

    /// How events name it.
    pub fn reference(&self) -> ObjectReference {
        reference::object(IMAGE_LIST_PULL_JOB, &self.object.metadata)
    }

    /// Whether children are being made or deleted.
    pub fn has_writes(&self) -> bool {
        !self.creating.is_empty() || !self.deleting.is_empty()
    }
}

impl Entry for List {
    fn key(&self) -> &ObjectKey {
        &self.key
    }

    fn version(&self) -> &str {
        version(&self.object.metadata)
    }
}
