//! The two Kubernetes APIs that Prewarm serves: types, names, validation and image references. No I/O.

#![warn(missing_docs)]
#![expect(
    clippy::duplicated_attributes,
    reason = "the columns of a kind share words, which the lint takes for twins"
)]
#![expect(
    clippy::missing_panics_doc,
    reason = "each `expect` states an invariant, so no caller can meet the panic"
)]

pub mod allow_list;
mod bounds;
pub mod condition;
pub mod crd;
pub mod kruise;
pub mod names;
pub mod ofen;
pub mod path;
pub mod permission;
pub mod reference;
pub mod reference_object;
pub mod rule;
pub mod schema;
pub mod selector;
pub mod served;
pub mod text;
pub mod unknown;
pub mod validate;
