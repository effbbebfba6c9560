//! One ImageListPullJob.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use prewarm_api::kruise::ImageListPullJob;

use super::attempts::Attempts;
use crate::object::ObjectKey;

/// One list.
#[derive(Clone, Debug)]
pub struct List {
    /// The object.
    pub object: ImageListPullJob,
    /// Where it is.
    pub key: ObjectKey,
    /// Why the API server takes no child for an image.
    pub refused: BTreeMap<String, String>,
    /// Names of children that are being made.
    pub creating: BTreeSet<String>,
    /// UIDs of children that are being deleted.
    pub deleting: BTreeSet<String>,
    /// How many children were made and deleted since people were last told.
    pub created: usize,
    /// See `created`.
    pub deleted: usize,
    /// How many children are made at once next.
    pub batch: usize,
    /// Whether no further child is to come.
    pub has_all_children: bool,
    /// Whether its children were told that all of them are there.
    pub is_complete: bool,
    /// Writes to it.
    pub attempts: Attempts,
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
            creating: BTreeSet::new(),
            deleting: BTreeSet::new(),
            created: 0,
            deleted: 0,
            batch: 1,
            has_all_children: false,
            is_complete: false,
            attempts: Attempts::default(),
            child_attempts: Attempts::default(),
            written_at: None,
        }
    }

    /// Whether children are being made or deleted.
    pub fn has_writes(&self) -> bool {
        !self.creating.is_empty() || !self.deleting.is_empty()
    }
}
