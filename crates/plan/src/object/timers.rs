//! When to look at something again although nothing has changed: one moment for each thing.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

/// Moments, each for one thing.
#[derive(Clone, Debug)]
pub struct Timers<T> {
    by_thing: BTreeMap<T, Timestamp>,
    by_moment: BTreeSet<(Timestamp, T)>,
}

impl<T> Default for Timers<T> {
    fn default() -> Self {
        Self { by_thing: BTreeMap::new(), by_moment: BTreeSet::new() }
    }
}

impl<T: Clone + Ord> Timers<T> {
    /// Sets the moment of a thing, in place of the one it had.
    pub fn set(&mut self, thing: T, at: Option<Timestamp>) {
        if let Some(old) = self.by_thing.remove(&thing) {
            self.by_moment.remove(&(old, thing.clone()));
        }
        if let Some(at) = at {
            self.by_thing.insert(thing.clone(), at);
            self.by_moment.insert((at, thing));
        }
    }

    /// The earliest moment.
    pub fn next(&self) -> Option<Timestamp> {
        self.by_moment.first().map(|(at, _)| *at)
    }

    /// Takes out a thing whose moment has come.
    pub fn take_due(&mut self, now: Timestamp) -> Option<T> {
        self.next().filter(|at| *at <= now)?;
        let (_, thing) = self.by_moment.pop_first()?;
        self.by_thing.remove(&thing);
        Some(thing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_thing_has_one_moment_and_the_earliest_comes_first() {
        let mut timers = Timers::default();
        timers.set("a", Some(at(5)));
        timers.set("b", Some(at(3)));
        timers.set("a", Some(at(2)));
        assert_eq!(timers.next(), Some(at(2)));
        assert_eq!(timers.take_due(at(1)), None);
        assert_eq!(timers.take_due(at(9)), Some("a"));
        timers.set("b", None);
        assert_eq!((timers.take_due(at(9)), timers.next()), (None, None));
    }
}
