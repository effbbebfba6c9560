//! A job's nodes, kept by difference: a change of one node costs the same with a hundred nodes and with ten thousand. Those that wait
//! for a grant are kept in the order in which they get it: ready ones first, spread over zones, then by name.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use jiff::Timestamp;

use super::standing::{Need, Stage, Standing};
use crate::cluster::node_image::room::Crowd;
use crate::object::{NodeName, NodeZone};
use crate::time::after;

mod questions;

/// A granted node that has not answered for so long holds no place any more (design 7). One second more than the
/// thirty promised, because times in an object have no fractions.
pub const ACKNOWLEDGE_WITHIN: Duration = Duration::from_secs(31);

/// All nodes that a job has to do with.
#[derive(Clone, Debug, Default)]
pub struct Roll {
    standings: HashMap<NodeName, Standing>,
    desired: usize,
    active: usize,
    succeeded: usize,
    failed: BTreeSet<NodeName>,
    /// Nodes that hold a place for as long as it takes: they are being told, or have answered and are not done. Also
    /// those that the job no longer selects.
    busy: usize,
    /// Nodes that have not answered, by the time of their grant.
    young: BTreeSet<(Timestamp, NodeName)>,
    /// Nodes that should have answered long ago.
    overdue: BTreeSet<NodeName>,
    waiting: Queue,
    /// How many nodes have no room for the job, by reason.
    crowded: BTreeMap<Crowd, usize>,
    needs: Needs,
    bytes: (i64, i64),
    has_bytes: usize,
    visits: u64,
}

/// What there is to do on nodes that have a task.
#[derive(Clone, Debug, Default)]
struct Needs {
    attach: BTreeSet<NodeName>,
    retry: BTreeSet<NodeName>,
    renew: BTreeSet<(Timestamp, NodeName)>,
    withdraw: BTreeSet<NodeName>,
}

/// What a status says about the nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Nodes that the job selects.
    pub desired: usize,
    /// Those that were told to pull and are not done.
    pub active: usize,
    /// Those that have the image.
    pub succeeded: usize,
    /// Those that could not pull.
    pub failed: usize,
    /// Bytes that have arrived and all of them, if any node tells.
    pub bytes: Option<(i64, i64)>,
}

impl Roll {
    /// Takes note of where a node is; `None` if the job has nothing to do with it any more.
    pub fn put(&mut self, node: &NodeName, standing: Option<Standing>) -> bool {
        self.visits += 1;
        let old = self.standings.get(node);
        if old == standing.as_ref() {
            return false;
        }
        if let Some(old) = self.standings.remove(node) {
            self.count_out(node, &old);
        }
        if let Some(standing) = standing {
            self.count_in(node, &standing);
            self.standings.insert(node.clone(), standing);
        }
        true
    }

    fn count_in(&mut self, node: &NodeName, standing: &Standing) {
        if standing.is_member {
            self.desired += 1;
            match standing.stage {
                Stage::Waiting => self.waiting.insert(node.clone(), standing.zone.clone(), standing.is_ready),
                Stage::Crowded(crowd) => *self.crowded.entry(crowd).or_default() += 1,
                Stage::Telling | Stage::Granted(_) | Stage::Acknowledged { .. } => self.active += 1,
                Stage::Succeeded => self.succeeded += 1,
                Stage::Failed => drop(self.failed.insert(node.clone())),
            }
            if standing.stage.is_served() {
                self.waiting.serve(standing.zone.clone());
            }
            if let Some((done, total)) = standing.bytes {
                self.bytes = (self.bytes.0.saturating_add(done), self.bytes.1.saturating_add(total));
                self.has_bytes += 1;
            }
        }
        match standing.stage {
            Stage::Granted(since) => drop(self.young.insert((since, node.clone()))),
            Stage::Telling | Stage::Acknowledged { .. } => self.busy += 1,
            Stage::Waiting | Stage::Crowded(_) | Stage::Succeeded | Stage::Failed => {}
        }
        let Needs { attach, retry, renew, withdraw } = &mut self.needs;
        match standing.need {
            None => {}
            Some(Need::Attach) => drop(attach.insert(node.clone())),
            Some(Need::Retry) => drop(retry.insert(node.clone())),
            Some(Need::Renew(at)) => drop(renew.insert((at, node.clone()))),
            Some(Need::Withdraw) => drop(withdraw.insert(node.clone())),
        }
    }

