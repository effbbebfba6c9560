//! What follows from a deletion: owned objects, namespaces and definitions. A real cluster does this a moment later,
//! in controllers; here it is part of the same step, so nothing has to run while the server is idle.

use std::sync::Arc;

use serde_json::{Value, json};

use super::delete::{FOREGROUND, ORPHAN};
use super::{DeleteOptions, Writer, definition, is_terminating};
use crate::refusal::Refusal;
use crate::resource::Resource;
use crate::state::ResourceId;
use crate::store::{Key, Stored};

impl Writer<'_> {
    /// After an object was marked: its dependents, or its contents, go first.
    pub(super) fn follow_mark(&mut self, resource: &Resource, marked: &Arc<Stored>) -> Result<(), Refusal> {
        let finalizers = marked.value()["metadata"]["finalizers"].clone();
        let has = |name: &str| finalizers.as_array().is_some_and(|list| list.iter().any(|one| one == name));
        if has(ORPHAN) {
            self.orphan_dependents(&marked.uid)?;
            self.drop_finalizer(resource, &marked.key, ORPHAN)?;
        }
        if has(FOREGROUND) {
            for (id, key) in self.state.owned_by(&marked.uid) {
                self.delete_dependent(&id, &key, &marked.uid)?;
            }
            self.release_owner(resource, &marked.key)?;
        }
        if resource.group.is_empty() && resource.plural == "namespaces" {
            self.empty_namespace(&marked.key.name)?;
        }
        Ok(())
    }

    /// After an object is gone: what it owned goes, what waited for it may go, and a namespace may be empty.
    pub(super) fn follow_removal(&mut self, resource: &Resource, last: &Arc<Stored>) -> Result<(), Refusal> {
        definition::forget(self.state, resource, last);
        for (id, key) in self.state.owned_by(&last.uid) {
            self.delete_dependent(&id, &key, &last.uid)?;
        }
        for owner in &last.owners {
            self.release_owner_by_uid(&last.value(), owner)?;
        }
        if !last.key.namespace.is_empty() {
            self.finish_namespace(&last.key.namespace)?;
        }
        Ok(())
    }

    /// An object whose owners are all gone goes too, also if it came after them.
    pub(super) fn collect_orphan(
        &mut self,
        resource: &Resource,
        stored: &Arc<Stored>,
    ) -> Result<(), Refusal> {
        if stored.owners.is_empty() {
            return Ok(());
        }
        let object = stored.value();
        let owners = object["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
        let is_alive = |owner: &Value| self.owner(&object, owner).is_some();
        if owners.iter().any(is_alive) || is_terminating(&object) {
            return Ok(());
        }
        self.delete(resource, stored, &DeleteOptions::default()).map(drop)
    }

    /// Deletes an object because of one owner, unless another one is alive: then it only loses the reference.
    fn delete_dependent(&mut self, id: &ResourceId, key: &Key, owner_uid: &str) -> Result<(), Refusal> {
        let Some(resource) = self.state.resources.find(&id.0, &id.1).cloned() else { return Ok(()) };
        let Some(stored) = self.state.shelf(&resource)?.get(key).cloned() else { return Ok(()) };
        let mut object = stored.value();
        let owners = object["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
        let others: Vec<Value> = owners.into_iter().filter(|owner| owner["uid"] != owner_uid).collect();
        if others.iter().any(|owner| self.owner(&object, owner).is_some()) {
            object["metadata"]["ownerReferences"] = json!(others);
            return self.rewrite(&resource, object);
        }
        self.delete(&resource, &stored, &DeleteOptions::default()).map(drop)
    }

    fn orphan_dependents(&mut self, owner_uid: &str) -> Result<(), Refusal> {
        for (id, key) in self.state.owned_by(owner_uid) {
            let Some(resource) = self.state.resources.find(&id.0, &id.1).cloned() else { continue };
            let Some(stored) = self.state.shelf(&resource)?.get(&key).cloned() else { continue };
            let mut object = stored.value();
            if let Some(owners) = object["metadata"]["ownerReferences"].as_array_mut() {
                owners.retain(|owner| owner["uid"] != owner_uid);
            }
            super::tidy_metadata(&mut object);
            self.rewrite(&resource, object)?;
        }
        Ok(())
    }

    /// The living owner that a reference names.
    fn owner(&self, dependent: &Value, reference: &Value) -> Option<(Arc<Resource>, Arc<Stored>)> {
        let api_version = reference["apiVersion"].as_str()?;
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        let resource = self.state.resources.find_kind(group, reference["kind"].as_str()?)?.clone();
        let namespace = dependent["metadata"]["namespace"].as_str().unwrap_or_default();
        let key = Self::key(&resource, namespace, reference["name"].as_str()?);
        let stored = self.state.shelf(&resource).ok()?.get(&key)?.clone();
        (reference["uid"] == stored.uid.as_str()).then_some((resource, stored))
    }

    fn release_owner_by_uid(&mut self, dependent: &Value, owner_uid: &str) -> Result<(), Refusal> {
        let references = dependent["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
        let Some(reference) = references.iter().find(|owner| owner["uid"] == owner_uid) else {
            return Ok(());
        };
        match self.owner(dependent, reference) {
            Some((resource, owner)) => self.release_owner(&resource, &owner.key),
            None => Ok(()),
        }
    }

    /// Lets an owner go that waits in the foreground, once nothing that blocks it is left.
    fn release_owner(&mut self, resource: &Resource, key: &Key) -> Result<(), Refusal> {
        let Some(owner) = self.state.shelf(resource)?.get(key).cloned() else { return Ok(()) };
        let is_blocked = self.state.owned_by(&owner.uid).iter().any(|(id, key)| {
            let resource = self.state.resources.find(&id.0, &id.1);
            let dependent = resource.and_then(|resource| self.state.shelf(resource).ok()?.get(key).cloned());
            dependent.is_some_and(|dependent| {
                let object = dependent.value();
                let references = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
                let mut ours = references.filter(|reference| reference["uid"] == owner.uid.as_str());
                ours.any(|reference| reference["blockOwnerDeletion"] == true)
            })
        });
        if is_blocked { Ok(()) } else { self.drop_finalizer(resource, key, FOREGROUND) }
    }

    fn drop_finalizer(&mut self, resource: &Resource, key: &Key, name: &str) -> Result<(), Refusal> {
        let Some(stored) = self.state.shelf(resource)?.get(key).cloned() else { return Ok(()) };
        let mut object = stored.value();
        let Some(finalizers) = object["metadata"]["finalizers"].as_array_mut() else { return Ok(()) };
        let before = finalizers.len();
        finalizers.retain(|finalizer| finalizer != name);
        if finalizers.len() == before {
            return Ok(());
        }
        super::tidy_metadata(&mut object);
        self.rewrite(resource, object)
    }

    /// Deletes everything in a namespace that is going.
    fn empty_namespace(&mut self, namespace: &str) -> Result<(), Refusal> {
        let namespaced: Vec<Arc<Resource>> =
            self.state.resources.iter().filter(|resource| resource.namespaced).cloned().collect();
        for resource in namespaced {
            let inside: Vec<Arc<Stored>> = self
                .state
                .shelf(&resource)?
                .objects()
                .filter(|one| one.key.namespace == namespace)
                .cloned()
                .collect();
            for stored in inside {
                // A deletion may already have taken others with it.
                if self.state.shelf(&resource)?.get(&stored.key).is_some() {
                    let options = DeleteOptions { grace_period_seconds: Some(0), ..DeleteOptions::default() };
                    self.delete(&resource, &stored, &options)?;
                }
            }
        }
        self.finish_namespace(namespace)
    }

    /// Removes a namespace that is going and empty.
    fn finish_namespace(&mut self, namespace: &str) -> Result<(), Refusal> {
        let Some(resource) = self.state.resources.find("", "namespaces").cloned() else { return Ok(()) };
        let key = Self::key(&resource, "", namespace);
        let Some(stored) = self.state.shelf(&resource)?.get(&key).cloned() else { return Ok(()) };
        let mut object = stored.value();
        if !is_terminating(&object) {
            return Ok(());
        }
        let namespaced: Vec<Arc<Resource>> =
            self.state.resources.iter().filter(|resource| resource.namespaced).cloned().collect();
        for resource in namespaced {
            if self.state.shelf(&resource)?.objects().any(|one| one.key.namespace == namespace) {
                return Ok(());
            }
        }
        if let Some(spec) = object["spec"].as_object_mut() {
            spec.remove("finalizers");
        }
        self.rewrite(&resource, object)
    }
}
