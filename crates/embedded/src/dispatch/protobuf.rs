//! Objects in Kubernetes' protobuf form. kubectl's shortcuts (`create namespace`, `create configmap`, `create secret`,
//! `create serviceaccount`) send nothing else, so the few kinds that they make are read here. Answers are always JSON,
//! which every client accepts.

use base64::Engine as _;
use serde_json::{Map, Value, json};

use crate::refusal::Refusal;

/// The first bytes of every such body.
const MAGIC: &[u8] = b"k8s\0";

/// The content of a field.
enum Holds {
    Text,
    Bytes,
    Flag,
    Message(Fields),
    List(Fields),
    TextMap,
    BytesMap,
    /// Something that the server decides itself, or that only other programs write.
    Ignored,
}

/// Number, name and content of each field.
type Fields = &'static [(u64, &'static str, Holds)];

/// The envelope of an object: its type and its bytes.
const ENVELOPE: Fields = &[
    (1, "type", Holds::Message(TYPE)),
    (2, "raw", Holds::Bytes),
    (3, "contentEncoding", Holds::Ignored),
    (4, "contentType", Holds::Ignored),
];
const TYPE: Fields = &[(1, "apiVersion", Holds::Text), (2, "kind", Holds::Text)];
const METADATA: Fields = &[
    (1, "name", Holds::Text),
    (2, "generateName", Holds::Text),
    (3, "namespace", Holds::Text),
    (4, "selfLink", Holds::Ignored),
    (5, "uid", Holds::Ignored),
    (6, "resourceVersion", Holds::Ignored),
    (7, "generation", Holds::Ignored),
    (8, "creationTimestamp", Holds::Ignored),
    (11, "labels", Holds::TextMap),
    (12, "annotations", Holds::TextMap),
    (17, "managedFields", Holds::Ignored),
];
const REFERENCE: Fields = &[
    (1, "kind", Holds::Text),
    (2, "namespace", Holds::Text),
    (3, "name", Holds::Text),
    (4, "uid", Holds::Text),
    (5, "apiVersion", Holds::Text),
    (6, "resourceVersion", Holds::Text),
    (7, "fieldPath", Holds::Text),
];
const LOCAL_REFERENCE: Fields = &[(1, "name", Holds::Text)];

/// The supported kinds.
const KINDS: &[(&str, Fields)] = &[
    (
        "ConfigMap",
        &[
            (1, "metadata", Holds::Message(METADATA)),
            (2, "data", Holds::TextMap),
            (3, "binaryData", Holds::BytesMap),
            (4, "immutable", Holds::Flag),
        ],
    ),
    (
        "Namespace",
        &[
            (1, "metadata", Holds::Message(METADATA)),
            (2, "spec", Holds::Ignored),
            (3, "status", Holds::Ignored),
        ],
    ),
    (
        "Secret",
        &[
            (1, "metadata", Holds::Message(METADATA)),
            (2, "data", Holds::BytesMap),
            (3, "type", Holds::Text),
            (4, "stringData", Holds::TextMap),
            (5, "immutable", Holds::Flag),
        ],
    ),
    (
        "ServiceAccount",
        &[
            (1, "metadata", Holds::Message(METADATA)),
            (2, "secrets", Holds::List(REFERENCE)),
            (3, "imagePullSecrets", Holds::List(LOCAL_REFERENCE)),
            (4, "automountServiceAccountToken", Holds::Flag),
        ],
    ),
];

pub(super) fn decode(body: &[u8]) -> Result<Value, Refusal> {
    let broken = || Refusal::bad_request("the body of the request is not a Kubernetes object in protobuf");
    let body = body.strip_prefix(MAGIC).ok_or_else(broken)?;
    let envelope = message(body, ENVELOPE).ok_or_else(broken)?;
    let (api_version, kind) = (&envelope["type"]["apiVersion"], &envelope["type"]["kind"]);
    let fields = KINDS.iter().find(|(known, _)| *api_version == "v1" && kind == known);
    let (_, fields) = fields.ok_or_else(|| {
        Refusal::unsupported_media_type(format!(
            "the embedded API reads {} in JSON only: print the object with --dry-run=client -o yaml and give that to \
             kubectl create -f -",
            kind.as_str().unwrap_or("this kind")
        ))
    })?;
    let raw = envelope["raw"].as_str().unwrap_or_default();
    let raw = base64::engine::general_purpose::STANDARD.decode(raw).map_err(|_| broken())?;
    let mut object = message(&raw, fields).ok_or_else(|| {
        Refusal::bad_request(format!(
            "the body of the request is broken, or has fields of {kind} that are unknown here"
        ))
    })?;
    object["apiVersion"] = api_version.clone();
    object["kind"] = kind.clone();
    Ok(object)
}

