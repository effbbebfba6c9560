//! Reads what a NodeImage's status says of its tasks.

use std::collections::BTreeMap;

use prewarm_api::kruise::ImageTagStatus;
use serde_json::Value;

use super::spec::{each, object};
use crate::object::ImageKey;

/// Reads the statuses that a NodeImage has; entries that make no sense are as good as absent.
pub fn reported(status: &Value) -> BTreeMap<ImageKey, ImageTagStatus> {
    let mut statuses = BTreeMap::new();
    for (name, image) in object(status.get("imageStatuses")) {
        for status in each::<ImageTagStatus>(image.get("tags")) {
            let key = ImageKey { name: name.clone(), tag: status.tag.clone() };
            // The first of two counts, as it does for clients that search the list.
            statuses.entry(key).or_insert(status);
        }
    }
    statuses
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_status_of_any_shape_is_read_without_harm() {
        assert!(reported(&json!({ "imageStatuses": { "a": { "tags": [{ "tag": 1 }, "x"] } } })).is_empty());
    }
}
