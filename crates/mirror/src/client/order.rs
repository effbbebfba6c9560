//! In which order mirrors are asked. It begins as that of the file; a mirror with a trouble that passes goes to the end, so
//! that an image waits for it once and not for each of its pieces.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::failure::Failure;

/// The order, by the numbers of the mirrors.
#[derive(Debug)]
pub(super) struct Order(Mutex<Vec<usize>>);

impl Order {
    pub fn new(mirrors: usize) -> Self {
        Self(Mutex::new((0..mirrors).collect()))
    }

    /// The order as it is.
    pub fn present(&self) -> Vec<usize> {
        self.locked().clone()
    }

    /// Notes why a mirror was left. One that answers, and does not have this piece, may have the next.
    pub fn note(&self, mirror: usize, failure: &Failure) {
        if !failure.is_passing() {
            return;
        }
        let mut order = self.locked();
        order.retain(|number| *number != mirror);
        order.push(mirror);
    }

    fn locked(&self) -> MutexGuard<'_, Vec<usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mirror_in_trouble_goes_to_the_end_and_one_without_the_content_stays() {
        let order = Order::new(3);
        order.note(0, &Failure::Refused(503));
        order.note(1, &Failure::NotThere);
        assert_eq!(order.present(), [1, 2, 0]);
        order.note(1, &Failure::BrokenOff { at: 5 });
        assert_eq!(order.present(), [2, 0, 1]);
    }
}