/// One value on the wire.
enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// Reads a message; none if it is broken or has a field that is not in the table. Empty fields are left out, because
/// protobuf cannot distinguish them from absent ones.
fn message(mut rest: &[u8], fields: Fields) -> Option<Value> {
    let mut object = Map::new();
    while !rest.is_empty() {
        let (number, wire) = field(&mut rest)?;
        let (_, name, holds) = fields.iter().find(|(known, ..)| *known == number)?;
        let value = match (holds, wire) {
            (Holds::Ignored, _) => continue,
            (Holds::Text, Wire::Bytes(bytes)) => json!(std::str::from_utf8(bytes).ok()?),
            (Holds::Bytes, Wire::Bytes(bytes)) => encoded(bytes),
            (Holds::Flag, Wire::Number(number)) => json!(number != 0),
            (Holds::Message(fields), Wire::Bytes(bytes)) => message(bytes, fields)?,
            (Holds::List(fields), Wire::Bytes(bytes)) => {
                let item = message(bytes, fields)?;
                let list = object.entry(*name).or_insert_with(|| json!([]));
                list.as_array_mut()?.push(item);
                continue;
            }
            (Holds::TextMap | Holds::BytesMap, Wire::Bytes(bytes)) => {
                let (key, value) = entry(bytes, matches!(holds, Holds::BytesMap))?;
                let map = object.entry(*name).or_insert_with(|| json!({}));
                map.as_object_mut()?.insert(key, value);
                continue;
            }
            (_, _) => return None,
        };
        if value != "" {
            object.insert((*name).to_owned(), value);
        }
    }
    Some(object.into())
}

/// An entry of a map: a small message with a key and a value.
fn entry(mut rest: &[u8], is_bytes: bool) -> Option<(String, Value)> {
    let (mut key, mut value) = (String::new(), json!(""));
    while !rest.is_empty() {
        match field(&mut rest)? {
            (1, Wire::Bytes(bytes)) => std::str::from_utf8(bytes).ok()?.clone_into(&mut key),
            (2, Wire::Bytes(bytes)) if is_bytes => value = encoded(bytes),
            (2, Wire::Bytes(bytes)) => value = json!(std::str::from_utf8(bytes).ok()?),
            _ => return None,
        }
    }
    Some((key, value))
}

/// Bytes in base64, as JSON has them.
fn encoded(bytes: &[u8]) -> Value {
    base64::engine::general_purpose::STANDARD.encode(bytes).into()
}

/// The number and value of the next field.
fn field<'a>(rest: &mut &'a [u8]) -> Option<(u64, Wire<'a>)> {
    let tag = number(rest)?;
    let value = match tag & 7 {
        0 => Wire::Number(number(rest)?),
        2 => {
            let length = usize::try_from(number(rest)?).ok()?;
            let (value, left) = rest.split_at_checked(length)?;
            *rest = left;
            Wire::Bytes(value)
        }
        _ => return None,
    };
    Some((tag >> 3, value))
}

/// A number in groups of seven bits, lowest first.
fn number(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, left) = rest.split_first()?;
        *rest = left;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `kubectl create namespace y` sends.
    const NAMESPACE: &[u8] = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09Namespace\x12\x19\x0a\x11\x0a\x01y\x12\x00\x1a\x00\
                               \x22\x00\x2a\x00\x32\x00\x38\x00\x42\x00\x12\x00\x1a\x02\x0a\x00\x1a\x00\x22\x00";

    #[test]
    fn the_envelope_of_a_namespace_is_opened() {
        let kind = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "y" } });
        assert_eq!(decode(NAMESPACE).ok(), Some(kind));
    }

    #[test]
    fn every_truncated_body_is_refused_or_read() {
        for length in 0..NAMESPACE.len() {
            let refused = decode(&NAMESPACE[..length]).err().map(|refusal| refusal.code);
            assert!(matches!(refused, None | Some(400 | 415)), "{length} bytes: {refused:?}");
        }
    }
}
