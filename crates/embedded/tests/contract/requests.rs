//! Requests that make no sense.

use super::Case;

pub fn cases() -> Vec<Case> {
    Vec::new()
}
