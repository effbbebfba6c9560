//! The pods that jobs select by: where they run and what they are labelled with, and nothing else of them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::record::Job;
use crate::cluster::{Kernel, Target};
use crate::demand::selection::Selection;
use crate::object::{NodeName, ObjectKey, Uid};

/// A pod, as far as jobs select by it.
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

impl Kernel {
    /// A pod is like this; `None` if it is gone.
    pub(in crate::cluster) fn observe_pod(&mut self, key: &ObjectKey, facts: Option<PodFacts>) {
        let old = self.jobs.pods.put(key, None);
        let concerned = if old == facts { Vec::new() } else { self.jobs_by_pods(&key.namespace) };
        for uid in concerned {
            let Some(job) = self.jobs.all.get_mut(&uid) else { continue };
            let Selection::Pods(requirements) = &job.demand.nodes else { continue };
            let place = |facts: &Option<PodFacts>| {
                let facts = facts.as_ref().filter(|facts| requirements.matches(&facts.labels));
                facts.and_then(PodFacts::place).cloned()
            };
            let (from, to) = (place(&old), place(&facts));
            if from == to {
                continue;
            }
            if let Some(node) = &from {
                uncount(&mut job.pods, node);
            }
            if let Some(node) = &to {
                *job.pods.entry(node.clone()).or_default() += 1;
            }
            for node in from.into_iter().chain(to) {
                self.update_standing(&uid, &node);
            }
        }
        self.jobs.pods.put(key, facts);
    }

    /// All pods of a namespace are known.
    pub(in crate::cluster) fn know_pods(&mut self, namespace: &str) {
        self.jobs.pods.known.insert(namespace.to_owned());
        for uid in self.jobs_by_pods(namespace) {
            // Pods that were known before may be gone.
            self.update_standings(&uid);
            self.agenda.mark(Target::Job(uid));
        }
    }

    /// The pods of a namespace are not watched any more.
    pub(in crate::cluster) fn unwatch_pods(&mut self, namespace: &str) {
        self.jobs.pods.by_namespace.remove(namespace);
        self.jobs.pods.known.remove(namespace);
        for uid in self.jobs_by_pods(namespace) {
            self.count_pods(&uid);
        }
    }

    fn jobs_by_pods(&self, namespace: &str) -> Vec<Uid> {
        let selects = |job: &Job| job.is_active() && matches!(job.demand.nodes, Selection::Pods(_));
        let jobs = self.jobs.all.iter().filter(|(_, job)| job.key.namespace == namespace && selects(job));
        jobs.map(|(uid, _)| uid.clone()).collect()
    }

    /// Counts the pods that a job selects by, on each node.
    pub(super) fn count_pods(&mut self, uid: &Uid) {
        let Some(job) = self.jobs.all.get_mut(uid) else { return };
        job.pods.clear();
        if let Selection::Pods(requirements) = &job.demand.nodes {
            for facts in self.jobs.pods.of(&job.key.namespace) {
                if let Some(node) = facts.place().filter(|_| requirements.matches(&facts.labels)) {
                    *job.pods.entry(node.clone()).or_default() += 1;
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
