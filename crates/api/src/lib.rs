//! The two Kubernetes APIs that Prewarm serves: types, names, validation and image references. No I/O.

pub mod path;
pub mod reference;
pub mod validate;
