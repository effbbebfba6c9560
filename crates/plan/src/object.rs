//! What every decision has to do with objects of a cluster: keys that cannot be mixed up.

mod key;

pub use key::{ImageKey, ObjectKey, SourceKey};
