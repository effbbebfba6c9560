//! What a node reports: the states of all its tasks, how its first pass ended, and how much room it has.

use jiff::Timestamp;

use super::disk::Room;
use super::state::{Phase, TaskState};
use crate::time::stamp;

/// One report, whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// One state for each entry that was asked for and none besides, sorted by entry.
    pub tasks: Vec<TaskState>,
    /// How the first pass ended, once it has.
    pub first_sync: Option<FirstSync>,
    /// The room where images lie, if it is known.
    pub room: Option<Room>,
}

/// How the first pass over everything that was asked of a node ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FirstSync {
    /// When.
    pub at: Option<Timestamp>,
    /// Whether everything was pulled.
    pub is_success: Option<bool>,
    /// What failed, in words.
    pub message: Option<String>,
}

impl Report {
    /// A report of tasks in these states.
    pub fn new(mut tasks: Vec<TaskState>, first_sync: Option<FirstSync>, room: Option<Room>) -> Self {
        tasks.sort_by(|one, other| one.key.cmp(&other.key));
        Self { tasks, first_sync, room }
    }

    /// How many tasks are in a phase.
    pub fn count(&self, phase: Phase) -> usize {
        self.tasks.iter().filter(|task| task.phase == phase).count()
    }

    /// Whether nothing is left to do.
    pub fn is_idle(&self) -> bool {
        self.tasks.iter().all(|task| matches!(task.phase, Phase::Succeeded | Phase::Failed))
    }
}

impl FirstSync {
    /// How a pass ended that left tasks in these states.
    pub fn of(tasks: &[TaskState], now: Timestamp) -> Self {
        let failed = tasks.iter().filter(|task| task.phase == Phase::Failed).count();
        let message = || format!("{failed} of {} images could not be pulled", tasks.len());
        Self { at: Some(stamp(now)), is_success: Some(failed == 0), message: (failed > 0).then(message) }
    }
}
