//! Defaults and rules of a definition.

use super::Case;

pub fn cases() -> Vec<Case> {
    Vec::new()
}
