//! The pods that demands select by: where they run and what they are labelled with, and nothing else of them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::Timestamp;

use crate::cluster::Kernel;
use crate::cluster::interface::{About, Observe, Writes};
use crate::demand::selection::Selection;
use crate::object::{NodeName, ObjectKey, Uid};

/// A pod, as far as demands select by it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodFacts {
    /// The node it runs on, if it has one.
    pub node: Option<NodeName>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Whether it runs or will: neither ended nor on its way out.
    pub is_active: bool,
}

impl PodFacts {
    /// The node on which it counts.
    pub fn place(&self) -> Option<&NodeName> {
        self.node.as_ref().filter(|_| self.is_active)
    }
}

/// The pods of the namespaces that are watched.
#[derive(Debug, Default)]
pub struct Pods {
    by_namespace: HashMap<String, BTreeMap<String, PodFacts>>,
    known: BTreeSet<String>,
}

impl Pods {
    /// Takes note of a pod; `None` if it is gone. Returns what was there.
    fn put(&mut self, key: &ObjectKey, facts: Option<PodFacts>) -> Option<PodFacts> {
        match facts {
            Some(facts) => {
                self.by_namespace.entry(key.namespace.clone()).or_default().insert(key.name.clone(), facts)
            }
            None => self.by_namespace.get_mut(&key.namespace)?.remove(&key.name),
        }
    }

    fn of(&self, namespace: &str) -> impl Iterator<Item = &PodFacts> {
        self.by_namespace.get(namespace).into_iter().flat_map(BTreeMap::values)
    }

    /// Whether all pods of a namespace are known.
    pub fn is_known(&self, namespace: &str) -> bool {
        self.known.contains(namespace)
    }
}

impl Observe for (ObjectKey, PodFacts) {
    const ABOUT: About = About::new("v1", "Pod", Writes::Nothing);

    fn key(&self, _config_namespace: &str) -> ObjectKey {
        self.0.clone()
    }

    fn observe(self, kernel: &mut Kernel, _now: Timestamp) {
        let (key, facts) = self;
        kernel.observe_pod(&key, Some(facts));
    }

    fn forget(kernel: &mut Kernel, key: &ObjectKey, _uid: Option<&str>) {
        kernel.observe_pod(key, None);
    }

    fn listed(kernel: &mut Kernel, namespace: &str) {
        kernel.know_pods(namespace);
    }

    fn unwatched(kernel: &mut Kernel, namespace: &str) {
        kernel.unwatch_pods(namespace);
    }

    fn namespaces(kernel: &Kernel) -> BTreeSet<String> {
        kernel.pod_namespaces()
    }
}

impl Kernel {
    /// A pod is like this; `None` if it is gone.
    fn observe_pod(&mut self, key: &ObjectKey, facts: Option<PodFacts>) {
        let old = self.demands.pods.put(key, None);
        let concerned = if old == facts { Vec::new() } else { self.demands_by_pods(&key.namespace) };
        for uid in concerned {
            let Some(record) = self.demands.get_mut(&uid) else { continue };
            let Selection::Pods(requirements) = &record.demand.nodes else { continue };
            let place = |facts: &Option<PodFacts>| {
                let facts = facts.as_ref().filter(|facts| requirements.matches(&facts.labels));
                facts.and_then(PodFacts::place).cloned()
            };
            let (from, to) = (place(&old), place(&facts));
            if from == to {
                continue;
            }
            if let Some(node) = &from {
                uncount(&mut record.pods, node);
            }
            if let Some(node) = &to {
                *record.pods.entry(node.clone()).or_default() += 1;
            }
            for node in from.into_iter().chain(to) {
                self.update_standing(&uid, &node);
            }
        }
        self.demands.pods.put(key, facts);
    }

    /// All pods of a namespace are known.
    fn know_pods(&mut self, namespace: &str) {
        self.demands.pods.known.insert(namespace.to_owned());
        for uid in self.demands_by_pods(namespace) {
            // Pods that were known before may be gone.
            self.update_standings(&uid);
            self.agenda.mark_all(self.demands.get(&uid).map(|record| record.target.clone()));
        }
    }

    /// The pods of a namespace are not watched any more.
    fn unwatch_pods(&mut self, namespace: &str) {
        self.demands.pods.by_namespace.remove(namespace);
        self.demands.pods.known.remove(namespace);
        for uid in self.demands_by_pods(namespace) {
            self.count_pods(&uid);
        }
    }

    /// The namespaces whose pods have to be watched.
    fn pod_namespaces(&self) -> BTreeSet<String> {
        let by_pods = self.demands.all.values().filter(|record| record.is_active() && record.is_by_pods());
        by_pods.map(|record| record.key.namespace.clone()).collect()
    }

    fn demands_by_pods(&self, namespace: &str) -> Vec<Uid> {
        let by_pods = self.demands.all.iter().filter(|(_, record)| {
            record.key.namespace == namespace && record.is_active() && record.is_by_pods()
        });
        by_pods.map(|(uid, _)| uid.clone()).collect()
    }

    /// Counts the pods that a demand selects by, on each node.
    pub(super) fn count_pods(&mut self, uid: &Uid) {
        let Some(record) = self.demands.all.get_mut(uid) else { return };
        record.pods.clear();
        if let Selection::Pods(requirements) = &record.demand.nodes {
            for facts in self.demands.pods.of(&record.key.namespace) {
                if let Some(node) = facts.place().filter(|_| requirements.matches(&facts.labels)) {
                    *record.pods.entry(node.clone()).or_default() += 1;
                }
            }
        }
    }
}

fn uncount(pods: &mut HashMap<NodeName, usize>, node: &NodeName) {
    if let Some(count) = pods.get_mut(node) {
        *count -= 1;
        if *count == 0 {
            pods.remove(node);
        }
    }
}
