//! Fields that a kind does not have.

use super::Case;

pub fn cases() -> Vec<Case> {
    Vec::new()
}
