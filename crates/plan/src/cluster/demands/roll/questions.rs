//! What passes, statuses and explanations ask of a roll.

use jiff::Timestamp;

use super::{ACKNOWLEDGE_WITHIN, Queue, Roll};
use crate::cluster::demands::standing::Standing;
use crate::cluster::node_image::room::Crowd;
use crate::object::NodeName;
use crate::time::after;

impl Roll {
    /// When a place becomes free without any node's doing.
    pub fn next_overdue(&self) -> Option<Timestamp> {
        self.young.first().map(|(since, _)| after(*since, ACKNOWLEDGE_WITHIN))
    }

    /// Nodes that have a place no more because they have not answered.
    pub fn overdue(&self) -> usize {
        self.overdue.len()
    }

    /// When the next node that was told and has not answered will be one that does not.
    pub fn next_grant_overdue(&self, now: Timestamp) -> Option<Timestamp> {
        let ends = self.young.iter().map(|(since, _)| after(*since, ACKNOWLEDGE_WITHIN));
        ends.filter(|at| *at > now).min()
    }

    /// Where a node is.
    pub fn standing(&self, node: &str) -> Option<&Standing> {
        self.standings.get(node)
    }

    /// The waiting nodes.
    pub fn waiting(&self) -> &Queue {
        &self.waiting
    }

    /// How many nodes have no room for the job for this reason.
    pub fn crowded(&self, crowd: Crowd) -> usize {
        self.crowded.get(&crowd).copied().unwrap_or_default()
    }

    /// Failed nodes to be tried once more.
    pub fn to_retry(&self, most: usize) -> Vec<NodeName> {
        self.needs.retry.iter().take(most).cloned().collect()
    }

    /// Nodes to be asked again for an image that they lost.
    pub fn to_renew(&self, most: usize, now: Timestamp) -> Vec<NodeName> {
        let due = self.needs.renew.iter().take_while(|(at, _)| *at <= now);
        due.take(most).map(|(_, node)| node.clone()).collect()
    }

    /// When the next lost image may be asked for again.
    pub fn next_renewal(&self, now: Timestamp) -> Option<Timestamp> {
        self.needs.renew.iter().map(|(at, _)| *at).find(|at| *at > now)
    }

    /// Nodes whose entry lacks a Secret.
    pub fn to_attach(&self) -> Vec<NodeName> {
        self.needs.attach.iter().cloned().collect()
    }

    /// Nodes whose task is to be taken back.
    pub fn to_withdraw(&self) -> Vec<NodeName> {
        self.needs.withdraw.iter().cloned().collect()
    }

    /// Whether a node is one of the job's.
    pub fn is_member(&self, node: &str) -> bool {
        self.standings.get(node).is_some_and(|standing| standing.is_member)
    }

    /// Where each node is, in no order.
    pub fn standings(&self) -> impl Iterator<Item = (&NodeName, &Standing)> {
        self.standings.iter()
    }

    /// The nodes that the roll knows.
    pub fn nodes(&self) -> impl Iterator<Item = &NodeName> {
        self.standings.keys()
    }

    /// How many nodes were looked at since the beginning: what a pass costs.
    pub fn visits(&self) -> u64 {
        self.visits
    }
}
