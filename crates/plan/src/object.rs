//! What every decision has to do with objects of a cluster: keys and names that cannot be mixed up.

mod key;
mod name;

pub use key::{ImageKey, ObjectKey, SourceKey};
pub use name::{NodeName, NodeZone, Uid};
