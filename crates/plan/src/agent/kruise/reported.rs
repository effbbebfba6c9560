//! Reads the status of a NodeImage back into what was reported.

use std::collections::BTreeMap;

use prewarm_api::kruise::{
    FirstSyncStatus, ImageTagStatus, NodeImageStatus, OwnerResult, PullPhase, SyncResult,
};
use prewarm_api::names::message::NODE_SILENT;
use serde_json::Value;

use super::spec::{each, object, value};
use crate::agent::report::FirstSync;
use crate::agent::state::{self, Bytes, Note, Phase, Refusal, TaskState};
use crate::object::ImageKey;

/// Reads the states that a status has; entries that make no sense are as good as absent.
pub fn reported(status: &Value) -> BTreeMap<ImageKey, TaskState> {
    let mut known = BTreeMap::new();
    for (name, image) in object(status.get("imageStatuses")) {
        for status in each::<ImageTagStatus>(image.get("tags")) {
            let state = state(name, &status);
            // The first of two counts, as it does for clients that search the list.
            known.entry(state.key.clone()).or_insert(state);
        }
    }
    known
}

/// Reads how the first pass ended, if a status says so.
pub fn reported_first_sync(status: &Value) -> Option<FirstSync> {
    value(status.get("firstSyncStatus")).as_ref().map(first_sync)
}

pub(super) fn states(status: &NodeImageStatus) -> Vec<TaskState> {
    let images = status.image_statuses.iter().flatten();
    images.flat_map(|(name, image)| image.tags.iter().map(move |tag| state(name, tag))).collect()
}

pub(super) fn state(name: &str, status: &ImageTagStatus) -> TaskState {
    TaskState {
        key: ImageKey { name: name.to_owned(), tag: status.tag.clone() },
        version: status.version,
        phase: match status.phase {
            PullPhase::Waiting => Phase::Waiting,
            PullPhase::Pulling => Phase::Pulling,
            PullPhase::Succeeded => Phase::Succeeded,
            PullPhase::Failed => Phase::Failed,
        },
        percent: u8::try_from(status.progress.clamp(0, 100)).unwrap_or_default(),
        bytes: bytes(status),
        started_at: status.start_time.as_ref().map(|time| time.0),
        completed_at: status.completion_time.as_ref().map(|time| time.0),
        image_id: status.image_id.clone(),
        digest: status.digest.clone(),
        note: note(status),
        class: status.failure_class,
        failed_attempts: u32::try_from(status.failed_attempts).unwrap_or(0),
        interruptions: u32::try_from(status.interruptions).unwrap_or(0),
        lost_at: status.lost_at.as_ref().map(|time| time.0),
        results: status.owner_results.as_ref().map(|results| results.iter().map(read_owner_result).collect()),
    }
}

/// What a status says besides its phase. Two notes have no field of their own on the wire: a fixed text is how they are
/// spelled there, and it is read back here and nowhere else.
fn note(status: &ImageTagStatus) -> Option<Note> {
    let message = status.message.as_ref()?;
    Some(match status.phase {
        PullPhase::Failed if message == NODE_SILENT => Note::Silence,
        PullPhase::Pulling if *message == Note::Unpacking.message() => Note::Unpacking,
        _ => Note::Text(message.clone()),
    })
}

fn bytes(status: &ImageTagStatus) -> Option<Bytes> {
    let (done, total) = (status.bytes_done?, status.bytes_total?);
    Some(Bytes { done: u64::try_from(done).unwrap_or(0), total: u64::try_from(total).unwrap_or(0) })
}

pub(super) fn first_sync(status: &FirstSyncStatus) -> FirstSync {
    FirstSync {
        at: status.sync_at.as_ref().map(|time| time.0),
        is_success: status.status.map(|result| result == SyncResult::Succeeded),
        message: status.message.clone(),
    }
}

fn read_owner_result(result: &OwnerResult) -> state::OwnerResult {
    let message = result.message.clone().unwrap_or_default();
    let refusal = result.failure_class.map(|class| Refusal { class, message });
    state::OwnerResult { uid: result.uid.clone(), refusal }
}
