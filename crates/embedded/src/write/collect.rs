//! What follows from a write: owned objects, namespaces and definitions. In a real cluster, controllers do this a
//! moment later; here it is part of the same step, so nothing has to run while the server is idle.
//!
//! Writes queue what has to be looked at, and `settle` works through the queue: a long chain of owners becomes a long
//! queue, not a deep stack.

use std::sync::Arc;

use super::delete::ORPHAN;
use super::{DeleteOptions, Propagation, Writer, definition};
use crate::refusal::Refusal;
use crate::resource::Resource;
use crate::state::{ResourceId, id_of};
use crate::store::{FOREGROUND, Key, Owner, Stored};

/// What still has to be looked at.
#[derive(Debug)]
pub(super) enum Follow {
    /// An object is being deleted: its dependents or its contents may have to go first.
    Marked(ResourceId, Key),
    /// An object is gone: what it owned is deleted, and what waited for it may go.
    Removed(ResourceId, Arc<Stored>),
    /// An object has owner references: the owners may all be gone.
    Owned(ResourceId, Key),
    /// An object waits for its dependents: there may be none left.
    Waits(ResourceId, Key),
}

/// The state of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Alive,
    /// It is being deleted and waits for its dependents.
    Waiting,
    Gone,
    /// It cannot be known: there is no such kind, or the kind cannot own the object.
    Unknown,
}

