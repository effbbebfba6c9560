//! Objects that this version cannot read: a newer one wrote something into them that it does not know. They are left as they
//! are. What they asked of others stays, nothing is written to them, and nothing is deleted because of them.

use std::collections::{BTreeMap, BTreeSet};

use prewarm_api::names::event::UNREADABLE;
use prewarm_api::reference_object::ObjectReference;

use super::command::{Notice, Target};
use super::interface::About;
use super::{Kernel, Kind};
use crate::object::{NodeName, ObjectKey, SourceKey, Uid};

/// The objects that cannot be read.
#[derive(Debug, Default)]
pub struct Quarantine {
    uids: BTreeSet<Uid>,
    objects: BTreeMap<(Kind, ObjectKey), Uid>,
}

impl Quarantine {
    /// Whether an object cannot be read.
    pub(super) fn has(&self, kind: Kind, key: &ObjectKey) -> bool {
        !self.objects.is_empty() && self.objects.contains_key(&(kind, key.clone()))
    }

    /// Whether the object with this UID cannot be read.
    pub(super) fn has_uid(&self, uid: &str) -> bool {
        self.uids.contains(uid)
    }

    /// How many objects of each kind cannot be read.
    pub fn counts(&self) -> BTreeMap<Kind, usize> {
        let mut counts = BTreeMap::new();
        for (kind, _) in self.objects.keys() {
            *counts.entry(*kind).or_default() += 1;
        }
        counts
    }

    /// Whether there is any.
    pub(super) fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// An object cannot be read. Says whether that is new.
    fn add(&mut self, kind: Kind, key: ObjectKey, uid: Uid) -> bool {
        let before = self.objects.insert((kind, key), uid.clone());
        let is_new = before.as_ref() != Some(&uid);
        self.uids.insert(uid);
        if let Some(before) = before.filter(|_| is_new) {
            self.uids.remove(&before);
        }
        is_new
    }

    /// An object was read, or is gone. Says which it was.
    fn remove(&mut self, kind: Kind, key: &ObjectKey) -> Option<Uid> {
        if self.objects.is_empty() {
            return None;
        }
        let uid = self.objects.remove(&(kind, key.clone()))?;
        self.uids.remove(&uid);
        Some(uid)
    }
}

impl Kernel {
    /// An object cannot be read, for this reason.
    pub(super) fn quarantine(&mut self, kind: Kind, key: &ObjectKey, uid: &Uid, reason: &str) {
        if !self.quarantine.add(kind, key.clone(), uid.clone()) {
            return;
        }
        let note = format!(
            "this version of the controller cannot read it and leaves it and all that it asked for as they are: {reason}; \
             run a version that is as new as whoever wrote it"
        );
        self.events.push(Notice::warning(UNREADABLE, note).about(reference(kind, key, uid)));
    }

    /// An object can be read, or is gone.
    pub(super) fn release(&mut self, kind: Kind, key: &ObjectKey) {
        let Some(uid) = self.quarantine.remove(kind, key) else { return };
        kind.released(self, key, uid);
    }

    /// Whether a pass would write to what cannot be read.
    pub(super) fn is_quarantined(&self, target: &Target) -> bool {
        !self.quarantine.is_empty() && target.is_in(&self.quarantine)
    }
}

/// By whatever a cycle knows what it looks at, it may be unreadable.
pub(super) trait MayBeUnreadable {
    fn is_in(&self, quarantine: &Quarantine) -> bool;
}

impl MayBeUnreadable for Uid {
    fn is_in(&self, quarantine: &Quarantine) -> bool {
        quarantine.has_uid(self)
    }
}

impl MayBeUnreadable for NodeName {
    fn is_in(&self, quarantine: &Quarantine) -> bool {
        let key = ObjectKey { namespace: String::new(), name: self.to_string() };
        quarantine.has(Kind::Node, &key) || quarantine.has(Kind::NodeImage, &key)
    }
}

impl MayBeUnreadable for SourceKey {
    fn is_in(&self, _quarantine: &Quarantine) -> bool {
        false
    }
}

fn reference(kind: Kind, key: &ObjectKey, uid: &Uid) -> ObjectReference {
    let About { api_version, name, .. } = kind.about();
    ObjectReference {
        api_version: Some(api_version.to_owned()),
        kind: Some(name.to_owned()),
        namespace: Some(key.namespace.clone()).filter(|namespace| !namespace.is_empty()),
        name: Some(key.name.clone()),
        uid: Some(uid.to_string()),
        ..ObjectReference::default()
    }
}
