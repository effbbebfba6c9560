//! One copy of what many entries have in common: thousands of nodes carry the same names, owners and secrets.

use std::borrow::Borrow;
use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;

/// After so many new values, those that nobody uses any more are forgotten.
const SWEEP_AFTER: usize = 4096;

/// Values of one kind, each once.
#[derive(Debug)]
pub struct Interner<T: ?Sized + Hash + Eq> {
    values: HashSet<Arc<T>>,
    since_sweep: usize,
}

impl<T: ?Sized + Hash + Eq> Default for Interner<T> {
    fn default() -> Self {
        Self { values: HashSet::new(), since_sweep: 0 }
    }
}

impl<T: ?Sized + Hash + Eq> Interner<T> {
    /// The shared copy of a value.
    pub fn share<B>(&mut self, value: B) -> Arc<T>
    where
        B: Borrow<T> + Into<Arc<T>>,
    {
        if let Some(shared) = self.values.get(value.borrow()) {
            return shared.clone();
        }
        self.sweep();
        let shared: Arc<T> = value.into();
        self.values.insert(shared.clone());
        shared
    }

    fn sweep(&mut self) {
        self.since_sweep += 1;
        // With at least as many new values as old ones between two sweeps, sweeping costs a constant share.
        if self.since_sweep > SWEEP_AFTER.max(self.values.len() / 2) {
            self.values.retain(|value| Arc::strong_count(value) > 1);
            self.since_sweep = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_one() {
        let mut interner = Interner::<str>::default();
        let (first, second) = (interner.share("nginx"), interner.share("nginx".to_owned()));
        assert!(Arc::ptr_eq(&first, &second));
    }

    #[test]
    fn values_that_nobody_uses_are_forgotten() {
        let mut interner = Interner::<str>::default();
        for number in 0..3 * SWEEP_AFTER {
            drop(interner.share(number.to_string()));
        }
        assert!(interner.values.len() <= SWEEP_AFTER + 1);
    }
}
