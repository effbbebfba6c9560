//! The schemas of the built-in kinds, from the types that the client library generates from Kubernetes itself.

use k8s_openapi::Resource;
use k8s_openapi::api::{
    admissionregistration, apps, batch, coordination, core, events, policy, rbac, scheduling,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::JsonSchema;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};

/// The prefix of references.
const PLACE: &str = "#/components/schemas/";

/// The schemas that a document of this group version needs, by name.
pub fn schemas(group: &str, version: &str) -> Map<String, Value> {
    let mut generator = generator();
    // Definitions refer to the metadata too.
    generator.subschema_for::<ObjectMeta>();
    let mut kinds = Kinds { generator, group, version, found: Map::new() };
    kinds.add_all();
    let Kinds { mut generator, found, .. } = kinds;
    let mut schemas: Map<String, Value> =
        generator.take_definitions(true).into_iter().map(|(name, schema)| (name, tidy(schema))).collect();
    for (name, kind) in found {
        let Some(schema) = schemas.get_mut(&name) else { continue };
        schema["x-kubernetes-group-version-kind"] = json!([kind]);
        // The Rust types always have metadata, but requests may leave it out.
        if let Some(required) = schema["required"].as_array_mut() {
            required.retain(|field| field != "metadata");
        }
    }
    schemas
}

/// The schemas of `apiVersion`, `kind` and `metadata`, as every kind has them.
pub fn common_fields() -> (Value, Value, Value) {
    let mut generator = generator();
    let schema = tidy(core::v1::ConfigMap::json_schema(&mut generator).to_value());
    let field = |name: &str| schema["properties"][name].clone();
    (field("apiVersion"), field("kind"), field("metadata"))
}

fn generator() -> SchemaGenerator {
    let mut settings = SchemaSettings::openapi3();
    settings.definitions_path = PLACE.trim_start_matches('#').trim_end_matches('/').into();
    settings.into_generator()
}

struct Kinds<'a> {
    generator: SchemaGenerator,
    group: &'a str,
    version: &'a str,
    found: Map<String, Value>,
}

impl Kinds<'_> {
    /// Adding a kind takes one line.
    fn add_all(&mut self) {
        self.add::<admissionregistration::v1::ValidatingAdmissionPolicy>();
        self.add::<admissionregistration::v1::ValidatingAdmissionPolicyBinding>();
        self.add::<apiextensions::v1::CustomResourceDefinition>();
        self.add::<apps::v1::ControllerRevision>();
        self.add::<apps::v1::DaemonSet>();
        self.add::<apps::v1::Deployment>();
        self.add::<apps::v1::ReplicaSet>();
        self.add::<apps::v1::StatefulSet>();
        self.add::<batch::v1::CronJob>();
        self.add::<batch::v1::Job>();
        self.add::<coordination::v1::Lease>();
        self.add::<core::v1::ConfigMap>();
        self.add::<core::v1::Event>();
        self.add::<core::v1::Namespace>();
        self.add::<core::v1::Node>();
        self.add::<core::v1::Pod>();
        self.add::<core::v1::Secret>();
        self.add::<core::v1::Service>();
        self.add::<core::v1::ServiceAccount>();
        self.add::<events::v1::Event>();
        self.add::<policy::v1::PodDisruptionBudget>();
        self.add::<rbac::v1::ClusterRole>();
        self.add::<rbac::v1::ClusterRoleBinding>();
        self.add::<rbac::v1::Role>();
        self.add::<rbac::v1::RoleBinding>();
        self.add::<scheduling::v1::PriorityClass>();
    }

    fn add<K: Resource + JsonSchema>(&mut self) {
        if K::GROUP == self.group && K::VERSION == self.version {
            self.generator.subschema_for::<K>();
            let kind = json!({ "group": K::GROUP, "version": K::VERSION, "kind": K::KIND });
            self.found.insert(K::schema_name().into_owned(), kind);
        }
    }
}

/// Wraps a reference in `allOf` if other keywords stand beside it: readers ignore a description beside a bare
/// reference.
fn tidy(mut schema: Value) -> Value {
    match &mut schema {
        Value::Array(items) => items.iter_mut().for_each(|item| *item = tidy(item.take())),
        Value::Object(fields) => {
            fields.values_mut().for_each(|field| *field = tidy(field.take()));
            if fields.len() > 1
                && let Some(reference) = fields.remove("$ref")
            {
                fields.insert("allOf".to_owned(), json!([{ "$ref": reference }]));
            }
        }
        _ => {}
    }
    schema
}
