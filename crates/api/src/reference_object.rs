//! A pointer to another object, with bounds: the fields of `core.ObjectReference`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Points to another object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectReference {
    /// API group and version of the object, for example `apps.kruise.io/v1beta1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 317))]
    pub api_version: Option<String>,
    /// Kind of the object, for example `ImagePullJob`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub kind: Option<String>,
    /// Namespace of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub namespace: Option<String>,
    /// Name of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub name: Option<String>,
    /// UID of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub uid: Option<String>,
    /// Version of the object that is meant, if a definite one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub resource_version: Option<String>,
    /// Part of the object that is meant, if not the whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub field_path: Option<String>,
}

impl From<ObjectReference> for k8s_openapi::api::core::v1::ObjectReference {
    fn from(reference: ObjectReference) -> Self {
        let ObjectReference { api_version, kind, namespace, name, uid, resource_version, field_path } =
            reference;
        Self { api_version, kind, namespace, name, uid, resource_version, field_path }
    }
}
