//! Faults at chosen requests: "the third PATCH of nodeimages is done, but its answer is lost".

use std::time::Duration;

use super::asked::Asked;
use super::plan::Filter;

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The request takes this long to reach the server.
    Latency(Duration),
    /// The answer is 429 with `Retry-After` in seconds; nothing was done.
    TooManyRequests(u64),
    /// The answer is 403, as of a quota or a policy; nothing was done.
    Forbidden,
    /// The answer is 409, as if somebody else had been faster; nothing was done.
    Conflict,
    /// The answer is 500; nothing was done.
    InternalError,
    /// There is no connection; nothing was done.
    Refused,
    /// It is done, and the connection breaks before the answer arrives.
    AnswerLost,
    /// A watch ends before the event after this many.
    CutWatch(u64, Cut),
    /// Each event of a watch arrives late by this.
    DelayWatch(Duration),
    /// A watch gets no bookmarks.
    WithholdBookmarks,
    /// A read is answered as of this many revisions ago, whichever state it asks for.
    Stale(u64),
}

/// How a watch ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// As when the server ends it.
    Clean,
    /// The connection breaks.
    Broken,
    /// The connection ends in the middle of an event.
    Torn,
}

/// A fault at one chosen request, or at each.
#[derive(Clone, Debug)]
pub struct ScriptedFault {
    filter: Filter,
    /// Which one; none for each.
    at: Option<u64>,
    action: Action,
    met: u64,
}

impl ScriptedFault {
    /// Happens to the `at`-th request, counted from 1.
    pub fn at(at: u64, action: Action) -> Self {
        Self { filter: Filter::default(), at: Some(at), action, met: 0 }
    }

    /// Happens to each request.
    pub fn always(action: Action) -> Self {
        Self { filter: Filter::default(), at: None, action, met: 0 }
    }

    /// Counts only these requests.
    #[must_use]
    pub fn of(mut self, filter: Filter) -> Self {
        self.filter = filter;
        self
    }

    /// Takes note of a request; what happens if it is the chosen one.
    pub(super) fn meets(&mut self, asked: &Asked) -> Option<Action> {
        if !self.filter.fits(asked) {
            return None;
        }
        self.met += 1;
        self.at.is_none_or(|at| self.met == at).then_some(self.action)
    }
}
