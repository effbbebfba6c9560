//! Keys of objects, as the annotations of a copy have them: `namespace/name`.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

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
    /// A job of any kind, or one of its pods.
    JobKey
}

impl JobKey {
    /// The key of an object.
    pub fn of(metadata: &ObjectMeta) -> Self {
        let text = |field: &Option<String>| field.clone().unwrap_or_default();
        Self { namespace: text(&metadata.namespace), name: text(&metadata.name) }
    }
}
