//! What is remembered of a NodeImage's status: of each tag, what jobs count.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use prewarm_api::kruise::{self, FailureClass, ImageTagStatus, NodeImageStatus, PullPhase};
use prewarm_api::names::message::NODE_SILENT;

use super::moment;
use crate::object::{ImageKey, Uid};

pub(super) type Statuses = BTreeMap<ImageKey, TagStatus>;

/// How far a tag is.
#[derive(Clone, Debug, PartialEq)]
pub struct TagStatus {
    /// The round that this is about.
    pub version: i64,
    /// Where it is.
    pub phase: PullPhase,
    /// When the pull began.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub completed_at: Option<Timestamp>,
    /// What kind of failure it was.
    pub class: Option<FailureClass>,
    /// The same with what was said about it, while it matters: of pulls that go on, or could not end well.
    pub trouble: Option<(FailureClass, Arc<str>)>,
    /// What the tag stood for, where the agent tells.
    pub digest: Option<Arc<str>>,
    /// Bytes that have arrived, and all, where the agent tells.
    pub bytes: Option<(i64, i64)>,
    /// When the image was found removed.
    pub lost_at: Option<Timestamp>,
    /// Whether this is the controller's verdict on a node that did not answer.
    pub is_verdict_on_silence: bool,
    /// For which owners the result counts; `None` if it counts for every one.
    pub results: Option<Arc<[OwnerResult]>>,
}

/// How a round ended for one owner.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OwnerResult {
    /// The owner's UID.
    pub uid: Uid,
    /// What kind of failure it was, if the result does not count for it.
    pub class: Option<FailureClass>,
}

/// The statuses of all tags.
pub(super) fn read_statuses(status: NodeImageStatus) -> Statuses {
    let mut statuses = Statuses::new();
    for (name, image) in status.image_statuses.unwrap_or_default() {
        for status in image.tags {
            let key = ImageKey { name: name.clone(), tag: status.tag.clone() };
            // The first of two counts, as it does for clients that search the list.
            statuses.entry(key).or_insert_with(|| status.into());
        }
    }
    statuses
}

impl From<ImageTagStatus> for TagStatus {
    fn from(status: ImageTagStatus) -> Self {
        Self {
            version: status.version,
            phase: status.phase,
            started_at: moment(status.start_time),
            completed_at: moment(status.completion_time),
            class: status.failure_class,
            trouble: status
                .failure_class
                .filter(|_| status.phase != PullPhase::Succeeded)
                .map(|class| (class, status.message.as_deref().unwrap_or_default().into())),
            digest: status.digest.map(Arc::from),
            bytes: status.bytes_done.zip(status.bytes_total),
            lost_at: moment(status.lost_at),
            is_verdict_on_silence: status.phase == PullPhase::Failed
                && status.message.as_deref() == Some(NODE_SILENT),
            results: status.owner_results.map(|results| results.into_iter().map(OwnerResult::from).collect()),
        }
    }
}

impl From<kruise::OwnerResult> for OwnerResult {
    fn from(result: kruise::OwnerResult) -> Self {
        Self { uid: result.uid.as_str().into(), class: result.failure_class }
    }
}
