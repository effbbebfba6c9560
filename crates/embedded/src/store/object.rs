//! One stored object.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Range;

use bytes::{BufMut, Bytes, BytesMut};
use serde_json::Value;

use crate::resource::Selectable;

/// The finalizer of an owner that waits for its dependents.
pub const FOREGROUND: &str = "foregroundDeletion";

/// Most objects fit into this, so that writing one allocates once.
const USUAL_BYTES: usize = 8 * 1024;

/// Namespace and name. The namespace is empty for cluster-scoped objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Key {
    pub namespace: String,
    pub name: String,
}

impl Ord for Key {
    /// The order of etcd, which compares `namespace/name`: `a-b/x` comes before `a/x`, because `-` is before `/`.
    fn cmp(&self, other: &Self) -> Ordering {
        if self.namespace == other.namespace {
            return self.name.cmp(&other.name);
        }
        let namespace = |key: &Self| key.namespace.bytes().chain([b'/']).collect::<Vec<u8>>();
        namespace(self).cmp(&namespace(other))
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// One owner reference of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    pub api_version: String,
    pub kind: String,
    pub name: String,
    pub uid: String,
    /// Whether the owner waits for the object when it is deleted in the foreground.
    pub blocks: bool,
}

/// An object as text, with the parts that selectors and the garbage collector read.
#[derive(Clone, Debug)]
pub struct Stored {
    pub key: Key,
    pub uid: String,
    /// The revision that wrote it.
    pub revision: u64,
    pub labels: BTreeMap<String, String>,
    /// The values of its selectable fields.
    pub fields: BTreeMap<String, String>,
    pub owners: Vec<Owner>,
    /// Whether it is being deleted.
    pub is_terminating: bool,
    /// Whether it is being deleted and waits for its dependents.
    pub waits_for_dependents: bool,
    /// The object as JSON without `apiVersion` and `kind`: everything after the opening brace.
    pub body: Bytes,
    /// The position of the value of `metadata` in the body.
    metadata: Range<usize>,
}

impl Stored {
    /// Serialises an object in its final form. `selectable` are the fields that selectors may name.
    pub fn new(object: &Value, revision: u64, selectable: &[Selectable]) -> Self {
        let metadata = &object["metadata"];
        let text = |field: &str| text_of(&metadata[field]);
        let labels = metadata["labels"].as_object().into_iter().flatten();
        let owners = metadata["ownerReferences"].as_array().into_iter().flatten();
        let finalizers = metadata["finalizers"].as_array();
        let is_terminating = !metadata["deletionTimestamp"].is_null();
        let (body, place) = body(object);
        Self {
            key: Key { namespace: text("namespace"), name: text("name") },
            uid: text("uid"),
            revision,
            labels: labels.map(|(name, value)| (name.clone(), text_of(value))).collect(),
            fields: selectable.iter().map(|one| (one.name.clone(), field(object, one))).collect(),
            owners: owners.map(Owner::new).collect(),
            is_terminating,
            waits_for_dependents: is_terminating
                && finalizers.is_some_and(|list| list.iter().any(|one| one == FOREGROUND)),
            body,
            metadata: place,
        }
    }

    /// The same object with another revision, as watchers see one that was removed.
    pub fn at_revision(&self, revision: u64) -> Self {
        let mut object = self.value();
        object["metadata"]["resourceVersion"] = revision.to_string().into();
        let (body, metadata) = body(&object);
        Self { revision, body, metadata, ..self.clone() }
    }

    /// The object as a value, without `apiVersion` and `kind`.
    pub fn value(&self) -> Value {
        let mut text = Vec::with_capacity(self.body.len() + 1);
        text.push(b'{');
        text.extend_from_slice(&self.body);
        serde_json::from_slice(&text).expect("stored text was made from a value")
    }

    /// The text of its metadata.
    pub fn metadata(&self) -> &[u8] {
        &self.body[self.metadata.clone()]
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

impl Owner {
    fn new(reference: &Value) -> Self {
        Self {
            api_version: text_of(&reference["apiVersion"]),
            kind: text_of(&reference["kind"]),
            name: text_of(&reference["name"]),
            uid: text_of(&reference["uid"]),
            blocks: reference["blockOwnerDeletion"] == true,
        }
    }
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// A field as selectors see it.
fn field(object: &Value, selectable: &Selectable) -> String {
    let value = selectable.path.split('.').try_fold(object, |value, name| value.get(name));
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => selectable.absent.to_owned(),
        Some(other) => other.to_string(),
    }
}

/// The text of an object, metadata first, and the position of the metadata in it.
fn body(object: &Value) -> (Bytes, Range<usize>) {
    const START: &[u8] = b"\"metadata\":";
    let mut text = Vec::with_capacity(USUAL_BYTES);
    text.extend_from_slice(START);
    write(&mut text, &object["metadata"]);
    let metadata = START.len()..text.len();
    for (name, value) in object.as_object().into_iter().flatten() {
        if !matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
            text.push(b',');
            write(&mut text, &Value::String(name.clone()));
            text.push(b':');
            write(&mut text, value);
        }
    }
    text.push(b'}');
    // Copied, so that the kept bytes have no spare capacity.
    (Bytes::copy_from_slice(&text), metadata)
}

fn write(text: &mut Vec<u8>, value: &Value) {
    serde_json::to_writer(text, value).expect("a value is JSON, and memory takes it");
}
