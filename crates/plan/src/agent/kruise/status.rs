//! Writes the status of a NodeImage from a report (kruise D13), and reads it back.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use prewarm_api::kruise::{
    FirstSyncStatus, ImageFilesystem, ImageStatus, ImageTagStatus, NodeImageStatus, OwnerResult, PullPhase,
    SyncResult,
};
use prewarm_api::names::message::NODE_SILENT;
use serde::{Deserialize as _, Serialize, Serializer};
use serde_json::{Value, json};

use super::bound::bounded;
use super::spec::{each, object, value};
use crate::agent::disk::Room;
use crate::agent::report::{FirstSync, Report};
use crate::agent::state::{self, Bytes, Note, Phase, Refusal, TaskState};
use crate::agent::when::{Change, compare};
use crate::object::ImageKey;
use crate::object::echo::Echo;

/// So much of a reporter's name is written; the names of pods are no longer.
const LONGEST_REPORTER: usize = 253;

/// The status of a NodeImage, and the report behind it.
#[derive(Clone, Debug)]
pub struct Status {
    wire: NodeImageStatus,
    report: Report,
    /// Whether the report is what this agent wrote, and not what could be read back.
    is_own: bool,
}

impl Status {
    /// The status of a report, within the bounds of its definition.
    pub fn of(report: Report) -> Self {
        Self { wire: bounded(build(&report)), report, is_own: true }
    }

    /// The same as the report of this program.
    #[must_use]
    pub fn by(mut self, reporter: &str) -> Self {
        self.wire.reported_by = Some(reporter.chars().take(LONGEST_REPORTER).collect());
        self
    }

    /// Reads a stored status. One that makes no sense is as good as absent, and one that is what the server made of our own
    /// is our own.
    ///
    /// A report cannot be read back as a whole, because a sentence does not reveal the reason behind it. So if one of the
    /// known statuses is stored, that one is returned with its report.
    pub fn read<'a>(
        stored: &Value,
        echo: &Echo<NodeImageStatus>,
        known: impl IntoIterator<Item = &'a Arc<Self>>,
    ) -> Option<Arc<Self>> {
        let wire = echo.read(NodeImageStatus::deserialize(stored).ok())?;
        let is_known = known.into_iter().find(|known| known.wire == wire);
        Some(is_known.cloned().unwrap_or_else(|| Arc::new(Self::unknown(wire))))
    }

    fn unknown(wire: NodeImageStatus) -> Self {
        let report = Report::new(states(&wire), wire.first_sync_status.as_ref().map(first_sync), None);
        Self { wire, report, is_own: false }
    }

    /// What the next status adds to this one. Parts that the bounds cut away make no difference. What another program wrote
    /// is replaced even if it differs only in a detail.
    pub fn change(&self, next: &Self) -> Change {
        let is_same = |one: &NodeImageStatus, other: &NodeImageStatus| {
            one.first_sync_status == other.first_sync_status
                && one.image_statuses == other.image_statuses
                && counts(one) == counts(other)
        };
        if is_same(&self.wire, &next.wire) {
            return Change::Nothing;
        }
        let least = if self.is_own { Change::Nothing } else { Change::Progress };
        compare(&self.report, &next.report).max(least)
    }

    /// As it stands in an object.
    pub fn wire(&self) -> &NodeImageStatus {
        &self.wire
    }

    /// Whether this agent wrote it.
    pub fn is_own(&self) -> bool {
        self.is_own
    }

    /// Who wrote it, if that was said.
    pub fn reporter(&self) -> Option<&str> {
        self.wire.reported_by.as_deref()
    }

    /// A number that is the same for two statuses that say the same. How much room there is makes no difference.
    pub fn fingerprint(&self) -> u64 {
        let said = NodeImageStatus { image_filesystem: None, reported_by: None, ..self.wire.clone() };
        let mut hasher = DefaultHasher::new();
        json!(said).hash(&mut hasher);
        hasher.finish()
    }

    /// The report behind it.
    pub fn report(&self) -> &Report {
        &self.report
    }
}

