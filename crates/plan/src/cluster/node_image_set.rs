//! NodeImageSets: what one ImagePrefetch does on one node, for people and clients that know it by that; and sets that a person makes by
//! hand, each of which is a demand for its node.
//!
//! A set that an ImagePrefetch makes is written by the controller alone, spec and status. Nothing depends on it but which role its
//! node has in which generation. `record` says whose a set is, `spec` how it looks, `status` how far its node is.

use std::time::Duration;

mod observe;
mod pass;
pub mod record;
mod settle;
pub mod size;
pub mod spec;
pub mod status;

pub use record::Sets;

/// A set that somebody made for a node that does not exist goes after this: the node may be about to come.
pub const ORPHAN_AFTER: Duration = Duration::from_hours(1);

#[cfg(test)]
mod tests;