impl Writer<'_> {
    /// Queues what a write may have changed for others, and works through the queue.
    pub(super) fn follow_write(
        &mut self,
        resource: &Resource,
        old: Option<&Stored>,
        stored: &Stored,
    ) -> Result<(), Refusal> {
        if let Some(old) = old.filter(|old| old.owners != stored.owners) {
            self.note_owners(old);
        }
        if !stored.owners.is_empty() {
            self.todo.push_back(Follow::Owned(id_of(resource), stored.key.clone()));
        }
        self.settle()
    }

    /// Works through the whole queue.
    pub(super) fn settle(&mut self) -> Result<(), Refusal> {
        while let Some(follow) = self.todo.pop_front() {
            match follow {
                Follow::Marked(id, key) => self.follow_mark(&id, &key)?,
                Follow::Removed(id, last) => self.follow_removal(&id, &last)?,
                Follow::Owned(id, key) => self.judge_owned(&id, &key)?,
                Follow::Waits(id, key) => self.release(&id, &key)?,
            }
        }
        Ok(())
    }

    fn find(&self, id: &ResourceId, key: &Key) -> Option<(Arc<Resource>, Arc<Stored>)> {
        let resource = self.state.resources.find(&id.0, &id.1)?.clone();
        let stored = self.state.shelf(&resource).ok()?.get(key)?.clone();
        Some((resource, stored))
    }

    fn follow_mark(&mut self, id: &ResourceId, key: &Key) -> Result<(), Refusal> {
        let Some((resource, marked)) = self.find(id, key) else { return Ok(()) };
        let finalizers = marked.value()["metadata"]["finalizers"].clone();
        if finalizers.as_array().is_some_and(|list| list.iter().any(|one| one == ORPHAN)) {
            self.orphan_dependents(&marked.uid)?;
            self.drop_finalizer(&resource, &marked, ORPHAN)?;
        }
        if marked.waits_for_dependents {
            self.note_dependents(&marked.uid);
            self.todo.push_back(Follow::Waits(id.clone(), key.clone()));
        }
        if is_namespace(&resource) {
            self.empty_namespace(&key.name)?;
        }
        if let Some(kind) = definition::kind_of(self.state, &resource, &marked) {
            self.empty_kind(&kind)?;
        }
        Ok(())
    }

    fn follow_removal(&mut self, id: &ResourceId, last: &Stored) -> Result<(), Refusal> {
        self.note_dependents(&last.uid);
        self.note_owners(last);
        if !last.key.namespace.is_empty() {
            self.finish_namespace(&last.key.namespace)?;
        }
        let Some(resource) = self.state.resources.find(&id.0, &id.1).cloned() else { return Ok(()) };
        definition::forget(self.state, &resource, last);
        if resource.is_custom { self.finish_kind(&resource) } else { Ok(()) }
    }

    fn note_dependents(&mut self, uid: &str) {
        let dependents = self.state.owned_by(uid).into_iter();
        self.todo.extend(dependents.map(|(id, key)| Follow::Owned(id, key)));
    }

    fn note_owners(&mut self, dependent: &Stored) {
        for owner in &dependent.owners {
            if let Some((resource, stored)) = self.owner(&dependent.key, owner) {
                self.todo.push_back(Follow::Waits(id_of(&resource), stored.key.clone()));
            }
        }
    }

    /// Deletes an object if all its owners are gone or wait for it. Removes references to owners that are gone.
    fn judge_owned(&mut self, id: &ResourceId, key: &Key) -> Result<(), Refusal> {
        let Some((resource, stored)) = self.find(id, key) else { return Ok(()) };
        if stored.owners.is_empty() || stored.is_terminating {
            return Ok(());
        }
        let fates: Vec<Fate> =
            stored.owners.iter().map(|owner| self.fate(&resource, &stored, owner)).collect();
        if fates.contains(&Fate::Unknown) || fates.iter().all(|fate| *fate == Fate::Alive) {
            return Ok(());
        }
        if fates.contains(&Fate::Alive) {
            return self.keep_living_owners(&resource, &stored, &fates);
        }
        let mut options = DeleteOptions::default();
        let mut stored = stored;
        if fates.contains(&Fate::Waiting) && self.state.is_owner(&stored.uid) {
            stored = self.break_circle(&resource, stored)?;
            options.propagation = Some(Propagation::Foreground);
        }
        self.delete_one(&resource, &stored, &options).map(drop)
    }

    fn fate(&self, resource: &Resource, dependent: &Stored, owner: &Owner) -> Fate {
        let Some(kind) = self.owner_kind(owner) else { return Fate::Unknown };
        if kind.namespaced && !resource.namespaced {
            return Fate::Unknown;
        }
        match self.owner(&dependent.key, owner) {
            Some((_, stored)) if stored.waits_for_dependents => Fate::Waiting,
            Some(_) => Fate::Alive,
            None => Fate::Gone,
        }
    }

    fn owner_kind(&self, owner: &Owner) -> Option<Arc<Resource>> {
        let (group, version) = owner.api_version.split_once('/').unwrap_or(("", &owner.api_version));
        let kind = self.state.resources.find_kind(group, &owner.kind)?;
        kind.version(version).is_some().then(|| kind.clone())
    }

    /// The owner that a reference names, if it still exists. It is looked up in the dependent's namespace.
    fn owner(&self, dependent: &Key, owner: &Owner) -> Option<(Arc<Resource>, Arc<Stored>)> {
        let resource = self.owner_kind(owner)?;
        let key = Self::key(&resource, &dependent.namespace, &owner.name);
        let stored = self.state.shelf(&resource).ok()?.get(&key)?.clone();
        (stored.uid == owner.uid).then_some((resource, stored))
    }

    fn keep_living_owners(
        &mut self,
        resource: &Resource,
        stored: &Arc<Stored>,
        fates: &[Fate],
    ) -> Result<(), Refusal> {
        let mut object = stored.value();
        let references = object["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
        let kept = references.into_iter().zip(fates).filter(|(_, fate)| **fate == Fate::Alive);
        object["metadata"]["ownerReferences"] = kept.map(|(reference, _)| reference).collect();
        self.note_owners(stored);
        self.rewrite(resource, stored, object)
    }

    /// Two objects that own and wait for each other would wait for ever, so the second one releases the first.
    fn break_circle(&mut self, resource: &Resource, stored: Arc<Stored>) -> Result<Arc<Stored>, Refusal> {
        let dependents = self.state.owned_by(&stored.uid);
        let is_circle = dependents
            .iter()
            .any(|(id, key)| self.find(id, key).is_some_and(|(_, dependent)| dependent.waits_for_dependents));
        if !is_circle {
            return Ok(stored);
        }
        let mut object = stored.value();
        for reference in object["metadata"]["ownerReferences"].as_array_mut().into_iter().flatten() {
            reference["blockOwnerDeletion"] = false.into();
        }
        self.note_owners(&stored);
        self.commit(resource, object, false)
    }

    fn orphan_dependents(&mut self, owner_uid: &str) -> Result<(), Refusal> {
        for (id, key) in self.state.owned_by(owner_uid) {
            let Some((resource, stored)) = self.find(&id, &key) else { continue };
            let mut object = stored.value();
            if let Some(owners) = object["metadata"]["ownerReferences"].as_array_mut() {
                owners.retain(|owner| owner["uid"] != owner_uid);
            }
            self.rewrite(&resource, &stored, object)?;
        }
        Ok(())
    }

    /// Removes an owner that is deleted in the foreground, once nothing blocks it.
    fn release(&mut self, id: &ResourceId, key: &Key) -> Result<(), Refusal> {
        let Some((resource, owner)) = self.find(id, key) else { return Ok(()) };
        if !owner.waits_for_dependents {
            return Ok(());
        }
        let blocks = |dependent: &Stored| {
            dependent.owners.iter().any(|reference| reference.uid == owner.uid && reference.blocks)
        };
        let dependents = self.state.owned_by(&owner.uid);
        let is_blocked =
            dependents.iter().any(|(id, key)| self.find(id, key).is_some_and(|(_, found)| blocks(&found)));
        if is_blocked { Ok(()) } else { self.drop_finalizer(&resource, &owner, FOREGROUND) }
    }

    fn drop_finalizer(
        &mut self,
        resource: &Resource,
        stored: &Arc<Stored>,
        name: &str,
    ) -> Result<(), Refusal> {
        let mut object = stored.value();
        if let Some(finalizers) = object["metadata"]["finalizers"].as_array_mut() {
            finalizers.retain(|finalizer| finalizer != name);
        }
        self.rewrite(resource, stored, object)
    }

    /// Deletes everything in a namespace that is being deleted.
    fn empty_namespace(&mut self, namespace: &str) -> Result<(), Refusal> {
        for resource in self.namespaced_kinds() {
            let inside = self.state.shelf(&resource)?.present().objects(Some(namespace), None);
            let inside: Vec<Arc<Stored>> = inside.cloned().collect();
            self.delete_all(&resource, &inside)?;
        }
        self.finish_namespace(namespace)
    }

    fn delete_all(&mut self, resource: &Resource, objects: &[Arc<Stored>]) -> Result<(), Refusal> {
        let options =
            DeleteOptions { propagation: Some(Propagation::Background), ..DeleteOptions::default() };
        objects.iter().try_for_each(|stored| self.delete_one(resource, stored, &options).map(drop))
    }

    /// Removes a namespace that is being deleted and empty.
    fn finish_namespace(&mut self, namespace: &str) -> Result<(), Refusal> {
        let key = Key { namespace: String::new(), name: namespace.to_owned() };
        let Some((resource, stored)) = self.find(&(String::new(), "namespaces".to_owned()), &key) else {
            return Ok(());
        };
        if !stored.is_terminating {
            return Ok(());
        }
        for resource in self.namespaced_kinds() {
            if self.state.shelf(&resource)?.present().objects(Some(namespace), None).next().is_some() {
                return Ok(());
            }
        }
        let mut object = stored.value();
        let Some(spec) = object["spec"].as_object_mut() else { return Ok(()) };
        if spec.remove("finalizers").is_none() {
            return Ok(());
        }
        self.rewrite(&resource, &stored, object)
    }

    fn namespaced_kinds(&self) -> Vec<Arc<Resource>> {
        self.state.resources.iter().filter(|resource| resource.namespaced).cloned().collect()
    }

    /// Deletes every object of a kind whose definition is being deleted.
    fn empty_kind(&mut self, kind: &Resource) -> Result<(), Refusal> {
        let objects: Vec<Arc<Stored>> =
            self.state.shelf(kind)?.present().objects(None, None).cloned().collect();
        self.delete_all(kind, &objects)?;
        self.finish_kind(kind)
    }

    /// Removes a definition that is being deleted and has no objects left.
    fn finish_kind(&mut self, kind: &Resource) -> Result<(), Refusal> {
        let name = format!("{}.{}", kind.plural, kind.group);
        let key = Key { namespace: String::new(), name };
        let Some((resource, stored)) = self.find(&definition::id(), &key) else { return Ok(()) };
        if !stored.is_terminating || !self.state.shelf(kind)?.is_empty() {
            return Ok(());
        }
        self.drop_finalizer(&resource, &stored, definition::CLEANUP)
    }
}

fn is_namespace(resource: &Resource) -> bool {
    resource.group.is_empty() && resource.plural == "namespaces"
}
