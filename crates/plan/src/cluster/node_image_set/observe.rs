//! What is observed of NodeImageSets becomes records.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use prewarm_api::ofen::{API_VERSION, NODE_IMAGE_SET, NodeImageSet, RegistryPolicy};

use super::record::NodeSet;
use crate::cluster::demands::parts;
use crate::cluster::image_prefetch::record::{Begun, Prefetch};
use crate::cluster::interface::{About, Demands, Observe, Writes, owned};
use crate::cluster::{Kernel, Target};
use crate::demand::Role;
use crate::object::store::Admission;
use crate::object::version::version;
use crate::object::{NodeName, ObjectKey, Uid};

impl Observe for NodeImageSet {
    const ABOUT: About = About {
        can_be_left_out: true,
        demands: Demands::OfMirrorsToo,
        ..About::new(API_VERSION, NODE_IMAGE_SET, Writes::Both)
    };

    fn metadata(&self) -> Option<&ObjectMeta> {
        Some(&self.metadata)
    }

    fn observe(self, kernel: &mut Kernel, now: Timestamp) {
        kernel.observe_set(self, now);
    }

    fn forget(kernel: &mut Kernel, key: &ObjectKey, uid: Option<&str>) {
        kernel.forget_set(key, uid);
    }

    fn held(kernel: &Kernel) -> Vec<(ObjectKey, Uid)> {
        owned(kernel.sets.all.held())
    }

    fn listed(kernel: &mut Kernel, _namespace: &str) {
        kernel.mark_all_sets();
        let prefetches: Vec<Target> =
            kernel.prefetches.all.iter().map(|(uid, _)| Target::Prefetch(uid.clone())).collect();
        kernel.agenda.mark_all(prefetches);
        let nodes: Vec<Target> = kernel.nodes.all.keys().cloned().map(Target::Node).collect();
        kernel.agenda.mark_all(nodes);
    }

    fn released(kernel: &mut Kernel, key: &ObjectKey, _uid: Uid) {
        if let Some(uid) = kernel.sets.all.uid(key).cloned() {
            kernel.agenda.mark(Target::NodeImageSet(uid));
        }
    }
}

impl Kernel {
    fn observe_set(&mut self, mut object: NodeImageSet, now: Timestamp) {
        object.metadata.managed_fields = None;
        let Some(uid) = object.metadata.uid.as_deref().map(|uid| self.shared.text::<Uid>(uid)) else {
            return;
        };
        let key = ObjectKey::of(&object.metadata);
        let admission = self.sets.all.admit(&key, &uid, version(&object.metadata));
        if let Admission::Replaces(other) = &admission {
            self.forget_set(&key, Some(&other.clone()));
        }
        let old = self.sets.all.get(&uid).cloned();
        let has_changed = match (admission, self.sets.all.get_mut(&uid)) {
            (Admission::Stale, _) => return,
            (Admission::Known, Some(set)) => set.renew(object),
            _ => {
                let mut set = NodeSet::new(object);
                // What is over within a second is said once.
                set.written_at = set.object.status.is_none().then_some(now);
                self.sets.all.insert(uid.clone(), set);
                true
            }
        };
        if has_changed {
            self.sets.file(&uid, old.as_ref());
            self.place_set(&uid);
        }
        self.agenda.mark(Target::NodeImageSet(uid.clone()));
        let owner = self.sets.all.get(&uid).and_then(|set| set.owner.clone());
        self.mark_owner(owner.as_ref());
        self.mark_owner(old.and_then(|old| old.owner).filter(|old| owner.as_ref() != Some(old)).as_ref());
    }

    /// Brings the demands of a set that was made by hand in line with it.
    fn place_set(&mut self, uid: &Uid) {
        let Some(set) = self.sets.all.get(uid) else { return };
        let is_by_hand = set.owner.is_none() && !set.is_terminating();
        let statements: Vec<_> = parts::demands(&set.parts)
            .into_iter()
            .filter(|_| is_by_hand)
            .map(|(demand, part)| (demand.clone(), set.statement(uid, part)))
            .collect();
        self.drop_demands_of(uid, &statements.iter().map(|(demand, _)| demand.clone()).collect());
        for (demand, statement) in statements {
            self.place_demand(&demand, statement);
        }
    }

    fn forget_set(&mut self, key: &ObjectKey, uid: Option<&str>) {
        let Some((held, set)) = self.sets.all.forget(key, uid) else { return };
        self.sets.unfile(&held, &set);
        self.drop_demands_of(&held, &BTreeSet::new());
        self.mark_owner(set.owner.as_ref());
        self.agenda.drop_target(Target::NodeImageSet(held));
    }

    fn mark_owner(&mut self, owner: Option<&ObjectKey>) {
        if let Some(uid) = owner.and_then(|owner| self.prefetches.all.uid(owner)) {
            self.agenda.mark(Target::Prefetch(uid.clone()));
        }
    }

