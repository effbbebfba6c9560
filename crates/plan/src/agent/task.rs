//! What is asked of the node, whoever asks: images to have on it, each with its limits and with where it may come from.
//! An adapter reads tasks from the object that asks ([`kruise`](super::kruise) from a NodeImage).

use std::collections::BTreeMap;

use jiff::Timestamp;
use prewarm_api::kruise::FailureClass;
use prewarm_api::reference::ImageRef;
use prewarm_api::reference_object::ObjectReference;

use super::attempt::Timeline;
use super::source::Allowed;
use crate::object::ImageKey;

/// One image to have on the node.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// Its entry.
    pub key: ImageKey,
    /// What the runtime is asked for.
    pub reference: ImageRef,
    /// The round: another version is another task.
    pub(crate) version: i64,
    pub(crate) timeline: Timeline,
    /// Whether the registry is asked even if the node has the image.
    pub is_always: bool,
    /// Where it may come from.
    pub sources: Allowed,
    pub(crate) created_at: Option<Timestamp>,
    /// The jobs that want it; none for an entry written by hand.
    pub owners: Vec<ObjectReference>,
    /// Whether a person wrote the entry before jobs joined it.
    pub is_manual: bool,
    /// Secrets with credentials.
    pub secrets: Vec<PullSecret>,
    /// Labels for the runtime.
    pub labels: BTreeMap<String, String>,
    /// Annotations for the runtime.
    pub annotations: BTreeMap<String, String>,
}

/// A Secret that a task names. Either part may be missing, because a person may have written the entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PullSecret {
    /// Its namespace.
    pub namespace: Option<String>,
    /// Its name.
    pub name: Option<String>,
    /// Whether it is a copy that the controller shares between jobs, so that no person named it.
    pub is_shared: bool,
}

impl Task {
    /// Whether a person wrote the entry, so that nobody but the agent looks after it.
    pub fn is_by_hand(&self) -> bool {
        self.owners.is_empty()
    }

    /// The namespace of the job on whose behalf the task is pulled; none for an entry by hand.
    pub fn namespace(&self) -> &str {
        self.owners.first().and_then(|owner| owner.namespace.as_deref()).unwrap_or_default()
    }

    /// On whose behalf the task is pulled: that of its first job. All entries by hand have one owner together.
    pub fn owner(&self) -> &str {
        self.owners.first().and_then(|owner| owner.uid.as_deref()).unwrap_or_default()
    }
}

/// An entry that cannot become a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadEntry {
    /// Its place, as far as it has one.
    pub(crate) key: ImageKey,
    /// Its version, so that whoever wrote it finds the answer.
    pub(crate) version: i64,
    pub(crate) class: FailureClass,
    /// What is wrong and what to do.
    pub(crate) reason: String,
}

/// Everything that is asked of the node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Asked {
    /// What can be pulled.
    pub tasks: BTreeMap<ImageKey, Task>,
    /// What cannot.
    pub(crate) bad: Vec<BadEntry>,
}

impl Asked {
    /// Of two entries with one tag the one of the higher version counts.
    pub(super) fn add(&mut self, task: Task) {
        let twin = match self.tasks.get(&task.key) {
            Some(held) if held.version >= task.version => task,
            Some(_) | None => match self.tasks.insert(task.key.clone(), task) {
                Some(twin) => twin,
                None => return,
            },
        };
        let reason = format!(
            "the tag {} stands twice in this image's entry; only the one with the highest version is pulled: remove \
             the other",
            twin.key.tag
        );
        let (key, version) = (twin.key, twin.version);
        self.bad.push(BadEntry { key, version, class: FailureClass::InvalidReference, reason });
    }
}
