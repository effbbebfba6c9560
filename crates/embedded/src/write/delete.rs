//! Deletion: at once, or when the finalizers are gone.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::collect::Follow;
use super::{Writer, built_in, has_finalizers, is_terminating};
use crate::refusal::Refusal;
use crate::resource::Resource;
use crate::state::id_of;
use crate::store::{FOREGROUND, Stored};

/// The finalizer of an owner whose dependents are left behind.
pub(super) const ORPHAN: &str = "orphan";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// What happens to dependents. Without it, the finalizers and the kind decide.
    pub propagation: Option<Propagation>,
    /// How many seconds a pod may take to end, if given.
    pub grace_period_seconds: Option<u64>,
    /// The UID that the object must have.
    pub uid: Option<String>,
    /// The version that the object must have.
    pub resource_version: Option<String>,
    pub dry_run: bool,
}

/// What happens to the dependents of a deleted object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// They are deleted after it.
    Background,
    /// They are deleted before it.
    Foreground,
    /// They stay.
    Orphan,
}

#[derive(Debug)]
pub enum Deleted {
    Gone(Arc<Stored>),
    /// The object is marked as deleted and waits.
    Waiting(Arc<Stored>),
}

impl Writer<'_> {
    /// Deletes an object, or marks it if something holds it, with everything that follows.
    pub fn delete(
        &mut self,
        resource: &Resource,
        old: &Arc<Stored>,
        options: &DeleteOptions,
    ) -> Result<Deleted, Refusal> {
        check_preconditions(resource, old, options)?;
        if built_in::is_permanent(resource, &old.key.name) {
            let why = "this namespace may not be deleted";
            return Err(Refusal::forbidden(resource, &old.key.name, why));
        }
        let deleted = self.delete_one(resource, old, options)?;
        self.settle()?;
        Ok(deleted)
    }

    /// Deletes an object and leaves what follows in the queue.
    pub(super) fn delete_one(
        &mut self,
        resource: &Resource,
        old: &Arc<Stored>,
        options: &DeleteOptions,
    ) -> Result<Deleted, Refusal> {
        let before = old.value();
        let mut object = before.clone();
        if is_terminating(&object) {
            self.shorten_grace(resource, &mut object, options);
        } else {
            self.mark(resource, &mut object, options);
        }
        object["metadata"]["finalizers"] = finalizers(resource, &object, options).into();
        super::tidy_metadata(&mut object);
        let is_held = has_finalizers(&object) || built_in::is_held(resource, &object);
        // An object that is removed at once is never marked; only a pod always is.
        if !is_held && !built_in::is_marked_before_removal(resource) {
            return Ok(Deleted::Gone(self.bury(resource, old, options.dry_run)?));
        }
        let marked = if object == before {
            old.clone()
        } else if options.dry_run {
            Arc::new(Stored::new(&object, old.revision, &resource.selectable))
        } else {
            let marked = self.commit(resource, object, false)?;
            self.todo.push_back(Follow::Marked(id_of(resource), marked.key.clone()));
            marked
        };
        if is_held {
            return Ok(Deleted::Waiting(marked));
        }
        Ok(Deleted::Gone(self.bury(resource, &marked, options.dry_run)?))
    }

    fn mark(&self, resource: &Resource, object: &mut Value, options: &DeleteOptions) {
        let grace = built_in::grace_period(resource, object, options.grace_period_seconds);
        self.set_end(object, grace);
        built_in::mark(resource, object);
        if resource.has_generation {
            let generation = object["metadata"]["generation"].as_i64().unwrap_or(0) + 1;
            object["metadata"]["generation"] = generation.into();
        }
    }

    /// A second deletion may end a pod sooner, but never later.
    fn shorten_grace(&self, resource: &Resource, object: &mut Value, options: &DeleteOptions) {
        let left = object["metadata"]["deletionGracePeriodSeconds"].as_u64().unwrap_or(0);
        let asked = built_in::grace_period(resource, object, options.grace_period_seconds);
        if options.grace_period_seconds.is_some() && asked < left {
            self.set_end(object, asked);
        }
    }

    fn set_end(&self, object: &mut Value, grace: u64) {
        let end = self.now + Duration::from_secs(grace);
        object["metadata"]["deletionTimestamp"] = end.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into();
        object["metadata"]["deletionGracePeriodSeconds"] = grace.into();
    }

    /// Removes an object from the store. Watchers see its last stored state with the revision of the removal.
    pub(super) fn bury(
        &mut self,
        resource: &Resource,
        old: &Arc<Stored>,
        dry_run: bool,
    ) -> Result<Arc<Stored>, Refusal> {
        if dry_run {
            return Ok(old.clone());
        }
        let last = Arc::new(old.at_revision(self.state.next_revision()));
        self.state.serialised += 1;
        self.state.remove(resource, last.clone())?;
        self.todo.push_back(Follow::Removed(id_of(resource), last.clone()));
        Ok(last)
    }

    /// Updates an object for the server itself.
    pub(super) fn rewrite(
        &mut self,
        resource: &Resource,
        old: &Arc<Stored>,
        mut object: Value,
    ) -> Result<(), Refusal> {
        super::tidy_metadata(&mut object);
        if is_terminating(&object) && !has_finalizers(&object) && !built_in::is_held(resource, &object) {
            self.bury(resource, old, false)?;
        } else {
            self.commit(resource, object, false)?;
        }
        Ok(())
    }
}

/// The finalizers of an object that is being deleted: its own, and one that says what happens to its dependents.
fn finalizers(resource: &Resource, object: &Value, options: &DeleteOptions) -> Vec<Value> {
    let before = object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    // The client's choice comes first, then the object's own, then the default of its kind.
    let own = before.iter().find_map(|finalizer| match finalizer.as_str() {
        Some(FOREGROUND) => Some(Propagation::Foreground),
        Some(ORPHAN) => Some(Propagation::Orphan),
        _ => None,
    });
    let propagation = options.propagation.or(own).unwrap_or(built_in::usual_propagation(resource));
    let wanted = match propagation {
        Propagation::Background => None,
        Propagation::Foreground => Some(json!(FOREGROUND)),
        Propagation::Orphan => Some(json!(ORPHAN)),
    };
    if wanted.as_ref().is_some_and(|wanted| before.contains(wanted)) && own == Some(propagation) {
        return before;
    }
    let kept = before.into_iter().filter(|finalizer| finalizer != FOREGROUND && finalizer != ORPHAN);
    kept.chain(wanted).collect()
}

fn check_preconditions(resource: &Resource, old: &Stored, options: &DeleteOptions) -> Result<(), Refusal> {
    let name = &old.key.name;
    if let Some(uid) = options.uid.as_ref().filter(|uid| **uid != old.uid) {
        let why = format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been \
             deleted and then recreated",
            old.uid
        );
        return Err(Refusal::other_object(resource, name, why));
    }
    let version = options.resource_version.as_ref();
    if let Some(version) = version.filter(|version| **version != old.revision.to_string()) {
        let why = format!(
            "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record ({}). \
             The object might have been modified",
            old.revision
        );
        return Err(Refusal::other_object(resource, name, why));
    }
    Ok(())
}