    /// All sets of an ImagePrefetch have to be looked at.
    pub(in crate::cluster) fn mark_sets_of(&mut self, owner: &ObjectKey) {
        let sets = self.sets.by_owner.get(owner).into_iter().flat_map(|nodes| nodes.values());
        let sets: Vec<Target> = sets.cloned().map(Target::NodeImageSet).collect();
        self.agenda.mark_all(sets);
    }

    /// All sets of a node have to be looked at.
    pub(in crate::cluster) fn mark_sets_on(&mut self, node: &NodeName) {
        let sets = self.sets.by_node.get(node).into_iter().flatten();
        let sets: Vec<Target> = sets.cloned().map(Target::NodeImageSet).collect();
        self.agenda.mark_all(sets);
    }

    /// All sets have to be looked at.
    pub(in crate::cluster) fn mark_all_sets(&mut self) {
        let sets: Vec<Target> =
            self.sets.all.iter().map(|(uid, _)| Target::NodeImageSet(uid.clone())).collect();
        self.agenda.mark_all(sets);
    }

    /// A restarted controller reads from the sets of this generation which nodes have begun, and in which role. Anybody may write a
    /// set, but entries of NodeImages are the controller's: a node has only begun if it has those, too.
    pub(in crate::cluster) fn adopt_sets(&mut self, uid: &Uid) {
        let Some(prefetch) = self.prefetches.all.get(uid) else { return };
        let generation = prefetch.object.metadata.generation;
        let mut adopted = Vec::new();
        for (node, set) in self.sets.by_owner.get(&prefetch.key).into_iter().flatten() {
            let set = self.sets.all.get(set).filter(|set| !set.is_terminating());
            let set = set.filter(|set| set.object.spec.image_prefetch_generation == generation);
            let Some(set) = set else { continue };
            let mut readable = prefetch.parts.iter().filter(|part| part.image.is_some());
            let was_told = |part| self.is_told(part, node, None) || self.is_refused(part, node);
            if readable.all(was_told) {
                adopted.push((node.clone(), self.role_of(prefetch, node, set.object.spec.registry_policy)));
            }
        }
        let Some(prefetch) = self.prefetches.all.get_mut(uid) else { return };
        for (node, role) in adopted {
            prefetch.begun.entry(node).or_insert(Begun { role, untold: BTreeMap::new() });
        }
    }

    /// The role of a node that has begun: what its entries say, or what its set says where others have a word in them.
    fn role_of(&self, prefetch: &Prefetch, node: &NodeName, said: RegistryPolicy) -> Role {
        let tags = || prefetch.parts.iter().filter_map(|part| self.tag_of(part, node));
        // What a person wrote is no proof that this object was let in by the registry.
        if tags().any(|tag| tag.mirrors.is_some() && !tag.is_by_hand()) {
            return Role::Mirror;
        }
        let is_shared = tags().any(|tag| tag.owners.len() > 1 || tag.manual);
        if said == RegistryPolicy::MirrorOnly && is_shared { Role::Mirror } else { Role::Seed }
    }

    /// An ImagePrefetch could not make its set for a node because there is one of that name: it is taken over, whatever
    /// it says, unless it is another one's (ofen W28).
    pub(in crate::cluster) fn claim_set(&mut self, key: &ObjectKey, owner: &ObjectKey, node: &NodeName) {
        let Some(uid) = self.sets.all.uid(key).cloned() else { return };
        let Some(set) = self.sets.all.get_mut(&uid).filter(|set| set.owner.is_none()) else {
            return;
        };
        let old = set.clone();
        (set.owner, set.claimed) = (Some(owner.clone()), Some((owner.clone(), node.clone())));
        self.sets.file(&uid, Some(&old));
        self.place_set(&uid);
        self.agenda.mark(Target::NodeImageSet(uid));
    }
}

impl super::Sets {
    /// Files a set where it is looked for.
    fn file(&mut self, uid: &Uid, old: Option<&NodeSet>) {
        if let Some(old) = old {
            self.unfile(uid, old);
        }
        let Some(set) = self.all.get(uid) else { return };
        let node: NodeName = set.node().into();
        if let Some(owner) = set.owner.clone() {
            self.by_owner.entry(owner).or_default().insert(node.clone(), uid.clone());
        }
        self.by_node.entry(node).or_default().insert(uid.clone());
    }

    fn unfile(&mut self, uid: &Uid, set: &NodeSet) {
        if let Some(nodes) = set.owner.as_ref().and_then(|owner| self.by_owner.get_mut(owner)) {
            nodes.retain(|_, held| held != uid);
        }
        if let Some(owner) = set.owner.as_ref().filter(|owner| self.count(owner) == 0) {
            self.by_owner.remove(owner);
        }
        if let Some(sets) = self.by_node.get_mut(set.node()) {
            sets.remove(uid);
            if sets.is_empty() {
                self.by_node.remove(set.node());
            }
        }
    }
}
