//! Why each node of an ImagePrefetch, or of a NodeImageSet, is where it is, for whoever asks with what the API says: nothing is
//! decided here, and nothing was granted by who asks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use prewarm_api::names::condition::READY;
use prewarm_api::ofen::{ImagePrefetch, NodeImageSet};
use prewarm_api::reference_object::ObjectReference;

use super::reason::{Counts, Situation};
use super::record::Prefetch;
use super::view::ImageState;
use crate::cluster::Kernel;
use crate::cluster::demands::kind_of;
use crate::cluster::demands::parts::Part;
use crate::cluster::demands::standing::{Need, Stage};
use crate::cluster::interface::Explain;
use crate::cluster::node_image::node::Facts;
use crate::cluster::node_image::record::TagRecord;
use crate::cluster::node_image::room::Crowd;
use crate::demand::{Origin, Role};
use crate::object::{NodeName, ObjectKey, Uid};

/// One image on one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnNode {
    /// The image, as it is written.
    pub image: String,
    /// By what its entry in the NodeImage names its owner.
    pub demand: Uid,
    /// Whom the node asks; `None` if that is not settled yet.
    pub asks: Option<Asks>,
    /// Why it is where it is.
    pub why: Why,
    /// What else a person may want to know.
    pub notes: Vec<Note>,
}

/// Whom a node asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// The registry, or mirrors before it, as its runtime is configured.
    Registry,
    /// Mirrors alone.
    Mirrors,
}

/// Why one image on a node is where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// It is there.
    Present,
    /// It is being pulled.
    Pulling,
    /// The node knows of it and waits for earlier pulls.
    Queued,
    /// The node was granted it at this time and has not answered.
    Unanswered(Timestamp),
    /// It was there and was removed; it is asked for again at this time.
    Lost(Timestamp),
    /// No mirror has it yet.
    NotYet(String),
    /// It could not be pulled; that is tried again.
    Failed(String),
    /// What is written is no image.
    NoImage,
    /// The node's NodeImage has no room.
    Room(Crowd),
    /// Nothing can be asked of the node.
    Unable(Unable),
    /// The object begins nothing for now, for this reason.
    Held(String),
    /// No node that asks the registry has all images yet; these do ask.
    First(Vec<NodeName>),
    /// This many nodes have all images; no more than that may ask mirrors at once.
    Wave(usize),
    /// There is a place for it; the controller has to look.
    Turn,
    /// The object does not take the node any more, which still holds a task of it.
    Leaving,
}

/// Why nothing can be asked of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unable {
    /// No such Node is known.
    Gone,
    /// It is not ready.
    NotReady,
    /// It has no NodeImage: no agent runs there, or the controller has yet to make it.
    NoNodeImage,
}

/// Why a node is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unselected {
    /// No such Node is known.
    Gone,
    /// `nodeSelector` does not match its labels.
    Labels,
    /// No agent runs there.
    NoAgent,
    /// It is not ready.
    NotReady,
    /// As many nodes as `replicas` says were taken.
    Enough,
    /// It is about to be taken; the controller has to look.
    Due,
}

/// What else is to be said of an image on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// It was to come from mirrors alone, and these owners of the same entry let it come from anywhere; none if a person wrote the entry.
    Lifted(Vec<ObjectReference>),
    /// The registry gave this node another digest than the first one that asked.
    OtherDigest(Arc<str>),
}

/// Why each node is where it is, one item for each of its images.
pub type OnNodes = BTreeMap<NodeName, Vec<OnNode>>;

/// Why the nodes of an ImagePrefetch are where they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explained {
    /// Those that it takes, as its status says, and those that still hold a task of it.
    pub nodes: OnNodes,
    /// Why no other node is taken.
    pub others: BTreeMap<NodeName, Unselected>,
}

/// Why the node of a NodeImageSet is where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OfSet {
    /// As this ImagePrefetch says, which has made it: name and labels agree.
    Made(ObjectKey),
    /// A person has made it.
    ByHand(OnNodes),
}

impl Explain for ImagePrefetch {
    type Explanation = Explained;

    fn explain(kernel: &mut Kernel, key: &ObjectKey, _now: Timestamp) -> Option<Explained> {
        kernel.explain_prefetch(key)
    }
}

impl Explain for NodeImageSet {
    type Explanation = OfSet;

    fn explain(kernel: &mut Kernel, key: &ObjectKey, _now: Timestamp) -> Option<OfSet> {
        kernel.explain_set(key)
    }
}

