//! Whether anything may start on the node at all.

use super::disk::DiskRoom;
use super::wait::{Hold, WaitReason};

/// What the agent sees around its tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Surroundings {
    /// How many pulls may run at once.
    pub parallel: usize,
    /// Whether the agent stops.
    pub is_stopping: bool,
    /// How far the search for the container runtime is.
    pub runtime: RuntimeSearch,
    /// The room where images lie, if it was asked for and is known.
    pub disk: Option<DiskRoom>,
}

/// How far the search for the container runtime is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuntimeSearch {
    /// It answers.
    Found,
    /// Nothing answers.
    Unanswered,
    /// What answers is not the runtime that the kubelet uses.
    NotTheNodes,
}

/// What holds for all tasks at the moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conditions {
    /// How many pulls may run at once.
    pub parallel: usize,
    /// Why nothing new starts, if so.
    pub hold: Option<Hold>,
    /// Why nothing starts because of the disk, if so.
    pub no_room: Option<DiskRoom>,
}

/// Judges conditions, and remembers whether the disk was full. Once it was, pulls start again only when some more than
/// the floor is free.
#[derive(Clone, Debug, Default)]
pub struct Gate {
    is_full: bool,
}

impl Gate {
    /// The conditions in these surroundings.
    pub fn judge(&mut self, surroundings: Surroundings) -> Conditions {
        let Surroundings { parallel, is_stopping, runtime, disk } = surroundings;
        let hold = match (is_stopping, runtime) {
            (true, _) => Some(Hold::Stopping),
            (false, RuntimeSearch::Unanswered) => Some(Hold::NoRuntime),
            (false, RuntimeSearch::NotTheNodes) => Some(Hold::NotTheNodes),
            (false, RuntimeSearch::Found) => None,
        };
        let no_room = disk.and_then(|disk| {
            self.is_full = if self.is_full { disk.is_still_low() } else { disk.is_low() };
            self.is_full.then_some(disk)
        });
        Conditions { parallel, hold, no_room }
    }
}

impl Conditions {
    /// Why nothing new starts, if so.
    pub(super) fn blocks(&self) -> Option<WaitReason> {
        self.hold.map(WaitReason::Held).or_else(|| self.no_room.clone().map(WaitReason::NoRoom))
    }

    /// Why a task waits that nothing else is in the way of.
    pub(super) fn no_place(&self) -> WaitReason {
        WaitReason::NoPlace { places: self.parallel }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::disk::{MinFree, Room};

    fn disk(free: u64) -> DiskRoom {
        let room = Room { free, capacity: 1000 };
        DiskRoom { room, inodes: None, min_free: MinFree::default(), path: "/images".into() }
    }

    fn calm() -> Surroundings {
        Surroundings { parallel: 2, is_stopping: false, runtime: RuntimeSearch::Found, disk: None }
    }

    #[test]
    fn nothing_starts_without_a_runtime_or_in_an_agent_that_stops() {
        let hold = |surroundings| Gate::default().judge(surroundings).hold;
        assert_eq!(hold(calm()), None);
        let without = |runtime| Surroundings { runtime, ..calm() };
        assert_eq!(hold(without(RuntimeSearch::Unanswered)), Some(Hold::NoRuntime));
        assert_eq!(hold(without(RuntimeSearch::NotTheNodes)), Some(Hold::NotTheNodes));
        let stopping = Surroundings { is_stopping: true, ..without(RuntimeSearch::Unanswered) };
        assert_eq!(hold(stopping), Some(Hold::Stopping));
    }

    #[test]
    fn a_full_disk_holds_pulls_until_some_more_than_the_floor_is_free() {
        let mut gate = Gate::default();
        let mut no_room = |free| {
            let conditions = gate.judge(Surroundings { disk: Some(disk(free)), ..calm() });
            conditions.no_room.map(|disk| disk.room.free)
        };
        let judged = [200, 199, 200, 209, 210, 200].map(&mut no_room);
        assert_eq!(judged, [None, Some(199), Some(200), Some(209), None, None]);
    }

    #[test]
    fn a_disk_that_was_not_asked_holds_nothing_and_is_still_remembered_as_full() {
        let mut gate = Gate::default();
        gate.judge(Surroundings { disk: Some(disk(199)), ..calm() });
        assert_eq!(gate.judge(calm()).no_room, None);
        assert_eq!(gate.judge(Surroundings { disk: Some(disk(205)), ..calm() }).no_room, Some(disk(205)));
    }
}
