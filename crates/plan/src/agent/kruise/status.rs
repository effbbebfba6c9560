//! Writes the status of a NodeImage from a report (kruise D13), and knows its own again.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use prewarm_api::kruise::{
    FirstSyncStatus, ImageFilesystem, ImageStatus, ImageTagStatus, NodeImageStatus, OwnerResult, PullPhase,
    SyncResult,
};
use serde::{Deserialize as _, Serialize, Serializer};
use serde_json::{Value, json};

use super::bound::bounded;
use super::reported::{first_sync, states};
use crate::agent::disk::Room;
use crate::agent::report::{FirstSync, Report};
use crate::agent::state::{self, Note, Phase, TaskState};
use crate::agent::when::{Change, compare};
use crate::amount::counter;
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

/// The status of a report, however large: one for each tag in the spec and none besides.
fn build(report: &Report) -> NodeImageStatus {
    let mut images = BTreeMap::<String, ImageStatus>::new();
    for task in &report.tasks {
        images.entry(task.key.name.clone()).or_default().tags.push(tag_status(task));
    }
    let count = |phase| counter(report.count(phase));
    NodeImageStatus {
        desired: counter(report.tasks.len()),
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
        digest: task.digest.clone(),
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

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
