//! The two Kubernetes APIs that Prewarm serves: types, names, validation and image references. No I/O.

#![warn(missing_docs)]

mod bounds;
pub mod crd;
pub mod kruise;
pub mod names;
pub mod ofen;
pub mod path;
pub mod reference;
pub mod reference_object;
pub mod rule;
pub mod schema;
pub mod selector;
pub mod served;
pub mod validate;
