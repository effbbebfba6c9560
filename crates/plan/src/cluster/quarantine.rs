//! Objects that this version cannot read: a newer one wrote something into them that it does not know. They are left as they
//! are. What they asked of others stays, nothing is written to them, and nothing is deleted because of them.

use std::collections::{BTreeMap, BTreeSet};

use prewarm_api::kruise::{API_VERSION, BROADCAST_JOB, IMAGE_LIST_PULL_JOB, IMAGE_PULL_JOB};
use prewarm_api::names::event::UNREADABLE;
use prewarm_api::reference_object::ObjectReference;

use super::command::{Notice, Target};
use super::{Kernel, Kind};
use crate::object::{ObjectKey, Uid};

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
        // Whoever kept something for its sake looks again.
        match kind {
            Kind::ImagePullJob => {
                self.demands.find_entries_of(uid);
                self.mark_sources_of(key);
            }
            Kind::Node | Kind::NodeImage => self.agenda.mark(Target::Node(key.name.as_str().into())),
            _ => {}
        }
    }

    /// Whether a pass would write to what cannot be read.
    pub(super) fn is_quarantined(&self, target: &Target) -> bool {
        let quarantine = &self.quarantine;
        match target {
            _ if quarantine.is_empty() => false,
            Target::Source(_) => false,
            Target::Job(uid) | Target::List(uid) | Target::Broadcast(uid) | Target::Cron(uid) => {
                quarantine.has_uid(uid)
            }
            #[cfg(test)]
            Target::Wish(uid) => quarantine.has_uid(uid),
            Target::Node(name) => {
                let key = ObjectKey { namespace: String::new(), name: name.to_string() };
                quarantine.has(Kind::Node, &key) || quarantine.has(Kind::NodeImage, &key)
            }
        }
    }

    /// How many objects of each kind cannot be read.
    pub fn unreadable(&self) -> BTreeMap<Kind, usize> {
        let mut counts = BTreeMap::new();
        for (kind, _) in self.quarantine.objects.keys() {
            *counts.entry(*kind).or_default() += 1;
        }
        counts
    }
}

fn reference(kind: Kind, key: &ObjectKey, uid: &Uid) -> ObjectReference {
    let (api_version, kind) = match kind {
        Kind::Node => ("v1", "Node"),
        Kind::Secret => ("v1", "Secret"),
        Kind::Pod | Kind::BroadcastPod => ("v1", "Pod"),
        Kind::Job => ("batch/v1", "Job"),
        Kind::NodeImage => (API_VERSION, "NodeImage"),
        Kind::ImagePullJob => (API_VERSION, IMAGE_PULL_JOB),
        Kind::ImageListPullJob => (API_VERSION, IMAGE_LIST_PULL_JOB),
        Kind::BroadcastJob => (API_VERSION, BROADCAST_JOB),
        Kind::AdvancedCronJob => (API_VERSION, "AdvancedCronJob"),
    };
    ObjectReference {
        api_version: Some(api_version.to_owned()),
        kind: Some(kind.to_owned()),
        namespace: Some(key.namespace.clone()).filter(|namespace| !namespace.is_empty()),
        name: Some(key.name.clone()),
        uid: Some(uid.to_string()),
        ..ObjectReference::default()
    }
}
