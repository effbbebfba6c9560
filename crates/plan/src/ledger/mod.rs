//! What the controller knows of the cluster, kept by difference, and what it does next.

pub mod attempts;
pub mod intern;
pub mod node;
pub mod record;
