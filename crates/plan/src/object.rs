//! Objects of the cluster: how they are named, what is known of them, and how writes to them go.

pub mod attempts;
pub mod echo;
mod key;
mod name;
pub mod store;
pub mod timers;
pub mod unknown;
pub mod version;

pub use key::{ImageKey, ObjectKey, OwnerKey, SourceKey};
pub use name::{NodeName, NodeZone, Uid};
