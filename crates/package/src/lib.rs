//! What people install, made from what is built: the image of the program, and the list of its parts.
//!
//! Two builds of one commit give the same bytes: nothing of the machine, its clock or its directories gets in.

pub mod chart;
pub mod image;
pub mod login;
pub mod notices;
pub mod parts;
pub mod place;
pub mod release;
pub mod roots;
pub mod sbom;

use std::path::PathBuf;

/// The top of the tree.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}