impl Serialize for Status {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.wire.serialize(serializer)
    }
}

fn counts(status: &NodeImageStatus) -> [i32; 5] {
    [status.desired, status.succeeded, status.failed, status.pulling, status.waiting]
}

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

/// The status of a report, however large: one for each tag in the spec and none besides.
fn build(report: &Report) -> NodeImageStatus {
    let mut images = BTreeMap::<String, ImageStatus>::new();
    for task in &report.tasks {
        images.entry(task.key.name.clone()).or_default().tags.push(tag_status(task));
    }
    let count = |phase| number(report.count(phase));
    NodeImageStatus {
        desired: number(report.tasks.len()),
        succeeded: count(Phase::Succeeded),
        failed: count(Phase::Failed),
        pulling: count(Phase::Pulling),
        waiting: count(Phase::Waiting),
        image_statuses: Some(images).filter(|images| !images.is_empty()),
        first_sync_status: report.first_sync.as_ref().map(first_sync_status),
        image_filesystem: report.room.map(filesystem),
        reported_by: None,
    }
}

fn tag_status(task: &TaskState) -> ImageTagStatus {
    ImageTagStatus {
        tag: task.key.tag.clone(),
        phase: match task.phase {
            Phase::Waiting => PullPhase::Waiting,
            Phase::Pulling => PullPhase::Pulling,
            Phase::Succeeded => PullPhase::Succeeded,
            Phase::Failed => PullPhase::Failed,
        },
        progress: i32::from(task.percent),
        start_time: task.started_at.map(Time),
        completion_time: task.completed_at.map(Time),
        version: task.version,
        image_id: task.image_id.clone(),
        message: task.note.as_ref().map(Note::message),
        failure_class: task.class,
        failed_attempts: i32::try_from(task.failed_attempts).unwrap_or(i32::MAX),
        interruptions: i32::try_from(task.interruptions).unwrap_or(i32::MAX),
        bytes_done: task.bytes.map(|bytes| signed(bytes.done)),
        bytes_total: task.bytes.map(|bytes| signed(bytes.total)),
        lost_at: task.lost_at.map(Time),
        owner_results: task.results.as_ref().map(|results| results.iter().map(owner_result).collect()),
    }
}

fn owner_result(result: &state::OwnerResult) -> OwnerResult {
    OwnerResult {
        uid: result.uid.clone(),
        failure_class: result.refusal.as_ref().map(|refusal| refusal.class),
        message: result.refusal.as_ref().map(|refusal| refusal.message.clone()),
    }
}

fn read_owner_result(result: &OwnerResult) -> state::OwnerResult {
    let message = result.message.clone().unwrap_or_default();
    let refusal = result.failure_class.map(|class| Refusal { class, message });
    state::OwnerResult { uid: result.uid.clone(), refusal }
}

fn first_sync_status(first: &FirstSync) -> FirstSyncStatus {
    let result = |is_success| if is_success { SyncResult::Succeeded } else { SyncResult::Failed };
    FirstSyncStatus {
        sync_at: first.at.map(Time),
        status: first.is_success.map(result),
        message: first.message.clone(),
    }
}

fn filesystem(room: Room) -> ImageFilesystem {
    ImageFilesystem { free_bytes: signed(room.free), capacity_bytes: signed(room.capacity) }
}

fn states(status: &NodeImageStatus) -> Vec<TaskState> {
    let images = status.image_statuses.iter().flatten();
    images.flat_map(|(name, image)| image.tags.iter().map(move |tag| state(name, tag))).collect()
}

fn state(name: &str, status: &ImageTagStatus) -> TaskState {
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

fn first_sync(status: &FirstSyncStatus) -> FirstSync {
    FirstSync {
        at: status.sync_at.as_ref().map(|time| time.0),
        is_success: status.status.map(|result| result == SyncResult::Succeeded),
        message: status.message.clone(),
    }
}

fn number(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
