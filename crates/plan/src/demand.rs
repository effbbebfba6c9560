//! What somebody wants of nodes.

pub mod pull_policy;
pub mod selection;
