//! Faults at chosen requests, such as "the third PATCH of nodeimages is carried out, but its answer is lost".

use std::time::Duration;

use super::asked::Asked;
use super::choice::Choice;
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
    /// The request is carried out, and the connection breaks before the answer arrives.
    AnswerLost,
    /// The request is carried out, and no answer ever arrives: the connection stays open, and packets are swallowed.
    Unanswered,
    /// The answer stops in the middle of its body, and the connection stays open.
    Stalled,
    /// A watch ends after this many events.
    CutWatch(u64, Cut),
    /// Each event of a watch is delayed by this.
    DelayWatch(Duration),
    /// A watch gets no bookmarks.
    WithholdBookmarks,
    /// A read is answered from this many revisions ago, whichever state it asks for.
    Stale(u64),
}

/// How a watch ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The answer ends normally, as when the server ends the watch.
    Clean,
    /// The connection breaks.
    Broken,
    /// The connection ends in the middle of an event.
    Torn,
    /// The connection stays open, and nothing arrives any more.
    Silent,
}

/// A fault at one chosen request, or at every request.
#[derive(Clone, Debug)]
pub struct ScriptedFault {
    filter: Filter,
    /// Which request; none for every request.
    at: Option<Choice>,
    action: Action,
    met: u64,
}

impl ScriptedFault {
    /// A fault at the `at`-th request, counted from 1.
    pub fn at(at: u64, action: Action) -> Self {
        Self::when(move |number| number == at, action)
    }

    /// Happens to each request for which this says so. It is asked once for each, with its number counted from 1, at the
    /// moment at which the request leaves.
    pub fn when(is_chosen: impl Fn(u64) -> bool + Send + Sync + 'static, action: Action) -> Self {
        Self { filter: Filter::default(), at: Some(Choice::new(is_chosen)), action, met: 0 }
    }

    /// A fault at every request.
    pub fn always(action: Action) -> Self {
        Self { filter: Filter::default(), at: None, action, met: 0 }
    }

    /// Counts only the requests that this filter selects.
    #[must_use]
    pub fn of(mut self, filter: Filter) -> Self {
        self.filter = filter;
        self
    }

    /// Counts a request, and returns the action if it is the chosen one.
    pub(super) fn meets(&mut self, asked: &Asked) -> Option<Action> {
        if !self.filter.fits(asked) {
            return None;
        }
        self.met += 1;
        self.at.as_ref().is_none_or(|at| at.is(self.met)).then_some(self.action)
    }
}
