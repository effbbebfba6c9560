//! Nodes on which nothing moves (ofen W2, W4): nothing went wrong there, and nobody waits for them.

use std::time::Duration;

use jiff::Timestamp;

use super::record::Prefetch;
use super::{BEGIN_PATIENCE, SILENT_PATIENCE};
use crate::cluster::Kernel;
use crate::cluster::demands::standing::Stage;
use crate::object::{NodeName, Uid};
use crate::time::{after, earliest};

/// What was last heard of a node's images, and since when nothing else was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steady {
    steps: Vec<Step>,
    since: Timestamp,
}

/// How far one image is.
type Step = (Option<Stage>, Option<(i64, i64)>);

impl Steady {
    /// When nobody waits for the node any more.
    fn ends_at(&self) -> Timestamp {
        let is_pulling = |(stage, _): &Step| *stage == Some(Stage::Acknowledged { has_started: true });
        let patience: Duration =
            if self.steps.iter().any(is_pulling) { SILENT_PATIENCE } else { BEGIN_PATIENCE };
        after(self.since, patience)
    }
}

impl Kernel {
    /// Notes which nodes get on. Says when the next one of those that do not is given up.
    pub(super) fn note_steps(&mut self, uid: &Uid, now: Timestamp) -> Option<Timestamp> {
        let prefetch = self.prefetches.all.get(uid)?;
        let mut steady = std::collections::HashMap::new();
        let mut wake_at = None;
        for node in prefetch.begun.keys() {
            let steps = self.steps(prefetch, node);
            if steps.iter().all(|(stage, _)| *stage == Some(Stage::Succeeded)) {
                continue;
            }
            let old = prefetch.steady.get(node).filter(|old| old.steps == steps);
            let new = old.cloned().unwrap_or(Steady { steps, since: now });
            wake_at = earliest(wake_at, Some(new.ends_at()).filter(|at| *at > now));
            steady.insert(node.clone(), new);
        }
        self.prefetches.all.get_mut(uid)?.steady = steady;
        wake_at
    }

    fn steps(&self, prefetch: &Prefetch, node: &NodeName) -> Vec<Step> {
        let step = |demand| {
            let standing = self.standing_of(demand, node);
            (standing.map(|one| one.stage), standing.and_then(|one| one.bytes))
        };
        prefetch.parts.iter().map(|part| step(&part.uid)).collect()
    }
}

impl Prefetch {
    /// Whether nothing has moved on a node for too long.
    pub(super) fn is_stalled(&self, node: &str, now: Timestamp) -> bool {
        self.steady.get(node).is_some_and(|steady| steady.ends_at() <= now)
    }
}
