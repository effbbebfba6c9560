//! One stored object.

use std::collections::BTreeMap;

use bytes::{BufMut, Bytes, BytesMut};
use serde_json::Value;

/// Namespace and name; the namespace is empty for objects of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Namespace, or empty.
    pub namespace: String,
    /// Name.
    pub name: String,
}

/// An object as text, with what selectors and the garbage collector read.
#[derive(Clone, Debug)]
pub struct Stored {
    /// Its name.
    pub key: Key,
    /// Its UID.
    pub uid: String,
    /// The revision that wrote it.
    pub revision: u64,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// The values of its selectable fields.
    pub fields: BTreeMap<String, String>,
    /// UIDs of its owners.
    pub owners: Vec<String>,
    /// The object as JSON without `apiVersion` and `kind`: everything after the opening brace.
    pub body: Bytes,
}

impl Stored {
    /// Takes an object as it will be read back; `selectable` are the fields that selectors may name.
    pub fn new(object: Value, revision: u64, selectable: &[String]) -> Self {
        let metadata = &object["metadata"];
        let text = |field: &str| metadata[field].as_str().unwrap_or_default().to_owned();
        let labels = metadata["labels"].as_object().into_iter().flatten();
        let labels =
            labels.map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()));
        let owners = metadata["ownerReferences"].as_array().into_iter().flatten();
        Self {
            key: Key { namespace: text("namespace"), name: text("name") },
            uid: text("uid"),
            revision,
            labels: labels.collect(),
            fields: selectable.iter().map(|path| (path.clone(), field(&object, path))).collect(),
            owners: owners.filter_map(|owner| owner["uid"].as_str()).map(str::to_owned).collect(),
            body: body(object),
        }
    }

    /// The object as a value, without `apiVersion` and `kind`.
    pub fn value(&self) -> Value {
        let mut text = Vec::with_capacity(self.body.len() + 1);
        text.push(b'{');
        text.extend_from_slice(&self.body);
        serde_json::from_slice(&text).expect("stored text was made from a value")
    }

    /// Writes the object in a version.
    pub fn write(&self, api_version: &str, kind: &str, into: &mut BytesMut) {
        into.put_slice(b"{\"apiVersion\":\"");
        into.put_slice(api_version.as_bytes());
        into.put_slice(b"\",\"kind\":\"");
        into.put_slice(kind.as_bytes());
        into.put_slice(b"\",");
        into.put_slice(&self.body);
    }

    /// The object as text in a version.
    pub fn text(&self, api_version: &str, kind: &str) -> Bytes {
        let mut text = BytesMut::with_capacity(self.body.len() + api_version.len() + kind.len() + 32);
        self.write(api_version, kind, &mut text);
        text.freeze()
    }
}

/// A field as selectors see it; what is not there is empty.
fn field(object: &Value, path: &str) -> String {
    let value = path.split('.').try_fold(object, |value, name| value.get(name));
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    }
}

fn body(mut object: Value) -> Bytes {
    if let Some(fields) = object.as_object_mut() {
        fields.remove("apiVersion");
        fields.remove("kind");
    }
    // An object always has metadata, so there is something after the brace.
    Bytes::from(serde_json::to_vec(&object).expect("a value is JSON")).slice(1..)
}