impl Kernel {
    fn explain_prefetch(&mut self, key: &ObjectKey) -> Option<Explained> {
        let uid = self.prefetches.all.uid(key)?.clone();
        let prefetch = self.prefetches.all.get_mut(&uid)?;
        let selected = prefetch.chosen();
        prefetch.selected = Some(selected.clone());
        self.adopt_sets(&uid);
        self.place_prefetch(&uid);
        let prefetch = self.prefetches.all.get(&uid)?;
        let agreed = self.agreed(prefetch);
        let leaving = self.holders(&prefetch.parts).into_iter().filter(|node| !selected.contains(node));
        let nodes: BTreeSet<NodeName> = selected.iter().cloned().chain(leaving).collect();
        let of_node = |node: &NodeName| {
            let role = self.role(prefetch, node);
            let asks = role.map(|role| if role == Role::Seed { Asks::Registry } else { Asks::Mirrors });
            let on_node = |part: &Part| {
                let wait =
                    || if selected.contains(node) { self.wait(prefetch, node, role) } else { Why::Leaving };
                self.on_node(part, node, asks, agreed.get(&part.uid), wait)
            };
            prefetch.parts.iter().map(on_node).collect()
        };
        let others = self.nodes.all.iter().filter(|(node, _)| !nodes.contains(*node));
        let others =
            others.map(|(name, node)| (name.clone(), unselected(prefetch, node.facts.as_ref()))).collect();
        Some(Explained { nodes: nodes.iter().map(|node| (node.clone(), of_node(node))).collect(), others })
    }

    fn explain_set(&self, key: &ObjectKey) -> Option<OfSet> {
        let set = self.sets.all.named(key)?;
        if let Some(owner) = &set.owner {
            return Some(OfSet::Made(owner.clone()));
        }
        let node: NodeName = set.node().into();
        let asks = |part: &Part| match self.demands.get(&part.uid).map(|record| record.demand.origin(&node)) {
            Some(Origin::Mirrors(_)) => Asks::Mirrors,
            _ => Asks::Registry,
        };
        let wait = || self.unable(&node).map_or(Why::Turn, Why::Unable);
        let on_node = |part: &Part| self.on_node(part, &node, Some(asks(part)), None, wait);
        Some(OfSet::ByHand([(node.clone(), set.parts.iter().map(on_node).collect())].into()))
    }

    fn on_node(
        &self,
        part: &Part,
        node: &NodeName,
        asks: Option<Asks>,
        agreed: Option<&Arc<str>>,
        wait: impl FnOnce() -> Why,
    ) -> OnNode {
        let tag = self.tag_of(part, node).filter(|tag| tag.is_owned_by(&part.uid));
        let mut notes = Vec::new();
        if let Some(tag) = tag.filter(|tag| asks == Some(Asks::Mirrors) && tag.mirrors.is_none()) {
            notes.push(Note::Lifted(self.lifted_by(tag, part, node)));
        }
        if let Some((_, digest)) = self.resolved(part, node).filter(|_| asks == Some(Asks::Registry))
            && agreed.is_some_and(|agreed| *agreed != digest)
        {
            notes.push(Note::OtherDigest(digest));
        }
        let why = self.why(part, node, wait);
        OnNode { image: part.text.clone(), demand: part.uid.clone(), asks, why, notes }
    }

    fn why(&self, part: &Part, node: &NodeName, wait: impl FnOnce() -> Why) -> Why {
        if part.image.is_none() {
            return Why::NoImage;
        }
        let standing = self.standing_of(&part.uid, node);
        let need = standing.and_then(|standing| standing.need);
        match (self.image_state(part, node), standing.map(|standing| standing.stage)) {
            (_, Some(Stage::Succeeded)) if matches!(need, Some(Need::Renew(_))) => match need {
                Some(Need::Renew(at)) => Why::Lost(at),
                _ => Why::Present,
            },
            (ImageState::Downloaded, _) => Why::Present,
            (ImageState::InProgress, _) => Why::Pulling,
            (ImageState::NotYet(words), _) => Why::NotYet(words),
            (ImageState::Failed(words), _) => Why::Failed(words),
            (ImageState::Waiting, Some(Stage::Granted(since))) => Why::Unanswered(since),
            (ImageState::Waiting, Some(Stage::Acknowledged { .. })) => Why::Queued,
            (ImageState::Waiting, Some(Stage::Crowded(crowd))) => Why::Room(crowd),
            (ImageState::Waiting, _) => wait(),
        }
    }

    /// Why nothing was asked yet of a node that it takes.
    fn wait(&self, prefetch: &Prefetch, node: &NodeName, role: Option<Role>) -> Why {
        if let Some(hold) = reported_hold(prefetch) {
            return Why::Held(hold);
        }
        if let Some(unable) = self.unable(node) {
            return Why::Unable(unable);
        }
        if role.is_some() {
            return Why::Turn;
        }
        let seeds: Vec<NodeName> = self.of_role(prefetch, Role::Seed).collect();
        let has_all = |node: &NodeName| {
            prefetch.parts.iter().all(|part| self.image_state(part, node) == ImageState::Downloaded)
        };
        let done = prefetch.selected.iter().flatten().filter(|node| self.role(prefetch, node).is_some());
        let done = done.filter(|node| has_all(node)).count();
        let is_verified = seeds.iter().any(has_all) || self.of_role(prefetch, Role::Mirror).next().is_some();
        match () {
            () if is_verified => Why::Wave(done),
            () if seeds.is_empty() => Why::Turn,
            () => Why::First(seeds),
        }
    }

