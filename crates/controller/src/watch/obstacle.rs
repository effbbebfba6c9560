//! What keeps a kind from being watched, and what the kernel is told of it.

use std::collections::BTreeSet;

use kube::runtime::watcher;
use prewarm_plan::cluster::Input;
use prewarm_process::log::chain;
use prewarm_process::watch::Obstacle;
use tracing::warn;

use super::{Known, Watched};

impl Known {
    /// It cannot be watched just now, or not at all, which is said once.
    pub(super) fn fail<K: Watched>(&mut self, error: &watcher::Error, namespace: Option<&str>) -> Vec<Input> {
        let kind = K::KIND.as_str();
        let before = std::mem::replace(&mut self.obstacle, Obstacle::of(error));
        match self.obstacle {
            None => warn!(kind, error = %chain(error), "cannot watch; trying again"),
            Some(obstacle) if before == Some(obstacle) => {}
            Some(obstacle) => {
                warn!(kind, error = %chain(error), "left out: {}", obstacle.advice());
                return self.meet::<K>(obstacle, namespace);
            }
        }
        Vec::new()
    }

    fn meet<K: Watched>(&mut self, obstacle: Obstacle, namespace: Option<&str>) -> Vec<Input> {
        match obstacle {
            Obstacle::NotDefined => {
                let mut inputs = Vec::new();
                if K::KIND.about().can_be_left_out {
                    inputs = self.replace::<K>(BTreeSet::new(), namespace);
                }
                inputs.push(Input::Undefined(K::KIND));
                inputs
            }
            Obstacle::Forbidden => vec![Input::Forbidden(K::KIND)],
        }
    }
}
