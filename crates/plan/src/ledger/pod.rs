//! The pods that jobs select by: where they run and what they are labelled with, and nothing else of them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::object::NodeName;

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
    synced: BTreeSet<String>,
}

impl Pods {
    /// Takes note of a pod; `None` if it is gone. Returns what was there.
    pub fn put(&mut self, namespace: &str, name: &str, facts: Option<PodFacts>) -> Option<PodFacts> {
        match facts {
            Some(facts) => {
                self.by_namespace.entry(namespace.to_owned()).or_default().insert(name.to_owned(), facts)
            }
            None => self.by_namespace.get_mut(namespace)?.remove(name),
        }
    }

    /// The pods of a namespace.
    pub fn of(&self, namespace: &str) -> impl Iterator<Item = (&String, &PodFacts)> {
        self.by_namespace.get(namespace).into_iter().flatten()
    }

    /// All pods of a namespace are known.
    pub fn sync(&mut self, namespace: &str) {
        self.synced.insert(namespace.to_owned());
    }

    /// Whether all pods of a namespace are known.
    pub fn is_synced(&self, namespace: &str) -> bool {
        self.synced.contains(namespace)
    }

    /// A namespace is not watched any more.
    pub fn forget(&mut self, namespace: &str) {
        self.by_namespace.remove(namespace);
        self.synced.remove(namespace);
    }
}
