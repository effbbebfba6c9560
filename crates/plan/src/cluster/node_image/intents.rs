//! What becomes of what jobs want of a node: it arrives, is refused, or is no longer wanted.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::node::{Intent, Node};
use crate::object::{ImageKey, Uid};

/// More entries than this need no counting: a NodeImage has fewer.
const MOST_ENTRIES: usize = 4096;

/// What jobs want of a node, by entry.
pub type Intents = BTreeMap<ImageKey, BTreeMap<Uid, Intent>>;

impl Node {
    /// Drops what is already there or no longer wanted, and says whose intents those were. What is being written stays
    /// until it is known to be there or not.
    pub fn settle_intents(
        &mut self,
        is_wanted: impl Fn(&Self, &ImageKey, &str, &Intent) -> bool,
    ) -> Vec<Uid> {
        self.retain_intents(|node, key, uid, intent| {
            !node.is_done(key, uid, intent) && (intent.is_under_way || is_wanted(node, key, uid, intent))
        })
    }

    /// Drops a pull that was never written. Says whether there was one.
    pub fn drop_unwritten(&mut self, key: &ImageKey, uid: &str) -> bool {
        let Some(by_job) = self.intents.get_mut(key) else { return false };
        let is_unwritten =
            by_job.get(uid).is_some_and(|intent| intent.want.is_pull() && !intent.is_under_way);
        if is_unwritten {
            by_job.remove(uid);
        }
        if by_job.is_empty() {
            self.intents.remove(key);
        }
        is_unwritten
    }

    /// Drops the pulls that were decided earlier and could not be written then, and says whose they were. Their jobs
    /// decide again, on what there is by now.
    pub fn drop_stale_pulls(&mut self, now: Timestamp) -> Vec<Uid> {
        self.retain_intents(|_, _, _, intent| !intent.want.is_pull() || intent.since == now)
    }

    fn retain_intents(&mut self, stays: impl Fn(&Self, &ImageKey, &str, &Intent) -> bool) -> Vec<Uid> {
        let mut intents = std::mem::take(&mut self.intents);
        let mut dropped = Vec::new();
        intents.retain(|key, by_job| {
            by_job.retain(|uid, intent| {
                let stays = stays(self, key, uid, intent);
                if !stays {
                    dropped.push(uid.clone());
                }
                stays
            });
            !by_job.is_empty()
        });
        self.intents = intents;
        dropped
    }

    /// What was on its way has arrived or not. Says what it carried, and for whom.
    pub fn land(&mut self) -> (Vec<ImageKey>, Vec<Uid>) {
        let (mut keys, mut uids) = (Vec::new(), Vec::new());
        for (key, by_job) in &mut self.intents {
            let carried = by_job.iter_mut().filter(|(_, intent)| intent.is_under_way);
            let before = uids.len();
            for (uid, intent) in carried {
                intent.is_under_way = false;
                uids.push(uid.clone());
            }
            if uids.len() > before {
                keys.push(key.clone());
            }
        }
        (keys, uids)
    }

    /// A patch was taken: more entries may go at once again.
    pub fn taken(&mut self) {
        self.most_entries =
            self.most_entries.map(|most| most.saturating_mul(2)).filter(|most| *most < MOST_ENTRIES);
    }

    /// The API server takes a patch with these entries never, for this reason. Fewer are tried next; a single one is
    /// given up.
    pub fn refused(&mut self, carried: &[ImageKey], reason: &str) -> Refused {
        match carried {
            [] => Refused::Whole,
            [key] => {
                self.intents.remove(key);
                self.refusals.insert(key.clone(), reason.to_owned());
                Refused::Entry(key.clone())
            }
            [_, _, ..] => {
                self.most_entries = Some(carried.len() / 2);
                Refused::Split
            }
        }
    }

    /// There is more room in the spec: what was refused may be taken. Says what that is.
    pub fn forget_refusals(&mut self) -> Vec<ImageKey> {
        std::mem::take(&mut self.refusals).into_keys().collect()
    }
}

/// What follows from a refused patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It carried no entry of a job: nothing can be left out.
    Whole,
    /// It carried several; fewer will be tried.
    Split,
    /// This entry is not taken.
    Entry(ImageKey),
}
