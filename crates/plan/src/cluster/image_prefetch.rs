//! ImagePrefetches: images that a number of nodes, or all, must hold, of which a few ask the registry and the others ask mirrors.
//!
//! ```text
//! select ─▶ wave ─▶ pass: grants in NodeImages, NodeImageSets for people ─▶ status
//! ```
//!
//! `select` chooses nodes, `wave` who of them begins and who asks the registry. Each image is a demand of its own
//! (`demands/parts`); the nodes that take part in this generation are in `record`. What matters is in the cluster: a
//! NodeImageSet of this generation says which role its node has, and the entries of NodeImages what was granted.

use std::time::Duration;

mod begin;
mod choose;
pub mod explain;
mod observe;
mod pass;
pub mod reason;
pub mod record;
mod report;
pub mod select;
mod settle;
mod stall;
pub mod status;
mod view;
mod want;
pub mod wave;

pub use record::Prefetches;
pub use view::ImageState;
pub use want::policy;

/// A node that is not ready keeps its place for so long: most come back.
pub const NOT_READY_GRACE: Duration = Duration::from_mins(5);
/// A node that asks the registry and fails is given so long before another one is asked; each further one twice as long.
pub const SEED_PATIENCE: Duration = Duration::from_secs(10);
/// And no longer than this.
pub const LONGEST_SEED_PATIENCE: Duration = Duration::from_mins(10);
/// A node that gets nothing from mirrors keeps its place in a wave for so long: mirrors are slow to notice what others have got.
pub const MIRROR_PATIENCE: Duration = Duration::from_secs(5);
/// A node that was told to pull and does not begin holds no place after this time: it is busy with other images, has no room, or
/// its agent is gone.
pub const BEGIN_PATIENCE: Duration = Duration::from_mins(1);
/// A pull of which nothing new is heard holds no place after this time. The agent cuts off what stands still after ten minutes.
pub const SILENT_PATIENCE: Duration = Duration::from_mins(12);

#[cfg(test)]
mod tests;
