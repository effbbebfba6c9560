//! Everything that changes the store: create, update, delete. Each is one step under the lock: it reads, validates, and
//! stores either a whole object or nothing.

mod admission;
mod built_in;
mod collect;
mod create;
mod definition;
mod delete;
mod fixed;
mod metadata;
mod update;

use std::collections::VecDeque;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use crate::refusal::Refusal;
use crate::resource::Resource;
use crate::state::State;
use crate::store::{Key, Stored};

pub use built_in::is_made_by_replacing;
pub use delete::{DeleteOptions, Deleted, Propagation};
pub use update::Part;

/// A write in progress.
pub struct Writer<'a> {
    state: &'a mut State,
    now: Timestamp,
    /// What still has to be looked at because of what was written.
    todo: VecDeque<collect::Follow>,
}

/// The result of a write.
#[derive(Debug)]
pub struct Written {
    /// The stored object, or what a dry run would have stored.
    pub object: Arc<Stored>,
    /// Warnings for the client.
    pub warnings: Vec<String>,
}

/// How a client wants its write.
#[derive(Clone, Copy, Debug)]
pub struct Manner<'a> {
    /// The version of the kind that the client uses.
    pub version: &'a str,
    pub dry_run: bool,
    /// What happens to unknown fields.
    pub field_validation: crate::request::FieldValidation,
    /// Complaints from reading the body, such as fields that are given twice.
    pub complaints: &'a [String],
    /// The text of the patch, if the write is one.
    pub patch: Option<&'a str>,
}

impl<'a> Writer<'a> {
    pub fn new(state: &'a mut State, now: Timestamp) -> Self {
        Self { state, now, todo: VecDeque::new() }
    }

    /// The current time as it is written into objects.
    fn stamp(&self) -> Value {
        Value::String(self.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
    }

    /// Stores an object with the next revision. A dry run only returns it.
    fn commit(
        &mut self,
        resource: &Resource,
        mut object: Value,
        dry_run: bool,
    ) -> Result<Arc<Stored>, Refusal> {
        let revision = if dry_run { self.state.revision() } else { self.state.revision() + 1 };
        if !dry_run {
            object["metadata"]["resourceVersion"] = revision.to_string().into();
        }
        let stored = Arc::new(Stored::new(&object, revision, &resource.selectable));
        self.state.serialised += 1;
        let limit = self.state.options.max_object_bytes;
        if stored.body.len() > limit {
            return Err(Refusal::unexpected("etcdserver: request is too large"));
        }
        if !dry_run {
            self.state.next_revision();
            self.state.put(resource, stored.clone())?;
        }
        Ok(stored)
    }

    fn key(resource: &Resource, namespace: &str, name: &str) -> Key {
        let namespace = if resource.namespaced { namespace.to_owned() } else { String::new() };
        Key { namespace, name: name.to_owned() }
    }
}

/// Whether an object is being deleted.
fn is_terminating(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

/// Whether finalizers keep an object from being removed.
fn has_finalizers(object: &Value) -> bool {
    let held = |list: &Value| list.as_array().is_some_and(|list| !list.is_empty());
    held(&object["metadata"]["finalizers"])
}

/// Removes empty fields of metadata, so that objects look like those of a real server.
fn tidy_metadata(object: &mut Value) {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|name, value| match value {
            Value::Null => false,
            Value::Array(list) => !list.is_empty(),
            Value::Object(map) => !map.is_empty(),
            Value::String(text) => !text.is_empty() || name == "name",
            _ => true,
        });
        metadata.remove("managedFields");
        metadata.remove("selfLink");
    }
}
