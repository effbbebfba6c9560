//! Lists of objects: `v1 List`, which kubectl prints, and the list of each of our kinds, which the API answers with.

use std::borrow::Cow;

use prewarm_api::validate::{Inspection, inspect};
use serde_json::{Value, json};

/// Whether an object is a list whose items are checked, and how they get their kind.
pub fn items_of(object: &Value) -> Option<ItemNames> {
    let (api_version, kind) = (object["apiVersion"].as_str()?, object["kind"].as_str()?);
    if (api_version, kind) == ("v1", "List") {
        return Some(ItemNames::Own);
    }
    let kind = kind.strip_suffix("List")?;
    let item = json!({ "apiVersion": api_version, "kind": kind });
    let names = ItemNames::Inherited { api_version: api_version.to_owned(), kind: kind.to_owned() };
    matches!(inspect(&item), Inspection::Ours(_)).then_some(names)
}

/// The kind of the items that do not have one themselves.
pub enum ItemNames {
    /// `v1 List`: every item has its own kind.
    Own,
    /// `ImagePullJobList` and the like: the API leaves the kind of the items out.
    Inherited { api_version: String, kind: String },
}

impl ItemNames {
    /// The item with the kind that it has or inherits.
    pub fn complete<'a>(&self, item: &'a Value) -> Cow<'a, Value> {
        match (self, item) {
            (Self::Inherited { api_version, kind }, Value::Object(fields))
                if !fields.contains_key("apiVersion") && !fields.contains_key("kind") =>
            {
                let mut fields = fields.clone();
                fields.insert("apiVersion".to_owned(), json!(api_version));
                fields.insert("kind".to_owned(), json!(kind));
                Cow::Owned(Value::Object(fields))
            }
            _ => Cow::Borrowed(item),
        }
    }
}
