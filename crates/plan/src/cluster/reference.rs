//! References to objects, for events.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use prewarm_api::kruise::API_VERSION;
use prewarm_api::reference_object::ObjectReference;

use super::node_image::node::Node;

/// An object of one of our kinds.
pub fn object(kind: &str, metadata: &ObjectMeta) -> ObjectReference {
    ObjectReference {
        api_version: Some(API_VERSION.to_owned()),
        kind: Some(kind.to_owned()),
        namespace: metadata.namespace.clone(),
        name: metadata.name.clone(),
        uid: metadata.uid.clone(),
        ..ObjectReference::default()
    }
}

/// The NodeImage of a node.
pub fn node_image(name: &str, node: Option<&Node>) -> ObjectReference {
    let uid = node.and_then(|node| node.image.as_ref()).map(|image| image.uid.to_string());
    ObjectReference {
        api_version: Some(API_VERSION.to_owned()),
        kind: Some("NodeImage".to_owned()),
        name: Some(name.to_owned()),
        uid,
        ..ObjectReference::default()
    }
}
