//! Creation.

use serde_json::{Value, json};

use super::{Manner, Writer, Written, admission, built_in, definition, tidy_metadata};
use crate::refusal::{Cause, Refusal};
use crate::resource::Resource;

/// How many characters of `generateName` are kept.
const KEPT_OF_GENERATE_NAME: usize = 58;
/// How many generated names are tried before the server gives up.
const NAME_TRIES: usize = 8;

impl Writer<'_> {
    /// Creates an object in a namespace, which is empty for cluster-scoped kinds.
    pub fn create(
        &mut self,
        resource: &Resource,
        namespace: &str,
        mut object: Value,
        manner: &Manner<'_>,
    ) -> Result<Written, Refusal> {
        let mut warnings = admission::read(resource, manner, &mut object)?;
        self.check_namespace(resource, namespace, &object)?;
        self.stamp_new(resource, namespace, &mut object)?;
        built_in::prepare_new(resource, &mut object);
        warnings.extend(admission::judge(resource, manner, &mut object, None)?);
        let key = Self::key(resource, namespace, object["metadata"]["name"].as_str().unwrap_or_default());
        if self.state.shelf(resource)?.get(&key).is_some() {
            return Err(Refusal::already_exists(resource, &key.name));
        }
        let added = definition::prepare(resource, &mut object, &self.stamp())?;
        let stored = self.commit(resource, object, manner.dry_run)?;
        if !manner.dry_run {
            if let Some(added) = added {
                self.state.add_resource(added);
            }
            self.follow_write(resource, None, &stored)?;
        }
        Ok(Written { object: stored, warnings })
    }

    /// The namespace of an object must exist, and nothing is created in one that is being deleted.
    fn check_namespace(&self, resource: &Resource, namespace: &str, object: &Value) -> Result<(), Refusal> {
        if !resource.namespaced {
            return Ok(());
        }
        let given = object["metadata"]["namespace"].as_str().unwrap_or_default();
        if !given.is_empty() && given != namespace {
            return Err(Refusal::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        let namespaces =
            self.state.resources.find("", "namespaces").cloned().ok_or_else(Refusal::no_such_path)?;
        let found = self.state.object(&namespaces, &Self::key(&namespaces, "", namespace))?.value();
        if super::is_terminating(&found) {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let why = format!(
                "unable to create new content in namespace {namespace} because it is being terminated"
            );
            let mut refusal = Refusal::forbidden(resource, name, why);
            refusal.details["causes"] = json!([{
                "reason": "NamespaceTerminating", "message": format!("namespace {namespace} is being terminated"),
                "field": "metadata.namespace",
            }]);
            return Err(refusal);
        }
        Ok(())
    }

    /// Sets the fields that only the server may set.
    fn stamp_new(&mut self, resource: &Resource, namespace: &str, object: &mut Value) -> Result<(), Refusal> {
        if object["metadata"]["resourceVersion"].as_str().is_some_and(|text| !text.is_empty()) {
            return Err(Refusal::unexpected("resourceVersion should not be set on objects to be created"));
        }
        tidy_metadata(object);
        let name = object["metadata"]["name"].as_str().filter(|name| !name.is_empty()).map(str::to_owned);
        let name = match name {
            Some(name) => name,
            None => self.generate_name(resource, namespace, object)?,
        };
        let metadata = &mut object["metadata"];
        metadata["name"] = name.into();
        if resource.namespaced {
            metadata["namespace"] = namespace.into();
        } else if let Some(metadata) = metadata.as_object_mut() {
            metadata.remove("namespace");
        }
        object["metadata"]["uid"] = self.state.uid().into();
        object["metadata"]["creationTimestamp"] = self.stamp();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("deletionTimestamp");
            metadata.remove("deletionGracePeriodSeconds");
            metadata.remove("generation");
        }
        if resource.has_generation {
            object["metadata"]["generation"] = 1.into();
        }
        if resource.has_status
            && !built_in::keeps_status_on_create(resource)
            && let Some(fields) = object.as_object_mut()
        {
            fields.remove("status");
        }
        Ok(())
    }

    fn generate_name(
        &mut self,
        resource: &Resource,
        namespace: &str,
        object: &Value,
    ) -> Result<String, Refusal> {
        let Some(base) = object["metadata"]["generateName"].as_str().filter(|base| !base.is_empty()) else {
            let cause = Cause {
                reason: "FieldValueRequired".to_owned(),
                message: "Required value: name or generateName is required".to_owned(),
                field: "metadata.name".to_owned(),
            };
            return Err(Refusal::invalid(resource, "", &[cause]));
        };
        let base: String = base.chars().take(KEPT_OF_GENERATE_NAME).collect();
        let mut name = String::new();
        for _ in 0..NAME_TRIES {
            name = format!("{base}{}", self.state.name_suffix());
            if self.state.shelf(resource)?.get(&Self::key(resource, namespace, &name)).is_none() {
                return Ok(name);
            }
        }
        Err(Refusal::no_unique_name(resource, &name))
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::options::Options;
    use crate::request::FieldValidation;
    use crate::state::State;

    const MANNER: Manner<'static> = Manner {
        version: "v1",
        dry_run: false,
        field_validation: FieldValidation::Strict,
        complaints: &[],
        patch: None,
    };

    fn create(state: &mut State, metadata: &Value) -> Result<String, Refusal> {
        let nodes = state.resources.find("", "nodes").cloned().expect("nodes are built in");
        let mut writer = Writer::new(state, Timestamp::UNIX_EPOCH);
        let written = writer.create(&nodes, "", json!({ "metadata": metadata }), &MANNER)?;
        Ok(written.object.key.name.clone())
    }

    #[test]
    fn a_generated_name_that_is_taken_is_replaced_by_another() {
        let mut state = State::new(Options::default());
        let generated = json!({ "generateName": "node-" });
        let mut names = std::collections::BTreeSet::new();
        for _ in 0..NAME_TRIES {
            // The same seed every time: each name but the last is taken.
            state.reseed(7);
            names.insert(create(&mut state, &generated).unwrap());
        }
        assert_eq!(names.len(), NAME_TRIES);
    }

    #[test]
    fn when_every_generated_name_is_taken_the_server_refuses() {
        let mut state = State::new(Options::default());
        state.reseed(7);
        let taken: Vec<String> = (0..NAME_TRIES).map(|_| format!("node-{}", state.name_suffix())).collect();
        for name in &taken {
            create(&mut state, &json!({ "name": name })).unwrap();
        }
        state.reseed(7);
        let refusal = create(&mut state, &json!({ "generateName": "node-" })).unwrap_err();
        assert_eq!((refusal.code, refusal.reason), (409, "AlreadyExists"));
        assert_eq!(refusal.details["retryAfterSeconds"], 1);
    }
}
