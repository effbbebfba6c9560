//! Who may have one of the node's places, so that neither a slow registry nor one namespace keeps all others waiting.
//!
//! ```text
//! places      ▮ ▮          as many pulls as may run at once
//! kept ones       ▯ ▯      open only when every place was held for a minute: one for a registry that has none,
//!                          and one more for a namespace that has none
//! ```
//!
//! A pull is never stopped to make room for another: what it has downloaded would be lost. That is why the kept places come
//! on top of the others.

use std::time::Duration;

use super::task::Task;

/// A place that is held for longer than this may be held for hours: then the kept places open. Most pulls are over by then.
pub const HELD_LONG: Duration = Duration::from_mins(1);
/// How many pulls may run beyond the usual number for registries that hold no place.
const KEPT_FOR_REGISTRIES: usize = 1;
/// How many pulls may run beyond the usual number in all. What is more than the places for other registries is left to other
/// namespaces, because one namespace can name any number of registries.
pub const KEPT: usize = 2;

/// A pull that holds a place.
#[derive(Clone, Copy, Debug)]
pub struct Holder<'a> {
    pub task: &'a Task,
    pub since: Duration,
}

/// The places of a node and who holds them.
#[derive(Clone, Debug)]
pub struct Places<'a> {
    pub parallel: usize,
    pub holders: Vec<Holder<'a>>,
}

impl Places<'_> {
    /// Whether there is a place for this task.
    pub fn has_one_for(&self, task: &Task, now: Duration) -> bool {
        let taken = self.holders.len();
        if taken < self.parallel {
            return true;
        }
        let Share { of_namespace, of_registry } = self.share(task);
        let is_kept_for_it = (of_namespace == 0 && taken < self.parallel + KEPT)
            || (of_registry == 0 && taken < self.parallel + KEPT_FOR_REGISTRIES);
        is_kept_for_it && self.kept_open_at().is_some_and(|at| at <= now)
    }

    /// How many places a task's namespace and registry hold. Who holds fewer comes first.
    pub fn share(&self, task: &Task) -> Share {
        let count =
            |is_alike: &dyn Fn(&Task) -> bool| self.holders.iter().filter(|held| is_alike(held.task)).count();
        Share {
            of_namespace: count(&|held| held.namespace() == task.namespace()),
            of_registry: count(&|held| held.reference.registry() == task.reference.registry()),
        }
    }

    /// When all places will have been held for long, if they are all taken.
    pub fn kept_open_at(&self) -> Option<Duration> {
        let mut since: Vec<Duration> = self.holders.iter().map(|held| held.since).collect();
        since.sort_unstable();
        let last = self.parallel.checked_sub(1)?;
        since.get(last).map(|since| since.saturating_add(HELD_LONG))
    }
}

/// How many places somebody holds. The namespace is compared first: registries are cheap to have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share {
    pub of_namespace: usize,
    pub of_registry: usize,
}

#[cfg(test)]
mod tests;
