//! Label selectors with bounds: the fields of `metav1.LabelSelector`, whose own schema has no limits.

pub mod text;

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// What a label's name may look like: an optional DNS prefix and `/`, then up to 63 characters.
pub const LABEL_KEY_PATTERN: &str = "^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?\
                                     [A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$";
/// What a label's value may look like; empty is allowed.
pub const LABEL_VALUE_PATTERN: &str = "^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$";

/// Selects objects by their labels. `{}` selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct LabelSelector {
    /// Labels an object must have, for example `app: web`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "match_labels")]
    pub match_labels: Option<BTreeMap<String, String>>,
    /// Conditions on an object's labels; all of them must hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub match_expressions: Option<Vec<LabelSelectorRequirement>>,
}

/// One condition on the labels of an object, for example `key: zone`, `operator: In`, `values: [a, b]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LabelSelectorRequirement {
    /// The label's name.
    #[schemars(length(min = 1, max = 317), regex(pattern = LABEL_KEY_PATTERN))]
    pub key: String,
    /// `In` and `NotIn` compare with values; `Exists` and `DoesNotExist` only look whether the label is there.
    pub operator: SelectorOperator,
    /// What `In` and `NotIn` compare with; empty for the other two.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256), inner(length(max = 63), regex(pattern = LABEL_VALUE_PATTERN)))]
    pub values: Option<Vec<String>>,
}

/// How a label is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SelectorOperator {
    /// The label has one of the values.
    In,
    /// The label is absent or has none of the values.
    NotIn,
    /// The label is there.
    Exists,
    /// The label is absent.
    DoesNotExist,
}

/// The schema of `matchLabels`: values are label values; a rule looks at the keys.
pub(crate) fn match_labels(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 64,
        "additionalProperties": { "type": "string", "maxLength": 63, "pattern": LABEL_VALUE_PATTERN },
    })
}
