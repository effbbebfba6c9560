//! Updates of an object, or of its status alone.

use std::sync::Arc;

use serde_json::Value;

use super::{
    Manner, Writer, Written, admission, built_in, definition, has_finalizers, is_terminating, metadata,
    tidy_metadata,
};
use crate::refusal::{Cause, Refusal};
use crate::resource::Resource;
use crate::store::Stored;

/// The part of an object that a write is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Everything except the status.
    Main,
    /// The status alone.
    Status,
}

/// The fields of metadata that only the server writes.
const SERVER_OWNED: [&str; 6] = [
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "namespace",
];

impl Writer<'_> {
    /// Replaces an object by what a client sent, or by the result of a patch. The old object comes both as stored and
    /// as a value, because a patch has parsed it already.
    pub fn update(
        &mut self,
        resource: &Resource,
        (old, before): (&Arc<Stored>, &Value),
        part: Part,
        mut new: Value,
        manner: &Manner<'_>,
    ) -> Result<Written, Refusal> {
        let mut warnings = admission::read(resource, manner, &mut new)?;
        check_preconditions(resource, old, &new, manner.patch.is_some())?;
        check_unchanged(resource, before, &new)?;
        keep_what_is_not_the_clients(resource, part, before, &mut new);
        check_new_finalizers(resource, before, &new)?;
        warnings.extend(admission::judge(resource, manner, &mut new, Some(before))?);
        count_generation(resource, part, before, &mut new);
        if is_same(before, &new) {
            return Ok(Written { object: old.clone(), warnings });
        }
        let changed = definition::prepare(resource, &mut new, &self.stamp())?;
        if is_terminating(&new) && !has_finalizers(&new) && !super::built_in::is_held(resource, &new) {
            self.bury(resource, old, manner.dry_run)?;
            self.settle()?;
            // The client gets back what it wrote, although that is not stored.
            new["metadata"]["resourceVersion"] = old.revision.to_string().into();
            let written = Stored::new(&new, old.revision, &resource.selectable);
            return Ok(Written { object: Arc::new(written), warnings });
        }
        new["metadata"]["resourceVersion"] = old.revision.to_string().into();
        let stored = self.commit(resource, new, manner.dry_run)?;
        if let (Some(changed), false) = (changed, manner.dry_run) {
            self.state.add_resource(changed);
        }
        if !manner.dry_run {
            self.follow_write(resource, Some(old), &stored)?;
        }
        Ok(Written { object: stored, warnings })
    }
}

fn check_preconditions(
    resource: &Resource,
    old: &Stored,
    new: &Value,
    is_patch: bool,
) -> Result<(), Refusal> {
    let given = |field: &str| new["metadata"][field].as_str().filter(|text| !text.is_empty());
    // In a patch, the UID is a field like any other.
    if let Some(uid) = given("uid").filter(|uid| *uid != old.uid && !is_patch) {
        let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {}", old.uid);
        return Err(Refusal::conflict(resource, &old.key.name, why));
    }
    match given("resourceVersion") {
        Some(version) if version == old.revision.to_string() => Ok(()),
        Some(version) if version.parse::<u64>().is_err() => {
            Err(Refusal::unexpected(format!("strconv.ParseUint: parsing {version:?}: invalid syntax")))
        }
        Some(_) => {
            let why =
                "the object has been modified; please apply your changes to the latest version and try again";
            Err(Refusal::conflict(resource, &old.key.name, why))
        }
        None if built_in::needs_version(resource) => {
            let cause = Cause {
                reason: "FieldValueInvalid".to_owned(),
                message: "Invalid value: 0: must be specified for an update".to_owned(),
                field: "metadata.resourceVersion".to_owned(),
            };
            // A real server confuses the resource with the kind here.
            let resource = Resource { kind: resource.plural.clone(), ..resource.clone() };
            Err(Refusal::invalid(&resource, &old.key.name, &[cause]))
        }
        None => Ok(()),
    }
}

