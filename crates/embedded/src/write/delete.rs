//! Deletion: at once, or marked until finalizers are gone.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Writer, built_in, has_finalizers, is_terminating};
use crate::refusal::Refusal;
use crate::resource::Resource;
use crate::store::Stored;

/// Finalizer of an owner that waits for what it owns.
pub(super) const FOREGROUND: &str = "foregroundDeletion";
/// Finalizer of an owner that leaves what it owns behind.
pub(super) const ORPHAN: &str = "orphan";

/// How a client wants an object deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// What happens with what the object owns.
    pub propagation: Propagation,
    /// Seconds that a pod may take to end, if given.
    pub grace_period_seconds: Option<u64>,
    /// The UID that the object must have.
    pub uid: Option<String>,
    /// The version that the object must have.
    pub resource_version: Option<String>,
    /// Whether anything is deleted.
    pub dry_run: bool,
}

/// What happens with what a deleted object owns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Propagation {
    /// It is deleted afterwards.
    #[default]
    Background,
    /// It is deleted first.
    Foreground,
    /// It stays.
    Orphan,
}

/// How a deletion ended.
#[derive(Debug)]
pub enum Deleted {
    /// The object is gone.
    Gone(Arc<Stored>),
    /// The object is marked and waits.
    Waiting(Arc<Stored>),
}

impl Writer<'_> {
    /// Deletes an object, or marks it if something holds it.
    pub fn delete(
        &mut self,
        resource: &Resource,
        old: &Arc<Stored>,
        options: &DeleteOptions,
    ) -> Result<Deleted, Refusal> {
        check_preconditions(resource, old, options)?;
        let before = old.value();
        let mut object = before.clone();
        let is_new = !is_terminating(&object);
        if is_new {
            self.mark(resource, &mut object, options);
        } else {
            built_in::shorten_grace(resource, &mut object, options.grace_period_seconds);
        }
        if has_finalizers(&object) || built_in::is_held(resource, &object) {
            let marked =
                if object == before { old.clone() } else { self.commit(resource, object, options.dry_run)? };
            if is_new && !options.dry_run {
                self.follow_mark(resource, &marked)?;
                // What follows may already have let the object go.
                let now = self.state.shelf(resource)?.get(&marked.key).cloned();
                return Ok(now.map_or(Deleted::Gone(marked), Deleted::Waiting));
            }
            return Ok(Deleted::Waiting(marked));
        }
        // An object that goes at once goes as it was, without a mark.
        Ok(Deleted::Gone(self.bury(resource, before, options.dry_run)?))
    }

    fn mark(&self, resource: &Resource, object: &mut Value, options: &DeleteOptions) {
        let grace = built_in::grace_period(resource, object, options.grace_period_seconds);
        let metadata = &mut object["metadata"];
        let later = self.now + std::time::Duration::from_secs(grace);
        metadata["deletionTimestamp"] = later.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into();
        metadata["deletionGracePeriodSeconds"] = grace.into();
        let mut finalizers: Vec<Value> = metadata["finalizers"].as_array().cloned().unwrap_or_default();
        finalizers.retain(|finalizer| finalizer != FOREGROUND && finalizer != ORPHAN);
        match options.propagation {
            Propagation::Background => {}
            Propagation::Foreground => finalizers.push(FOREGROUND.into()),
            Propagation::Orphan => finalizers.push(ORPHAN.into()),
        }
        metadata["finalizers"] = json!(finalizers);
        super::tidy_metadata(object);
        built_in::mark(resource, object);
        if resource.has_generation {
            let generation = object["metadata"]["generation"].as_i64().unwrap_or(0) + 1;
            object["metadata"]["generation"] = generation.into();
        }
    }

    /// Takes an object out of the store, and what depends on it.
    pub(super) fn bury(
        &mut self,
        resource: &Resource,
        mut object: Value,
        dry_run: bool,
    ) -> Result<Arc<Stored>, Refusal> {
        let revision = if dry_run { self.state.revision() } else { self.state.next_revision() };
        object["metadata"]["resourceVersion"] = revision.to_string().into();
        let last = Arc::new(Stored::new(object, revision, &resource.selectable));
        self.state.serialised += 1;
        if !dry_run {
            self.state.remove(resource, last.clone())?;
            self.follow_removal(resource, &last)?;
        }
        Ok(last)
    }

    /// Updates an object on the server's own account.
    pub(super) fn rewrite(&mut self, resource: &Resource, object: Value) -> Result<(), Refusal> {
        if is_terminating(&object) && !has_finalizers(&object) && !built_in::is_held(resource, &object) {
            self.bury(resource, object, false)?;
        } else {
            self.commit(resource, object, false)?;
        }
        Ok(())
    }
}

fn check_preconditions(resource: &Resource, old: &Stored, options: &DeleteOptions) -> Result<(), Refusal> {
    let name = &old.key.name;
    if let Some(uid) = options.uid.as_ref().filter(|uid| **uid != old.uid) {
        let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {}", old.uid);
        return Err(Refusal::conflict(resource, name, why));
    }
    if let Some(version) =
        options.resource_version.as_ref().filter(|version| **version != old.revision.to_string())
    {
        let why = format!(
            "Precondition failed: ResourceVersion in precondition: {version}, ResourceVersion in object meta: {}",
            old.revision
        );
        return Err(Refusal::conflict(resource, name, why));
    }
    Ok(())
}
