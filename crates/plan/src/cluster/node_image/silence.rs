//! Verdicts on nodes that do not answer (kruise R16–R19). They never replace a report, and an agent's later result for
//! the same version replaces them (design 3).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use prewarm_api::kruise::{ImageTagStatus, NodeImage, NodeImageStatus, PullPhase};
use prewarm_api::names::message::{NODE_SILENT, TASK_DEADLINE};
use prewarm_api::reference_object::ObjectReference;

use crate::cluster::node_image::node::Node;
use crate::cluster::node_image::record::{NodeImageRecord, TagRecord};
use crate::object::ImageKey;
use crate::time::earliest;
use crate::time::{after, stamp};

/// So long a node may take to answer, and so long beyond a task's deadline (kruise R16, R17).
pub const PATIENCE: Duration = Duration::from_mins(10);

/// Pulls that have begun and not ended, each with the time at which this process saw it begin: clocks of nodes are not trusted.
#[derive(Clone, Debug, Default)]
pub struct Begun(BTreeMap<ImageKey, (i64, Timestamp)>);

impl Begun {
    /// Notes which of these entries are being pulled.
    pub fn observe(
        &mut self,
        image: &NodeImageRecord,
        keys: impl IntoIterator<Item = ImageKey>,
        now: Timestamp,
    ) {
        for key in keys {
            match image.tag(&key).and_then(|(_, tag)| tag.begun()) {
                Some(version) if self.at(&key, version).is_some() => {}
                Some(version) => drop(self.0.insert(key, (version, now))),
                None => drop(self.0.remove(&key)),
            }
        }
    }

    /// Since when the pull of a round is known to have begun.
    fn at(&self, key: &ImageKey, version: i64) -> Option<Timestamp> {
        self.0.get(key).filter(|(begun, _)| *begun == version).map(|(_, at)| *at)
    }
}

/// A task that is given up for its node.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The task's entry.
    pub key: ImageKey,
    /// Its version.
    pub version: i64,
    /// Why.
    pub message: &'static str,
    /// The jobs that want it.
    pub owners: Vec<ObjectReference>,
}

/// The tasks to be given up at this time, and when to look again.
pub fn judge(node: &Node, image: &NodeImageRecord, now: Timestamp) -> (Vec<Verdict>, Option<Timestamp>) {
    let mut verdicts = Vec::new();
    let mut wake_at = None;
    for (name, record) in &image.images {
        for tag in &record.tags {
            // If a tag is listed twice, only the higher version counts.
            if tag.is_finished() || record.is_outdone(tag) {
                continue;
            }
            let key = ImageKey { name: name.to_string(), tag: tag.tag.to_string() };
            let begun_at = node.begun.at(&key, tag.version);
            let Some((at, message)) = limit(tag, begun_at, node.reported_at) else { continue };
            if at > now {
                wake_at = earliest(wake_at, Some(at));
                continue;
            }
            verdicts.push(Verdict { key, version: tag.version, message, owners: tag.owners.to_vec() });
        }
    }
    (verdicts, wake_at)
}

/// When a task is given up, and why.
///
/// A pull that has begun has its deadline from when that was heard of. One that waits has it from the time it was asked for,
/// but a node that still reports is alive, and waiting is no fault of its (kruise R17 as we have it).
fn limit(
    tag: &TagRecord,
    begun_at: Option<Timestamp>,
    heard_at: Option<Timestamp>,
) -> Option<(Timestamp, &'static str)> {
    let created_at = tag.created_at?;
    let Some(status) = tag.current() else { return Some((after(created_at, PATIENCE), NODE_SILENT)) };
    if status.completed_at.is_some() || status.is_finished() {
        return None;
    }
    let deadline = u64::try_from(tag.policy.active_deadline_seconds?).unwrap_or_default();
    let end_of = |begin: Timestamp| begin.checked_add(Duration::from_secs(deadline)).ok();
    let end = match begun_at {
        Some(begun_at) => end_of(begun_at)?,
        None => end_of(created_at)?.max(heard_at.unwrap_or(created_at)),
    };
    Some((end.checked_add(PATIENCE).ok()?, TASK_DEADLINE))
}

/// The status of a NodeImage with the verdicts in it; `None` if none of them holds any more. Statuses of entries that
/// are gone are dropped, and everything is counted anew (kruise R19).
pub fn judged(object: &NodeImage, verdicts: &[Verdict], now: Timestamp) -> Option<NodeImageStatus> {
    let wanted = |key: &ImageKey| {
        let image = object.spec.images.get(&key.name)?;
        image.tags.iter().filter(|tag| tag.tag == key.tag).map(|tag| tag.version).max()
    };
    let mut status = object.status.clone().unwrap_or_default();
    let mut has_changed = false;
    for verdict in verdicts.iter().filter(|verdict| wanted(&verdict.key) == Some(verdict.version)) {
        let images = status.image_statuses.get_or_insert_default();
        let tags = &mut images.entry(verdict.key.name.clone()).or_default().tags;
        let judged = failed(verdict, tags.iter().find(|tag| tag.tag == verdict.key.tag), now);
        let Some(judged) = judged else { continue };
        tags.retain(|tag| tag.tag != verdict.key.tag);
        tags.push(judged);
        tags.sort_by(|one, other| one.tag.cmp(&other.tag));
        has_changed = true;
    }
    has_changed.then(|| counted(object, status))
}

/// The verdict as a status; `None` if the node has reported meanwhile and it holds no more.
fn failed(verdict: &Verdict, old: Option<&ImageTagStatus>, now: Timestamp) -> Option<ImageTagStatus> {
    let same = old.filter(|old| old.version == verdict.version);
    let has_ended = |old: &ImageTagStatus| {
        old.completion_time.is_some() || matches!(old.phase, PullPhase::Succeeded | PullPhase::Failed)
    };
    // Whoever says anything at all is not silent.
    if same.is_some_and(|old| has_ended(old) || verdict.message == NODE_SILENT) {
        return None;
    }
    Some(ImageTagStatus {
        tag: verdict.key.tag.clone(),
        phase: PullPhase::Failed,
        version: verdict.version,
        start_time: same.and_then(|old| old.start_time.clone()),
        completion_time: Some(Time(stamp(now))),
        message: Some(verdict.message.to_owned()),
        ..ImageTagStatus::default()
    })
}

fn counted(object: &NodeImage, mut status: NodeImageStatus) -> NodeImageStatus {
    let spec = &object.spec.images;
    let asked: BTreeSet<(&str, &str)> = spec
        .iter()
        .flat_map(|(name, image)| image.tags.iter().map(move |tag| (name.as_str(), tag.tag.as_str())))
        .collect();
    let images = status.image_statuses.get_or_insert_default();
    for (name, image) in images.iter_mut() {
        image.tags.retain(|tag| asked.contains(&(name.as_str(), tag.tag.as_str())));
    }
    images.retain(|_, image| !image.tags.is_empty());
    let phases: Vec<PullPhase> = images.values().flat_map(|image| &image.tags).map(|tag| tag.phase).collect();
    let count =
        |wanted| i32::try_from(phases.iter().filter(|phase| **phase == wanted).count()).unwrap_or(i32::MAX);
    status.succeeded = count(PullPhase::Succeeded);
    status.failed = count(PullPhase::Failed);
    status.pulling = count(PullPhase::Pulling);
    status.waiting = count(PullPhase::Waiting);
    status.desired = i32::try_from(asked.len()).unwrap_or(i32::MAX);
    status
}
