//! Who does what only one task can do at a time, such as bringing a layer that two images share. Whoever waits for a turn here does
//! nothing else for it: neither asks the runtime again and again nor keeps a place from others.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Mutex as Lock, OwnedMutexGuard};

/// The turns of one agent. There are never more of them than tasks have pieces under way; unused ones are removed.
#[derive(Clone, Debug, Default)]
pub(super) struct Turns(Arc<Mutex<BTreeMap<String, Arc<Lock<()>>>>>);

/// A turn, until it is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    guard: Option<OwnedMutexGuard<()>>,
    /// Removes the turn from the list, after the guard is gone.
    _entry: Entry,
}

/// A use of one turn, held or waited for.
#[derive(Debug)]
struct Entry {
    turns: Turns,
    name: String,
    lock: Option<Arc<Lock<()>>>,
}

impl Turns {
    /// The turn of this name, if nobody has it.
    pub fn try_take(&self, name: &str) -> Option<Turn> {
        let entry = self.entry(name);
        let guard = Arc::clone(entry.lock.as_ref()?).try_lock_owned().ok()?;
        Some(Turn { guard: Some(guard), _entry: entry })
    }

    /// The turn of this name, as soon as nobody has it.
    pub async fn take(&self, name: &str) -> Turn {
        let entry = self.entry(name);
        let lock = entry.lock.clone().unwrap_or_default();
        Turn { guard: Some(lock.lock_owned().await), _entry: entry }
    }

    fn entry(&self, name: &str) -> Entry {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let lock = Arc::clone(turns.entry(name.to_owned()).or_default());
        Entry { turns: self.clone(), name: name.to_owned(), lock: Some(lock) }
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // Before the entry, which counts who still uses the lock.
        self.guard = None;
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut turns = self.turns.0.lock().unwrap_or_else(PoisonError::into_inner);
        self.lock = None;
        if turns.get(&self.name).is_some_and(|lock| Arc::strong_count(lock) == 1) {
            turns.remove(&self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt as _, poll};

    use super::*;

    #[tokio::test]
    async fn a_turn_goes_to_the_next_and_others_do_not_wait_for_it() {
        let turns = Turns::default();
        let first = turns.try_take("a").unwrap();
        assert!(turns.try_take("a").is_none());
        let mut second = std::pin::pin!(turns.take("a"));
        assert!(poll!(&mut second).is_pending());
        drop(turns.try_take("b").unwrap());
        drop(first);
        assert!(poll!(&mut second).is_ready());
    }

    #[tokio::test]
    async fn nothing_is_kept_of_turns_that_nobody_uses() {
        let turns = Turns::default();
        let held = turns.try_take("a").unwrap();
        assert!(turns.try_take("a").is_none() && turns.take("a").now_or_never().is_none());
        let waiting = turns.take("a");
        assert_eq!(turns.len(), 1);
        drop(held);
        drop(waiting.await);
        assert_eq!(turns.len(), 0);
        drop(turns.take("a").await);
        assert_eq!(turns.len(), 0);
    }
}
