//! What is known about an object as a whole, as the statuses of several kinds have it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::unknown::Unknown;

/// What is known about an object, with bounds: the fields of `metav1.Condition`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What the condition is about.
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = 316))]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    #[schemars(length(max = 16))]
    pub status: String,
    /// The generation of the object that the condition was computed from.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
    /// When the status last flipped.
    pub last_transition_time: Time,
    /// Why, in one word.
    #[schemars(length(max = 1024))]
    pub reason: String,
    /// Why, in a sentence.
    #[schemars(length(max = 32768))]
    pub message: String,
    /// What a newer version has written besides.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: Unknown,
}
