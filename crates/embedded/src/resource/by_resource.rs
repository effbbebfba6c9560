//! A map by group and plural. Every request looks into it several times, so a lookup must not copy the names.

use std::collections::BTreeMap;

/// One value for each resource, sorted by group and plural.
#[derive(Clone, Debug)]
pub struct ByResource<T>(BTreeMap<String, BTreeMap<String, T>>);

impl<T> Default for ByResource<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T> ByResource<T> {
    pub fn find(&self, group: &str, plural: &str) -> Option<&T> {
        self.0.get(group)?.get(plural)
    }

    pub fn find_mut(&mut self, group: &str, plural: &str) -> Option<&mut T> {
        self.0.get_mut(group)?.get_mut(plural)
    }

    pub fn insert(&mut self, group: &str, plural: &str, value: T) {
        self.0.entry(group.to_owned()).or_default().insert(plural.to_owned(), value);
    }

    pub fn remove(&mut self, group: &str, plural: &str) -> Option<T> {
        let plurals = self.0.get_mut(group)?;
        let removed = plurals.remove(plural);
        if plurals.is_empty() {
            self.0.remove(group);
        }
        removed
    }

    /// The same resources with other values.
    pub fn map<U>(&self, mut change: impl FnMut(&T) -> U) -> ByResource<U> {
        let mut plurals = |plurals: &BTreeMap<String, T>| {
            plurals.iter().map(|(name, value)| (name.clone(), change(value))).collect()
        };
        ByResource(self.0.iter().map(|(group, values)| (group.clone(), plurals(values))).collect())
    }

    /// All values, in order.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.0.values().flat_map(BTreeMap::values)
    }
}
