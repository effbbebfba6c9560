//! The kinds that Prewarm serves, each with its compiled schema and rules.

use std::sync::{Arc, OnceLock};

use serde_json::Value;

use crate::rule::{self, Rule};
use crate::schema::Schema;
use crate::{crd, kruise, ofen};

/// One served kind.
#[derive(Debug)]
pub struct Served {
    /// The API group.
    pub group: &'static str,
    /// The kind, as in manifests.
    pub kind: String,
    /// The versions in which it is served.
    pub versions: Vec<String>,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
    /// The schema of its definition, the same in every version.
    pub source: Value,
    /// The compiled schema, the same in every version.
    pub schema: Arc<Schema>,
    /// The rules that a schema cannot express.
    pub rules: Vec<Rule>,
}

/// All served kinds.
pub fn all() -> &'static [Served] {
    static ALL: OnceLock<Vec<Served>> = OnceLock::new();
    ALL.get_or_init(|| crd::all().iter().map(served).collect())
}

/// The kind with this name in this group, whatever the version.
pub fn find(group: &str, kind: &str) -> Option<&'static Served> {
    all().iter().find(|served| served.group == group && served.kind == kind)
}

/// Whether a group is one of ours.
pub fn is_ours(group: &str) -> bool {
    all().iter().any(|served| served.group == group)
}

fn served(
    crd: &k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
) -> Served {
    let spec = &crd.spec;
    let group = if spec.group == ofen::GROUP { ofen::GROUP } else { kruise::GROUP };
    let schema = spec.versions[0].schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref());
    let schema: Value = serde_json::to_value(schema).expect("a schema is JSON");
    Served {
        group,
        kind: spec.names.kind.clone(),
        versions: spec.versions.iter().map(|version| version.name.clone()).collect(),
        namespaced: spec.scope == "Namespaced",
        schema: Arc::new(Schema::compile(&schema).expect("our own schemas compile")),
        source: schema,
        rules: rule::of(&spec.names.kind),
    }
}
