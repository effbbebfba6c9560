//! The status of an ImagePrefetch (ofen 1.2, R10, R13).

use std::collections::BTreeSet;

use jiff::Timestamp;
use prewarm_api::names::condition::{DIGESTS_AGREE, READY, SECRETS_READY};
use prewarm_api::ofen::ImagePrefetchStatus;

use super::reason::{Counts, Situation};
use super::record::{Prefetch, Prefetches};
use crate::amount::counter;
use crate::condition::set_condition;
use crate::object::{NodeName, ObjectKey};

/// At most this many names of nodes are listed; the counters have all.
pub const MOST_SELECTED_NODES: usize = 20_000;

/// The status at this time.
pub fn status(
    old: Option<&ImagePrefetchStatus>,
    situation: &Situation,
    selected: &BTreeSet<NodeName>,
    generation: i64,
    now: Timestamp,
) -> ImagePrefetchStatus {
    let Counts { desired, pulled, pulling, failed, .. } = situation.counts;
    let mut conditions = old.and_then(|old| old.conditions.clone()).unwrap_or_default();
    conditions.retain(|condition| match condition.type_.as_str() {
        DIGESTS_AGREE => situation.disagreement.is_some(),
        SECRETS_READY => situation.secrets.is_some(),
        _ => true,
    });
    for finding in situation.findings() {
        set_condition(&mut conditions, finding, None, now);
    }
    let names: Vec<String> = selected.iter().take(MOST_SELECTED_NODES).map(ToString::to_string).collect();
    ImagePrefetchStatus {
        observed_generation: Some(generation),
        conditions: Some(conditions),
        desired_nodes: counter(desired),
        image_pulled_nodes: counter(pulled),
        image_pulling_nodes: counter(pulling),
        image_pull_failed_nodes: counter(failed),
        selected_nodes: (!names.is_empty()).then_some(names),
    }
}

/// Whether it says that all nodes have the images.
pub fn is_ready(status: &ImagePrefetchStatus) -> bool {
    let mut conditions = status.conditions.iter().flatten();
    conditions.any(|one| one.type_ == READY && one.status == "True")
}

/// What metrics say of one ImagePrefetch (ofen R16).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrefetchSize {
    /// Where it is.
    pub key: ObjectKey,
    /// Whether all its nodes have the images.
    pub is_ready: bool,
    /// Nodes that have all of them.
    pub pulled: i32,
    /// Nodes on which an image could not be pulled.
    pub failed: i32,
}

impl Prefetches {
    /// What metrics say of all of them, as their statuses do.
    pub(in crate::cluster) fn size(&self) -> Vec<PrefetchSize> {
        let size = |prefetch: &Prefetch| {
            let status = prefetch.object.status.as_ref()?;
            let mut conditions = status.conditions.iter().flatten();
            Some(PrefetchSize {
                key: prefetch.key.clone(),
                is_ready: conditions.any(|one| one.type_ == READY && one.status == "True"),
                pulled: status.image_pulled_nodes,
                failed: status.image_pull_failed_nodes,
            })
        };
        self.all.iter().filter_map(|(_, prefetch)| size(prefetch)).collect()
    }
}