    fn unable(&self, node: &NodeName) -> Option<Unable> {
        let known = self.nodes.all.get(node);
        let Some(facts) = known.and_then(|node| node.facts.as_ref()) else { return Some(Unable::Gone) };
        match known.and_then(|node| node.live_image()) {
            None => Some(Unable::NoNodeImage),
            Some(_) if !facts.is_ready => Some(Unable::NotReady),
            Some(_) => None,
        }
    }

    /// What a node was granted to ask. Where its NodeImageSet does not say so yet, its entries do, if it has all of them.
    fn role(&self, prefetch: &Prefetch, node: &NodeName) -> Option<Role> {
        let granted = || {
            let readable = || prefetch.parts.iter().filter(|part| part.image.is_some());
            let owned = |part: &Part| self.tag_of(part, node).filter(|tag| tag.is_owned_by(&part.uid));
            let asks_mirrors = readable().find_map(owned)?.mirrors.is_some();
            let has_all = readable().all(|part| owned(part).is_some());
            has_all.then_some(if asks_mirrors { Role::Mirror } else { Role::Seed })
        };
        prefetch.begun.get(node).map(|begun| begun.role).or_else(granted)
    }

    fn of_role<'a>(&'a self, prefetch: &'a Prefetch, role: Role) -> impl Iterator<Item = NodeName> + 'a {
        let selected = prefetch.selected.iter().flatten();
        selected.filter(move |node| self.role(prefetch, node) == Some(role)).cloned()
    }

    /// What each image stands for in this generation: what mirrors are asked for, or else what the registry said first.
    fn agreed(&self, prefetch: &Prefetch) -> BTreeMap<Uid, Arc<str>> {
        let digest = |part: &Part| {
            let pinned = self.of_role(prefetch, Role::Mirror).find_map(|node| self.pinned(part, &node));
            let resolved =
                self.of_role(prefetch, Role::Seed).filter_map(|node| self.resolved(part, &node)).min();
            pinned.or(resolved.map(|(_, digest)| digest))
        };
        prefetch.parts.iter().filter_map(|part| Some((part.uid.clone(), digest(part)?))).collect()
    }

    /// The nodes that hold an entry of one of these parts.
    fn holders(&self, parts: &[Part]) -> Vec<NodeName> {
        let holds = |node: &NodeName| {
            parts.iter().any(|part| self.tag_of(part, node).is_some_and(|tag| tag.is_owned_by(&part.uid)))
        };
        self.nodes.all.keys().filter(|node| holds(node)).cloned().collect()
    }

    /// Which of the other owners of an entry let it come from anywhere: those of kinds that know nothing of mirrors, and those that
    /// are known to ask for it. If that is not clear, all others.
    fn lifted_by(&self, tag: &TagRecord, part: &Part, node: &NodeName) -> Vec<ObjectReference> {
        let others = || tag.owners.iter().filter(|owner| owner.uid.as_deref() != Some(&*part.uid));
        let lifts = |owner: &&ObjectReference| match kind_of(owner) {
            Some(kind) if kind.about().asks_mirrors() => {
                let demand = owner.uid.as_deref().and_then(|uid| self.demands.get(uid));
                demand.is_some_and(|record| record.demand.origin(node) == Origin::Anywhere)
            }
            _ => true,
        };
        let sure: Vec<ObjectReference> = others().filter(lifts).cloned().collect();
        if sure.is_empty() { others().cloned().collect() } else { sure }
    }
}

/// Why a node is not taken.
fn unselected(prefetch: &Prefetch, facts: Option<&Facts>) -> Unselected {
    let Some(facts) = facts else { return Unselected::Gone };
    match () {
        () if !prefetch.requirements.matches(&facts.labels) => Unselected::Labels,
        () if !facts.has_agent || facts.is_virtual() => Unselected::NoAgent,
        () if !facts.is_ready || facts.is_terminating => Unselected::NotReady,
        () if is_full(prefetch) => Unselected::Enough,
        () => Unselected::Due,
    }
}

/// Whether as many nodes are taken as are wanted.
fn is_full(prefetch: &Prefetch) -> bool {
    let wanted = prefetch.object.spec.replicas.and_then(|replicas| usize::try_from(replicas).ok());
    !prefetch.object.spec.all_nodes && wanted.is_some_and(|wanted| prefetch.chosen().len() >= wanted)
}

/// What keeps an ImagePrefetch from beginning, as far as its status tells: only the controller has seen its Secrets. Its condition
/// says something else then than the counters do.
pub fn reported_hold(prefetch: &Prefetch) -> Option<String> {
    let status = prefetch.object.status.as_ref()?;
    let ready = status.conditions.iter().flatten().find(|one| one.type_ == READY && one.status == "False")?;
    let number = |count: i32| usize::try_from(count).unwrap_or_default();
    let counts = Counts {
        desired: number(status.desired_nodes),
        pulled: number(status.image_pulled_nodes),
        ..Counts::default()
    };
    let without =
        Situation { counts, ..Situation::default() }.findings().into_iter().find(|one| one.type_ == READY)?;
    (without.message != ready.message).then(|| ready.message.clone())
}

#[cfg(test)]
#[path = "explain/tests.rs"]
mod tests;
