//! The nodes that wait for a job's grant, in the order in which they get it: ready ones first, spread over zones, then
//! by name.

use std::collections::{BTreeMap, BTreeSet};

use crate::object::{NodeName, NodeZone};

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
