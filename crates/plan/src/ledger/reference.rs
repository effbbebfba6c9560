//! References to objects, for events.

use prewarm_api::kruise::API_VERSION;
use prewarm_api::reference_object::ObjectReference;

use super::node::Node;

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