    fn count_out(&mut self, node: &NodeName, standing: &Standing) {
        if standing.is_member {
            self.desired -= 1;
            match standing.stage {
                Stage::Waiting => self.waiting.remove(node, &standing.zone, standing.is_ready),
                Stage::Crowded(crowd) => *self.crowded.entry(crowd).or_default() -= 1,
                Stage::Telling | Stage::Granted(_) | Stage::Acknowledged { .. } => self.active -= 1,
                Stage::Succeeded => self.succeeded -= 1,
                Stage::Failed => drop(self.failed.remove(node)),
            }
            if standing.stage.is_served() {
                self.waiting.unserve(&standing.zone);
            }
            if let Some((done, total)) = standing.bytes {
                self.bytes = (self.bytes.0.saturating_sub(done), self.bytes.1.saturating_sub(total));
                self.has_bytes -= 1;
            }
        }
        match standing.stage {
            Stage::Granted(since) => {
                self.young.remove(&(since, node.clone()));
                self.overdue.remove(node);
            }
            Stage::Telling | Stage::Acknowledged { .. } => self.busy -= 1,
            Stage::Waiting | Stage::Crowded(_) | Stage::Succeeded | Stage::Failed => {}
        }
        let Needs { attach, retry, renew, withdraw } = &mut self.needs;
        match standing.need {
            None => {}
            Some(Need::Attach) => drop(attach.remove(node)),
            Some(Need::Retry) => drop(retry.remove(node)),
            Some(Need::Renew(at)) => drop(renew.remove(&(at, node.clone()))),
            Some(Need::Withdraw) => drop(withdraw.remove(node)),
        }
    }

    /// What a status says.
    pub fn counts(&self) -> Counts {
        Counts {
            desired: self.desired,
            active: self.active,
            succeeded: self.succeeded,
            failed: self.failed.len(),
            bytes: (self.has_bytes > 0).then_some(self.bytes),
        }
    }

    /// The nodes that could not pull, by name.
    pub fn failed(&self) -> impl Iterator<Item = &NodeName> {
        self.failed.iter()
    }

    /// The nodes that the job selects and that are not done, by name: all that a deadline fails. It looks at every
    /// node, which a job does once.
    pub fn unfinished(&self) -> BTreeSet<NodeName> {
        let is_done = |stage| matches!(stage, Stage::Succeeded | Stage::Failed);
        let open =
            self.standings.iter().filter(|(_, standing)| standing.is_member && !is_done(standing.stage));
        open.map(|(node, _)| node.clone()).collect()
    }

    /// How many places are taken at this time: nodes that are being told, nodes that have answered and are not done, and
    /// nodes that may still answer (design 7).
    pub fn taken(&mut self, now: Timestamp) -> usize {
        self.find_overdue(now);
        self.busy + self.young.len()
    }

    /// The nodes that give up their place at this time because they have not answered.
    pub fn find_overdue(&mut self, now: Timestamp) -> Vec<NodeName> {
        let mut found = Vec::new();
        while let Some((since, _)) = self.young.first()
            && after(*since, ACKNOWLEDGE_WITHIN) <= now
            && let Some((_, node)) = self.young.pop_first()
        {
            self.overdue.insert(node.clone());
            found.push(node);
        }
        found
    }
}

/// The nodes of one zone, by name.
type Zones = BTreeMap<NodeZone, BTreeSet<NodeName>>;

/// Waiting nodes.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    ready: Zones,
    unready: Zones,
    /// How many nodes of each zone the job has under way or behind it.
    served: BTreeMap<NodeZone, usize>,
}

