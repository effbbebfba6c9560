//! What is observed of ImagePrefetches becomes records.

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use prewarm_api::ofen::{API_VERSION, IMAGE_PREFETCH, ImagePrefetch};

use super::record::Prefetch;
use crate::cluster::demands::parts;
use crate::cluster::interface::{About, Demands, Observe, Writes, owned};
use crate::cluster::{Kernel, Target};
use crate::object::store::Admission;
use crate::object::version::version;
use crate::object::{NodeName, ObjectKey, Uid};

impl Observe for ImagePrefetch {
    const ABOUT: About = About {
        can_be_left_out: true,
        demands: Demands::OfMirrorsToo,
        ..About::new(API_VERSION, IMAGE_PREFETCH, Writes::Both)
    };

    fn metadata(&self) -> Option<&ObjectMeta> {
        Some(&self.metadata)
    }

    fn observe(self, kernel: &mut Kernel, _now: Timestamp) {
        kernel.observe_prefetch(self);
    }

    fn forget(kernel: &mut Kernel, key: &ObjectKey, uid: Option<&str>) {
        kernel.forget_prefetch(key, uid);
    }

    fn held(kernel: &Kernel) -> Vec<(ObjectKey, Uid)> {
        owned(kernel.prefetches.all.held())
    }

    fn listed(kernel: &mut Kernel, _namespace: &str) {
        kernel.mark_all_nodes();
        kernel.mark_all_sets();
    }

    fn released(kernel: &mut Kernel, key: &ObjectKey, _uid: Uid) {
        kernel.mark_all_nodes();
        kernel.mark_all_sets();
        kernel.mark_sources_of(key);
    }
}

impl Kernel {
    fn observe_prefetch(&mut self, mut object: ImagePrefetch) {
        object.metadata.managed_fields = None;
        let Some(uid) = object.metadata.uid.as_deref().map(|uid| self.shared.text::<Uid>(uid)) else {
            return;
        };
        let key = ObjectKey::of(&object.metadata);
        let admission = self.prefetches.all.admit(&key, &uid, version(&object.metadata));
        if let Admission::Replaces(other) = &admission {
            self.forget_prefetch(&key, Some(&other.clone()));
        }
        let has_changed = match (admission, self.prefetches.all.get_mut(&uid)) {
            (Admission::Stale, _) => return,
            (Admission::Known, Some(prefetch)) => prefetch.renew(object),
            _ => {
                self.prefetches.all.insert(uid.clone(), Prefetch::new(object));
                true
            }
        };
        let is_terminating = self.prefetches.all.get(&uid).is_some_and(Prefetch::is_terminating);
        if is_terminating {
            self.leave_prefetch(&uid, &key);
        } else if has_changed {
            self.place_prefetch(&uid);
        }
        self.agenda.mark(Target::Prefetch(uid));
    }

    /// Brings its demands in line with what is known of it: those of images that it no longer names go.
    pub(super) fn place_prefetch(&mut self, uid: &Uid) {
        let Some(prefetch) = self.prefetches.all.get(uid) else { return };
        let statements: Vec<_> = parts::demands(&prefetch.parts)
            .into_iter()
            .map(|(demand, part)| (demand.clone(), prefetch.statement(uid, part)))
            .collect();
        self.drop_demands_of(uid, &statements.iter().map(|(demand, _)| demand.clone()).collect());
        for (demand, statement) in statements {
            self.place_demand(&demand, statement);
        }
    }

    /// The demands of an object go, except these.
    pub(in crate::cluster) fn drop_demands_of(&mut self, object: &str, kept: &BTreeSet<Uid>) {
        for demand in self.demands.parts_of(object) {
            if !kept.contains(&demand) {
                self.forget_demand(&demand);
            }
        }
    }

    /// It is gone, or about to go.
    fn leave_prefetch(&mut self, uid: &Uid, key: &ObjectKey) {
        self.drop_demands_of(uid, &BTreeSet::new());
        self.mark_sets_of(key);
    }

    fn forget_prefetch(&mut self, key: &ObjectKey, uid: Option<&str>) {
        let Some((held, _)) = self.prefetches.all.forget(key, uid) else { return };
        self.leave_prefetch(&held, key);
        self.agenda.drop_target(Target::Prefetch(held));
    }

    /// Something about a node has changed by which it is chosen.
    pub(in crate::cluster) fn mark_prefetches_for(&mut self, name: &NodeName) {
        let labels =
            self.nodes.all.get(name).and_then(|node| node.facts.as_ref()).map(|facts| facts.labels.clone());
        let is_concerned = |prefetch: &Prefetch| {
            let holds = prefetch.selected.as_ref().is_some_and(|selected| selected.contains(name));
            holds || labels.as_ref().is_some_and(|labels| prefetch.requirements.matches(labels))
        };
        let concerned = self.prefetches.all.iter().filter(|(_, prefetch)| is_concerned(prefetch));
        let concerned: Vec<Target> = concerned.map(|(uid, _)| Target::Prefetch(uid.clone())).collect();
        self.agenda.mark_all(concerned);
    }

    fn mark_all_nodes(&mut self) {
        let all: Vec<Target> = self.nodes.all.keys().cloned().map(Target::Node).collect();
        self.agenda.mark_all(all);
    }
}
