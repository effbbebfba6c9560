//! The kinds of a server: a table of the built-in ones, and those that definitions add.

mod built_in;
mod by_resource;
mod defined;
pub mod events;

use std::sync::Arc;

use prewarm_api::rule::Rule;
use prewarm_api::schema::Schema;
use serde_json::Value;

pub use built_in::all as built_in;
pub use by_resource::ByResource;
pub use defined::{from_definition, version_priority};

/// What the server knows about one kind.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "Kubernetes has these as independent properties")]
pub struct Resource {
    /// The API group; empty for the core.
    pub group: String,
    pub kind: String,
    /// The name in paths.
    pub plural: String,
    /// The name of a single object, for people.
    pub singular: String,
    pub short_names: Vec<String>,
    /// Groups of kinds for kubectl, such as `all`.
    pub categories: Vec<String>,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
    /// Whether the status is written separately.
    pub has_status: bool,
    /// Whether a change of the spec increments the generation.
    pub has_generation: bool,
    /// Fields that the field selectors of any version may name, besides the name and namespace.
    pub selectable: Vec<Selectable>,
    /// The schema of the version in which objects are stored. Built-in kinds have none.
    pub stored: Option<Arc<Schema>>,
    /// The served versions, most preferred first.
    pub versions: Vec<Version>,
    /// The rules of our own kinds that a schema cannot express.
    pub rules: Vec<Rule>,
    /// Whether it comes from a definition.
    pub is_custom: bool,
}

/// A field that a field selector may name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selectable {
    /// The name in selectors.
    pub name: String,
    /// The path in objects, without a leading dot.
    pub path: String,
    /// The value for objects that do not have the field.
    pub absent: &'static str,
}

/// One served version of a kind.
#[derive(Clone, Debug)]
pub struct Version {
    /// For example `v1beta1`.
    pub name: String,
    /// Built-in kinds have none.
    pub schema: Option<Arc<Schema>>,
    /// Whether the version shows less, or other defaults, than what is stored.
    pub narrows: bool,
    /// The schema as it stands in the definition, for `kubectl explain`.
    pub source: Option<Arc<Value>>,
    /// The columns of `kubectl get` after the name.
    pub columns: Vec<Column>,
    /// The fields that selectors in this version may name.
    pub selectable: Vec<String>,
}

/// A column of `kubectl get`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    /// `string`, `integer`, `date`, …
    pub value_type: String,
    pub format: String,
    pub description: String,
    pub json_path: String,
    /// Columns with a priority above 0 are shown only by `-o wide`.
    pub priority: i64,
}

impl Resource {
    /// The name in messages: `pods`, `imagepulljobs.apps.kruise.io`.
    pub fn qualified(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// The kind in messages: `Pod`, `ImagePullJob.apps.kruise.io`.
    pub fn qualified_kind(&self) -> String {
        if self.group.is_empty() { self.kind.clone() } else { format!("{}.{}", self.kind, self.group) }
    }

    /// `v1`, `apps.kruise.io/v1beta1`.
    pub fn api_version(&self, version: &str) -> String {
        if self.group.is_empty() { version.to_owned() } else { format!("{}/{version}", self.group) }
    }

    /// Whether the answer to a deletion is the object, and not only a status.
    pub fn shows_what_is_gone(&self) -> bool {
        self.group.is_empty() && matches!(self.kind.as_str(), "Pod" | "Service" | "ServiceAccount")
    }

    /// Reduces a stored object to what a version shows of it.
    pub fn narrow(&self, version: &str, object: &mut Value) {
        if let Some(schema) = self.narrowing(version) {
            schema.prune(object);
        }
    }

    /// The schema of a version, if it shows less than what is stored.
    pub fn narrowing(&self, version: &str) -> Option<&Arc<Schema>> {
        self.version(version).filter(|version| version.narrows)?.schema.as_ref()
    }

    pub fn version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|version| version.name == name)
    }
}

/// All kinds by group and plural.
#[derive(Clone, Debug, Default)]
pub struct Resources {
    kinds: ByResource<Arc<Resource>>,
    edition: u64,
}

impl Resources {
    pub fn find(&self, group: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.kinds.find(group, plural)
    }

    pub fn find_kind(&self, group: &str, kind: &str) -> Option<&Arc<Resource>> {
        self.kinds.values().find(|resource| resource.group == group && resource.kind == kind)
    }

    /// Adds or replaces a kind.
    pub fn insert(&mut self, resource: Arc<Resource>) {
        let (group, plural) = (resource.group.clone(), resource.plural.clone());
        self.kinds.insert(&group, &plural, resource);
        self.edition += 1;
    }

    pub fn remove(&mut self, group: &str, plural: &str) {
        self.kinds.remove(group, plural);
        self.edition += 1;
    }

    /// A number that grows with every change of a kind.
    pub fn edition(&self) -> u64 {
        self.edition
    }

    /// All kinds, sorted by group and plural.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.kinds.values()
    }
}
