//! Definitions.

use super::Case;

pub fn cases() -> Vec<Case> {
    Vec::new()
}
