//! One node: what its Node and its NodeImage say, and what is about to be written to it.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node as NodeObject;
use prewarm_api::names::{NODE_TYPE_LABEL, VIRTUAL_KUBELET};

use super::attempts::Attempts;
use super::record::{NodeImageRecord, Shared};
use crate::node::task::Key;
use crate::node_image::Verdict;

/// The label with a node's zone.
pub const ZONE_LABEL: &str = "topology.kubernetes.io/zone";

/// More entries than this need no counting: a NodeImage has fewer.
const MOST_ENTRIES: usize = 4096;

/// One node.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// What its Node says, if there is one.
    pub facts: Option<Facts>,
    /// Its NodeImage, if there is one.
    pub image: Option<NodeImageRecord>,
    /// When this process last saw its agent report.
    pub heard_at: Option<Timestamp>,
    /// Writes to its NodeImage.
    pub attempts: Attempts,
    /// The verdicts that are being written.
    pub judging: Vec<Verdict>,
    intents: BTreeMap<Key, BTreeMap<Arc<str>, Intent>>,
    refusals: BTreeMap<Key, String>,
    /// How many entries the next patch may change: fewer after one was refused, to find the entry that is not taken.
    most_entries: Option<usize>,
}

/// What a Node says.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// Its UID.
    pub uid: Arc<str>,
    /// Its labels.
    pub labels: Arc<BTreeMap<String, String>>,
    /// Whether it can work.
    pub is_ready: bool,
    /// Where it stands; empty if it does not say.
    pub zone: Arc<str>,
    /// Whether it is being deleted.
    pub is_terminating: bool,
}

/// What a job wants of a node and is not written yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Intent {
    /// What is wanted.
    pub want: Want,
    /// When it was decided.
    pub since: Timestamp,
    /// The version that the entry had then.
    pub version: Option<i64>,
}

/// What a job can want of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// Pull the image.
    Grant,
    /// Pull it once more: the reason of the failure is gone.
    Retry,
    /// Pull it once more: the node has lost it.
    Renew,
    /// Use these Secrets.
    Attach,
    /// Do not pull.
    Withdraw,
}

impl Facts {
    /// Reads a Node.
    pub fn read(node: NodeObject, shared: &mut Shared) -> Self {
        let labels = node.metadata.labels.unwrap_or_default();
        let conditions = node.status.and_then(|status| status.conditions).unwrap_or_default();
        let is_ready = conditions.iter().any(|one| one.type_ == "Ready" && one.status == "True");
        Self {
            uid: node.metadata.uid.unwrap_or_default().into(),
            is_ready,
            zone: shared.text(labels.get(ZONE_LABEL).map_or("", String::as_str)),
            labels: shared.labels(labels),
            is_terminating: node.metadata.deletion_timestamp.is_some(),
        }
    }

    /// Whether no container runtime is behind it (kruise R2).
    pub fn is_virtual(&self) -> bool {
        self.labels.get(NODE_TYPE_LABEL).is_some_and(|kind| kind == VIRTUAL_KUBELET)
    }
}

impl Node {
    /// Whether the node can work. A NodeImage without a Node is nobody's, so there it makes no difference.
    pub fn is_ready(&self) -> bool {
        self.facts.as_ref().is_some_and(|facts| facts.is_ready)
    }

    /// Where the node stands.
    pub fn zone(&self) -> Arc<str> {
        self.facts.as_ref().map(|facts| facts.zone.clone()).unwrap_or_default()
    }

    /// The NodeImage that jobs can select: one that is not on its way out.
    pub fn live_image(&self) -> Option<&NodeImageRecord> {
        self.image.as_ref().filter(|image| !image.is_terminating)
    }

    /// What a job wants of it.
    pub fn intent(&self, key: &Key, uid: &str) -> Option<&Intent> {
        self.intents.get(key)?.get(uid)
    }

    /// Why an entry cannot be written.
    pub fn refusal(&self, key: &Key) -> Option<&str> {
        self.refusals.get(key).map(String::as_str)
    }

    /// A job wants something of it.
    pub fn intend(&mut self, key: &Key, uid: Arc<str>, want: Want, since: Timestamp) {
        let version = self.image.as_ref().and_then(|image| image.tag(key)).map(|(_, tag)| tag.version);
        self.intents.entry(key.clone()).or_default().insert(uid, Intent { want, since, version });
    }

    /// What the next patch carries, by entry.
    pub fn pending(&self) -> impl Iterator<Item = (&Key, &BTreeMap<Arc<str>, Intent>)> {
        self.intents.iter().take(self.most_entries.unwrap_or(usize::MAX))
    }

    /// Whether jobs want anything of it.
    pub fn has_intents(&self) -> bool {
        !self.intents.is_empty()
    }

    /// Whether there is nothing to know about it.
    pub fn is_empty(&self) -> bool {
        self.facts.is_none() && self.image.is_none() && !self.attempts.is_busy()
    }

    /// Drops what is no longer wanted or already there, and says whose intents those were.
    pub fn settle_intents(&mut self, is_wanted: impl Fn(&Key, &str, &Intent) -> bool) -> Vec<Arc<str>> {
        let image = self.image.as_ref();
        let mut dropped = Vec::new();
        self.intents.retain(|key, by_job| {
            let tag = image.and_then(|image| image.tag(key)).map(|(_, tag)| tag);
            by_job.retain(|uid, intent| {
                let is_owned = tag.is_some_and(|tag| tag.is_owned_by(uid));
                let is_done = match intent.want {
                    Want::Grant => is_owned,
                    Want::Withdraw => !is_owned,
                    Want::Retry | Want::Renew => !is_owned || tag.map(|tag| tag.version) > intent.version,
                    // What is attached is compared by the job's next pass.
                    Want::Attach => !is_owned,
                };
                let stays = !is_done && is_wanted(key, uid, intent);
                if !stays {
                    dropped.push(uid.clone());
                }
                stays
            });
            !by_job.is_empty()
        });
        dropped
    }

    /// The write arrived: what it carried beyond grants is done. Says whose intents those were.
    pub fn written(&mut self) -> Vec<Arc<str>> {
        let most = self.most_entries.unwrap_or(usize::MAX);
        let mut done = Vec::new();
        for by_job in self.intents.values_mut().take(most) {
            by_job.retain(|uid, intent| {
                let stays = intent.want != Want::Attach;
                if !stays {
                    done.push(uid.clone());
                }
                stays
            });
        }
        self.intents.retain(|_, by_job| !by_job.is_empty());
        self.most_entries =
            self.most_entries.map(|most| most.saturating_mul(2)).filter(|most| *most < MOST_ENTRIES);
        done
    }

    /// The API server takes the patch never, for this reason. Fewer entries are tried next; a single one is given up.
    pub fn refused(&mut self, reason: &str) -> Refused {
        let carried: Vec<Key> = self.pending().map(|(key, _)| key.clone()).collect();
        match carried.as_slice() {
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

    /// The spec is another: what was refused may be taken.
    pub fn forget_refusals(&mut self) {
        self.refusals.clear();
    }

    /// The NodeImage is gone, and with it all that was to be written.
    pub fn lose_image(&mut self) {
        *self = Self {
            facts: self.facts.take(),
            attempts: std::mem::take(&mut self.attempts),
            ..Self::default()
        };
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
    Entry(Key),
}