fn check_unchanged(resource: &Resource, before: &Value, new: &Value) -> Result<(), Refusal> {
    let causes = metadata::check_unchanged(before, new);
    if causes.is_empty() {
        return Ok(());
    }
    Err(Refusal::invalid(resource, before["metadata"]["name"].as_str().unwrap_or_default(), &causes))
}

fn keep_what_is_not_the_clients(resource: &Resource, part: Part, before: &Value, new: &mut Value) {
    match part {
        Part::Status => {
            let metadata = before["metadata"].clone();
            let given = std::mem::replace(&mut new["metadata"], metadata);
            for field in built_in::written_with_status(resource) {
                put(&mut new["metadata"], field, given.get(*field).cloned());
            }
            restore_all_but_status(before, new);
        }
        Part::Main => {
            for field in SERVER_OWNED {
                let kept = before["metadata"].get(field).cloned();
                put(&mut new["metadata"], field, kept);
            }
            new["metadata"]["name"] = before["metadata"]["name"].clone();
            if resource.has_status {
                put(new, "status", before.get("status").cloned());
            }
        }
    }
    tidy_metadata(new);
}

/// Restores what a write to the status must not change. Almost always nothing did, and comparing costs less than
/// copying.
fn restore_all_but_status(before: &Value, new: &mut Value) {
    let is_kept = |name: &str| !matches!(name, "apiVersion" | "kind" | "metadata" | "status");
    let Some(fields) = new.as_object_mut() else { return };
    if fields.keys().any(|name| is_kept(name) && before.get(name).is_none()) {
        fields.retain(|name, _| !is_kept(name) || before.get(name).is_some());
    }
    for (name, value) in before.as_object().into_iter().flatten().filter(|(name, _)| is_kept(name)) {
        if fields.get(name) != Some(value) {
            fields.insert(name.clone(), value.clone());
        }
    }
}

fn put(object: &mut Value, field: &str, value: Option<Value>) {
    let Some(fields) = object.as_object_mut() else { return };
    match value {
        Some(value) => fields.insert(field.to_owned(), value),
        None => fields.remove(field),
    };
}

/// An object that is being deleted accepts no new finalizers.
fn check_new_finalizers(resource: &Resource, before: &Value, new: &Value) -> Result<(), Refusal> {
    if !is_terminating(before) {
        return Ok(());
    }
    let had = before["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    let has = new["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    let added = has.iter().filter(|finalizer| !had.contains(finalizer));
    let added: Vec<String> = added.map(ToString::to_string).collect();
    if added.is_empty() {
        return Ok(());
    }
    let cause = Cause {
        reason: "FieldValueForbidden".to_owned(),
        message: format!(
            "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
            added.join(", ")
        ),
        field: "metadata.finalizers".to_owned(),
    };
    Err(Refusal::invalid(resource, before["metadata"]["name"].as_str().unwrap_or_default(), &[cause]))
}

/// The generation counts changes of everything except metadata and status.
fn count_generation(resource: &Resource, part: Part, before: &Value, new: &mut Value) {
    if !resource.has_generation || part == Part::Status {
        return;
    }
    let is_counted = |name: &str| match name {
        "apiVersion" | "kind" | "metadata" => false,
        "status" => !resource.has_status,
        _ => true,
    };
    if !has_same_fields(before, new, is_counted) {
        let generation = before["metadata"]["generation"].as_i64().unwrap_or(0) + 1;
        new["metadata"]["generation"] = generation.into();
    }
}

/// Whether a write changes nothing, so that it makes no revision and no event.
fn is_same(before: &Value, new: &Value) -> bool {
    let is_content = |name: &str| !matches!(name, "apiVersion" | "kind" | "metadata");
    has_same_fields(before, new, is_content)
        && has_same_fields(&before["metadata"], &new["metadata"], |name| name != "resourceVersion")
}

/// Whether two objects agree in all fields that matter.
fn has_same_fields(left: &Value, right: &Value, matters: impl Fn(&str) -> bool) -> bool {
    let (Some(left), Some(right)) = (left.as_object(), right.as_object()) else { return left == right };
    let left = left.iter().filter(|(name, _)| matters(name));
    let right = right.iter().filter(|(name, _)| matters(name));
    left.eq(right)
}
