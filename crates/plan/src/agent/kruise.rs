//! The adapter to `apps.kruise.io`, and the only place on the node that knows its wire types: a NodeImage's spec is read
//! into tasks, and its status is written from reports and read back into states.

mod bound;
mod reported;
mod spec;
mod status;

pub use reported::{reported, reported_first_sync};
pub use spec::{MAX_ENTRIES, read};
pub use status::Status;
