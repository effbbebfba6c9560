//! What is known of one kind of object: by UID and by name, the newest version only, and what is gone stays gone.
//!
//! Watches and the answers to our own writes come in any order. A name may come back at once, with another UID; a UID
//! never comes back, although what a watch still has to say about it may come late.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use super::version::is_newer;
use super::{ObjectKey, Uid};

/// How many gone objects are remembered. A watch that is further behind may bring one back, until it has caught up.
const MOST_GONE: usize = 10_000;

/// What a store holds of an object.
pub trait Entry {
    /// Namespace and name.
    fn key(&self) -> &ObjectKey;
    /// Its resourceVersion.
    fn version(&self) -> &str;
}

/// All objects of a kind.
#[derive(Debug)]
pub struct Store<E> {
    entries: BTreeMap<Uid, E>,
    uids: HashMap<ObjectKey, Uid>,
    gone: Gone,
}

impl<E> Default for Store<E> {
    fn default() -> Self {
        Self { entries: BTreeMap::new(), uids: HashMap::new(), gone: Gone::default() }
    }
}

/// What a store makes of an object that was observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It is older than what is known, or the object is gone.
    Stale,
    /// The store has none of this name.
    New,
    /// The store has an older state of it.
    Known,
    /// The store has another one of this name, with this UID, which must be gone.
    Replaces(Uid),
}

impl<E: Entry> Store<E> {
    /// What an object of this name, UID and version is to the store. Nothing changes.
    pub fn admit(&self, key: &ObjectKey, uid: &str, version: &str) -> Admission {
        let is_old = |held: &Uid| is_newer(self.entries[held].version(), version);
        match self.uids.get(key) {
            _ if self.gone.has(uid) => Admission::Stale,
            Some(held) if is_old(held) => Admission::Stale,
            Some(held) if **held == *uid => Admission::Known,
            Some(held) => Admission::Replaces(held.clone()),
            None => Admission::New,
        }
    }

    /// Puts an object in, in place of the one with its UID.
    pub fn insert(&mut self, uid: Uid, entry: E) -> Option<E> {
        self.uids.insert(entry.key().clone(), uid.clone());
        self.entries.insert(uid, entry)
    }

    /// Forgets an object; with a UID, only if the store has that one. An object that is gone by its UID is never admitted
    /// again; one that is gone by its name alone may be, because it may be that it only could not be read.
    pub fn forget(&mut self, key: &ObjectKey, uid: Option<&str>) -> Option<(Uid, E)> {
        if let Some(uid) = uid {
            self.gone.add(uid.into());
        }
        let held = self.uids.get(key).filter(|held| uid.is_none_or(|uid| *uid == ***held)).cloned()?;
        self.uids.remove(key);
        let entry = self.entries.remove(&held)?;
        Some((held, entry))
    }

    /// The UID of the object of this name.
    pub fn uid(&self, key: &ObjectKey) -> Option<&Uid> {
        self.uids.get(key)
    }

    /// Whether there is an object of this name.
    pub fn has(&self, key: &ObjectKey) -> bool {
        self.uids.contains_key(key)
    }

    /// The object with this UID.
    pub fn get(&self, uid: &str) -> Option<&E> {
        self.entries.get(uid)
    }

    /// The object with this UID.
    pub fn get_mut(&mut self, uid: &str) -> Option<&mut E> {
        self.entries.get_mut(uid)
    }

    /// The object of this name.
    pub fn named(&self, key: &ObjectKey) -> Option<&E> {
        self.entries.get(self.uids.get(key)?)
    }

    /// All objects, by UID.
    pub fn iter(&self) -> impl Iterator<Item = (&Uid, &E)> {
        self.entries.iter()
    }

    /// All objects, by UID.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&Uid, &mut E)> {
        self.entries.iter_mut()
    }

    /// All objects, by UID.
    pub fn values(&self) -> impl Iterator<Item = &E> {
        self.entries.values()
    }

    /// The names and UIDs of all objects, by UID.
    pub fn held(&self) -> impl Iterator<Item = (&ObjectKey, &Uid)> {
        self.entries.iter().map(|(uid, entry)| (entry.key(), uid))
    }
}

/// UIDs of objects that are gone, the last ones of them.
#[derive(Debug, Default)]
struct Gone {
    order: VecDeque<Uid>,
    uids: HashSet<Uid>,
}

impl Gone {
    fn add(&mut self, uid: Uid) {
        if self.uids.insert(uid.clone()) {
            self.order.push_back(uid);
        }
        if self.order.len() > MOST_GONE
            && let Some(oldest) = self.order.pop_front()
        {
            self.uids.remove(&oldest);
        }
    }

    fn has(&self, uid: &str) -> bool {
        self.uids.contains(uid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq)]
    struct Thing(ObjectKey, &'static str);

    impl Entry for Thing {
        fn key(&self) -> &ObjectKey {
            &self.0
        }

        fn version(&self) -> &str {
            self.1
        }
    }

    fn key(name: &str) -> ObjectKey {
        ObjectKey { namespace: "default".to_owned(), name: name.to_owned() }
    }

    fn store() -> Store<Thing> {
        let mut store = Store::default();
        store.insert("one".into(), Thing(key("a"), "5"));
        store
    }

    #[test]
    fn the_newest_version_wins() {
        let store = store();
        let answers = ["4", "5", "6"].map(|version| store.admit(&key("a"), "one", version));
        assert_eq!(answers, [Admission::Stale, Admission::Known, Admission::Known]);
        assert_eq!(store.admit(&key("b"), "two", "1"), Admission::New);
    }

    #[test]
    fn another_object_of_the_same_name_replaces_only_an_older_one() {
        let store = store();
        assert_eq!(store.admit(&key("a"), "two", "4"), Admission::Stale);
        assert_eq!(store.admit(&key("a"), "two", "6"), Admission::Replaces("one".into()));
    }

    #[test]
    fn what_is_gone_by_its_uid_stays_gone() {
        let mut store = store();
        assert_eq!(store.forget(&key("a"), Some("other")), None);
        assert!(store.forget(&key("a"), Some("one")).is_some());
        assert_eq!(store.admit(&key("a"), "one", "9"), Admission::Stale);
        assert_eq!(store.admit(&key("a"), "other", "9"), Admission::Stale);
    }

    #[test]
    fn what_could_not_be_read_may_come_back() {
        let mut store = store();
        assert!(store.forget(&key("a"), None).is_some());
        assert_eq!(store.admit(&key("a"), "one", "9"), Admission::New);
    }

    #[test]
    fn only_the_last_gone_objects_are_remembered() {
        let mut store = store();
        for number in 0..=MOST_GONE {
            store.forget(&key("x"), Some(&number.to_string()));
        }
        assert_eq!(store.gone.uids.len(), MOST_GONE);
        assert!(!store.gone.has("0"));
    }
}
