//! What people install, made from what is built: the image of the program, and the list of its parts.
//!
//! Two builds of one commit give the same bytes: nothing of the machine, its clock or its directories gets in.

pub mod image;
pub mod parts;
pub mod place;
pub mod roots;
pub mod sbom;
