//! The status, apart from the spec.

use super::Case;

pub fn cases() -> Vec<Case> {
    Vec::new()
}
