//! What became of runs, counted for whoever watches the controller. No decision depends on it.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use prewarm_api::kruise::SkipReason;

use super::child::{Child, State};
use super::due::Skipped;
use super::history::End;
use crate::time::after;

/// A run that is made so long after its time is late.
pub const LATE: Duration = Duration::from_mins(1);

/// How many runs there were of each fate.
pub type Runs = BTreeMap<Fate, u64>;

/// What becomes of a run. One that begins and ends has two of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// It was made within a minute of its time.
    OnTime,
    /// It was made later.
    Late,
    /// It ended well.
    Succeeded,
    /// It failed.
    Failed,
    /// It was taken away for the next one.
    Replaced,
    /// Somebody deleted it before its end was seen.
    Deleted,
    /// It was never made, for this reason.
    Skipped(SkipReason),
}

impl Fate {
    /// How a run of this time began.
    pub(crate) fn of_begun(at: Timestamp, child: &Child) -> Self {
        if child.began_at.is_some_and(|began| began > after(at, LATE)) { Self::Late } else { Self::OnTime }
    }

    /// How a run ended.
    pub(super) fn of_end(end: &End<'_>) -> Self {
        match end {
            End::Replaced(_) => Self::Replaced,
            End::Deleted(_) => Self::Deleted,
            End::Ended(Child { state: State::Failed(_), .. }) => Self::Failed,
            End::Ended(_) => Self::Succeeded,
        }
    }
}

/// Counts what was skipped.
pub(super) fn skip(runs: &mut Runs, skipped: &Skipped) {
    *runs.entry(Fate::Skipped(skipped.reason)).or_default() += skipped.count;
}

/// Counts one more.
pub(super) fn count(runs: &mut Runs, fate: Fate) {
    *runs.entry(fate).or_default() += 1;
}