impl Queue {
    /// A node waits.
    pub fn insert(&mut self, node: NodeName, zone: NodeZone, is_ready: bool) {
        self.side(is_ready).entry(zone).or_default().insert(node);
    }

    /// A node no longer waits.
    pub fn remove(&mut self, node: &str, zone: &NodeZone, is_ready: bool) {
        let zones = self.side(is_ready);
        if let Some(nodes) = zones.get_mut(zone) {
            nodes.remove(node);
            if nodes.is_empty() {
                zones.remove(zone);
            }
        }
    }

    /// A node of this zone was granted.
    pub fn serve(&mut self, zone: NodeZone) {
        *self.served.entry(zone).or_default() += 1;
    }

    /// A node of this zone was granted and is not any more.
    pub fn unserve(&mut self, zone: &NodeZone) {
        if let Some(count) = self.served.get_mut(zone) {
            *count -= 1;
            if *count == 0 {
                self.served.remove(zone);
            }
        }
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.unready.is_empty()
    }

    /// How many wait. Counts zones' sets, so it costs the number of zones.
    pub fn len(&self) -> usize {
        self.ready.values().chain(self.unready.values()).map(BTreeSet::len).sum()
    }

    /// The first nodes in line, at most so many. They stay in line until they are removed.
    pub fn first(&self, most: usize) -> Vec<NodeName> {
        let mut chosen = Vec::new();
        let mut served = self.served.clone();
        for zones in [&self.ready, &self.unready] {
            let mut lines: BTreeMap<&NodeZone, _> =
                zones.iter().map(|(zone, nodes)| (zone, nodes.iter().peekable())).collect();
            while chosen.len() < most {
                lines.retain(|_, line| line.peek().is_some());
                let count = |zone: &NodeZone| served.get(zone).copied().unwrap_or_default();
                let Some(zone) = lines.keys().copied().min_by_key(|zone| count(zone)).cloned() else { break };
                chosen.extend(lines.get_mut(&zone).and_then(Iterator::next).cloned());
                *served.entry(zone).or_default() += 1;
            }
        }
        chosen
    }

    fn side(&mut self, is_ready: bool) -> &mut Zones {
        if is_ready { &mut self.ready } else { &mut self.unready }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(nodes: &[(&str, &str, bool)]) -> Queue {
        let mut queue = Queue::default();
        for (node, zone, is_ready) in nodes {
            queue.insert((*node).into(), (*zone).into(), *is_ready);
        }
        queue
    }

    fn first(queue: &Queue, most: usize) -> Vec<String> {
        queue.first(most).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn without_zones_nodes_come_by_name() {
        let queue = queue(&[("c", "", true), ("a", "", true), ("b", "", true)]);
        assert_eq!(first(&queue, 2), ["a", "b"]);
    }

    #[test]
    fn nodes_that_are_not_ready_come_last() {
        let queue = queue(&[("a", "", false), ("b", "", true)]);
        assert_eq!(first(&queue, 9), ["b", "a"]);
    }

    #[test]
    fn zones_take_turns() {
        let queue = queue(&[("a", "x", true), ("b", "x", true), ("c", "y", true), ("d", "z", true)]);
        assert_eq!(first(&queue, 4), ["a", "c", "d", "b"]);
    }

    #[test]
    fn a_zone_that_has_had_more_comes_later() {
        let mut queue = queue(&[("a", "x", true), ("c", "y", true)]);
        queue.serve("x".into());
        assert_eq!(first(&queue, 2), ["c", "a"]);
        queue.unserve(&"x".into());
        assert_eq!(first(&queue, 2), ["a", "c"]);
    }

    #[test]
    fn a_removed_node_is_gone_and_asking_changes_nothing() {
        let mut queue = queue(&[("a", "x", true), ("b", "x", true)]);
        assert_eq!(first(&queue, 1), first(&queue, 1));
        queue.remove("a", &"x".into(), true);
        assert_eq!((first(&queue, 9), queue.len()), (vec!["b".to_owned()], 1));
        queue.remove("b", &"x".into(), true);
        assert!(queue.is_empty());
    }
}
