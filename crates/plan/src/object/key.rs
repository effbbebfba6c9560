//! What objects and images are found by.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::name::Uid;

macro_rules! key {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name {
            /// Its namespace.
            pub namespace: String,
            /// Its name.
            pub name: String,
        }

        impl $name {
            /// Reads `namespace/name`; neither part may be empty.
            pub fn parse(text: &str) -> Option<Self> {
                let (namespace, name) = text.trim().split_once('/')?;
                let is_whole = !namespace.is_empty() && !name.is_empty() && !name.contains('/');
                is_whole.then(|| Self { namespace: namespace.to_owned(), name: name.to_owned() })
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, "{}/{}", self.namespace, self.name)
            }
        }
    };
}

key! {
    /// A Secret that jobs name, in their namespace.
    SourceKey
}

key! {
    /// An object of any kind, in its namespace.
    ObjectKey
}

impl ObjectKey {
    /// The key of an object.
    pub fn of(metadata: &ObjectMeta) -> Self {
        let text = |field: &Option<String>| field.clone().unwrap_or_default();
        Self { namespace: text(&metadata.namespace), name: text(&metadata.name) }
    }
}

/// An owner and the namespace that it is in. Whatever names it from another namespace is not its own: an owner reference
/// holds a UID and no namespace, and anybody may write one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OwnerKey {
    /// The namespace of the owner and of what it owns.
    pub namespace: String,
    /// The owner's UID.
    pub uid: Uid,
}

impl OwnerKey {
    /// The owner with this UID in this namespace.
    pub fn new(namespace: &str, uid: &str) -> Self {
        Self { namespace: namespace.to_owned(), uid: uid.into() }
    }
}

/// The place of an entry in a NodeImage: the image's name and one of its tags (or digests).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ImageKey {
    /// The familiar name, as the spec has it.
    pub name: String,
    /// Tag or digest, as the spec has it.
    pub tag: String,
}
