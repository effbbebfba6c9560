//! Which nodes must hold the images (ofen R3, R4). A choice is kept as long as it can be: nodes that have the images stay before
//! others, and zones are used evenly. The same cluster always gives the same choice.

use std::collections::{BTreeMap, BTreeSet};

use super::record::place_of;
use crate::object::{NodeName, NodeZone};

/// A node that may be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its name.
    pub node: NodeName,
    /// Where it stands.
    pub zone: NodeZone,
    /// Whether it can work. One that cannot is only there because it was chosen before, and may come back.
    pub is_ready: bool,
    /// How much it has already: the images, or the task to ask the registry for them.
    pub merit: u8,
}

/// How many nodes are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HowMany {
    /// All of them.
    All,
    /// So many.
    Some(usize),
}

/// Chooses. `chosen` are those of before; `salt` makes different objects begin at different nodes.
pub fn select(
    how_many: HowMany,
    candidates: &[Candidate],
    chosen: &BTreeSet<NodeName>,
    salt: &str,
) -> BTreeSet<NodeName> {
    let most = match how_many {
        HowMany::All => return candidates.iter().map(|one| one.node.clone()).collect(),
        HowMany::Some(most) => most,
    };
    let mut kept: Vec<&Candidate> = candidates.iter().filter(|one| chosen.contains(&one.node)).collect();
    kept.sort_by_key(|one| (std::cmp::Reverse(one.merit), !one.is_ready, one.node.clone()));
    kept.truncate(most);
    let mut selected: BTreeSet<NodeName> = kept.iter().map(|one| one.node.clone()).collect();
    let mut served: BTreeMap<&NodeZone, usize> = BTreeMap::new();
    for one in kept {
        *served.entry(&one.zone).or_default() += 1;
    }
    let mut others: Vec<&Candidate> =
        candidates.iter().filter(|one| one.is_ready && !selected.contains(&one.node)).collect();
    others.sort_by_key(|one| (std::cmp::Reverse(one.merit), place_of(salt, &one.node), one.node.clone()));
    while selected.len() < most && !others.is_empty() {
        let count = |one: &Candidate| served.get(&one.zone).copied().unwrap_or_default();
        let Some(at) = (0..others.len()).min_by_key(|at| (count(others[*at]), *at)) else { break };
        let next = others.remove(at);
        *served.entry(&next.zone).or_default() += 1;
        selected.insert(next.node.clone());
    }
    selected
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(node: &str, zone: &str) -> Candidate {
        Candidate { node: node.into(), zone: zone.into(), is_ready: true, merit: 0 }
    }

    fn names(nodes: &BTreeSet<NodeName>) -> Vec<&str> {
        nodes.iter().map(|node| &**node).collect()
    }

    fn chosen(names: &[&str]) -> BTreeSet<NodeName> {
        names.iter().map(|name| (*name).into()).collect()
    }

    #[test]
    fn zones_are_used_evenly() {
        let nodes: Vec<Candidate> = (0..9)
            .map(|number| candidate(&format!("n{number}"), if number < 7 { "a" } else { "b" }))
            .collect();
        let selected = select(HowMany::Some(4), &nodes, &BTreeSet::new(), "uid");
        let in_b = selected.iter().filter(|name| ["n7", "n8"].contains(&&***name)).count();
        assert_eq!((selected.len(), in_b), (4, 2));
    }

    #[test]
    fn a_choice_is_kept_while_its_nodes_are_there() {
        let nodes: Vec<Candidate> = ["a", "b", "c", "d"].map(|name| candidate(name, "")).into();
        assert_eq!(names(&select(HowMany::Some(2), &nodes, &chosen(&["b", "d"]), "uid")), ["b", "d"]);
        let more = select(HowMany::Some(3), &nodes, &chosen(&["b", "d"]), "uid");
        assert!(more.is_superset(&chosen(&["b", "d"])) && more.len() == 3);
        let without: Vec<Candidate> = nodes.into_iter().filter(|one| &*one.node != "b").collect();
        let next = select(HowMany::Some(2), &without, &chosen(&["b", "d"]), "uid");
        assert!(next.contains("d") && next.len() == 2, "{next:?}");
    }

    #[test]
    fn of_fewer_nodes_those_stay_that_have_the_images() {
        let with = |name: &str, merit| Candidate { merit, ..candidate(name, "") };
        let nodes = [with("a", 0), with("b", 1), with("c", 2), with("d", 0)];
        assert_eq!(
            names(&select(HowMany::Some(2), &nodes, &chosen(&["a", "b", "c", "d"]), "uid")),
            ["b", "c"]
        );
    }

    #[test]
    fn the_order_of_candidates_does_not_matter() {
        let mut nodes: Vec<Candidate> = (0..20)
            .map(|number| candidate(&format!("n{number}"), if number % 3 == 0 { "a" } else { "b" }))
            .collect();
        let one = select(HowMany::Some(7), &nodes, &BTreeSet::new(), "uid");
        nodes.reverse();
        assert_eq!(one, select(HowMany::Some(7), &nodes, &BTreeSet::new(), "uid"));
        assert_ne!(
            one,
            select(HowMany::Some(7), &nodes, &BTreeSet::new(), "other"),
            "objects begin at different nodes"
        );
    }

    #[test]
    fn too_few_nodes_are_all_chosen_and_one_that_is_not_ready_is_never_chosen_anew() {
        let unready = Candidate { is_ready: false, ..candidate("b", "") };
        let nodes = [candidate("a", ""), unready];
        assert_eq!(names(&select(HowMany::Some(5), &nodes, &BTreeSet::new(), "uid")), ["a"]);
        assert_eq!(names(&select(HowMany::Some(5), &nodes, &chosen(&["b"]), "uid")), ["a", "b"]);
    }
}
