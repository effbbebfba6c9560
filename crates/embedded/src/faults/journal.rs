//! What was requested and what became of it. Bounded: the latest entries, and counts of everything.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::time::Duration;

use super::asked::Verb;
use super::script::Cut;

/// At most this many entries are kept.
const MAX_ENTRIES: usize = 10_000;

/// One thing that happened to a request. A watch can have several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The number of the request, counted from 1 in the order of arrival.
    pub number: u64,
    /// When it happened, counted from the start of the plan.
    pub at: Duration,
    pub verb: Verb,
    /// The path with the query. Long ones are shortened.
    pub path: String,
    pub happened: Happened,
}

/// What can become of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happened {
    /// The server answered with this code.
    Answered(u16),
    /// The server answered with this code, from the state at this earlier revision.
    AnsweredStale(u16, u64),
    /// The answer was 429, with this many seconds in `Retry-After`.
    TooManyRequests(u64),
    /// The answer was 403.
    Forbidden,
    /// The answer was 409.
    Conflict,
    /// The answer was 500.
    InternalError,
    /// The request did not reach the server.
    Refused,
    /// The server answered with this code, and the answer was lost.
    AnswerLost(u16),
    /// The server answered with this code, and no packet of the answer arrives.
    Unanswered(u16),
    /// The server answered with this code, and the answer stops in the middle.
    Stalled(u16),
    /// The watch was cut.
    WatchCut(Cut),
    /// An event of the watch was delayed by this.
    EventDelayed(Duration),
    /// A bookmark of the watch was withheld.
    BookmarkWithheld,
}

impl Happened {
    /// A short fixed name, for counting.
    pub fn label(self) -> &'static str {
        match self {
            Self::Answered(_) => "answered",
            Self::AnsweredStale(..) => "stale",
            Self::TooManyRequests(_) => "too-many-requests",
            Self::Forbidden => "forbidden",
            Self::Conflict => "conflict",
            Self::InternalError => "internal-error",
            Self::Refused => "refused",
            Self::AnswerLost(_) => "answer-lost",
            Self::Unanswered(_) => "unanswered",
            Self::Stalled(_) => "stalled",
            Self::WatchCut(_) => "watch-cut",
            Self::EventDelayed(_) => "event-delayed",
            Self::BookmarkWithheld => "bookmark-withheld",
        }
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, at, verb, path, happened } = self;
        write!(out, "{:>10.3}s #{number} {} {path}: ", at.as_secs_f64(), verb.as_str())?;
        match happened {
            Happened::Answered(code) => write!(out, "{code}"),
            Happened::AnsweredStale(code, revision) => write!(out, "{code} as of revision {revision}"),
            Happened::TooManyRequests(seconds) => write!(out, "429, retry after {seconds} s"),
            Happened::Forbidden => write!(out, "403"),
            Happened::Conflict => write!(out, "409"),
            Happened::InternalError => write!(out, "500"),
            Happened::Refused => write!(out, "refused"),
            Happened::AnswerLost(code) => write!(out, "{code}, but the answer was lost"),
            Happened::Unanswered(code) => write!(out, "{code}, but the answer never arrives"),
            Happened::Stalled(code) => write!(out, "{code}, but the answer stops in the middle"),
            Happened::WatchCut(how) => write!(out, "watch cut ({how:?})"),
            Happened::EventDelayed(delay) => write!(out, "event delayed by {delay:?}"),
            Happened::BookmarkWithheld => write!(out, "bookmark withheld"),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Journal {
    entries: VecDeque<Entry>,
    requests: u64,
    tally: BTreeMap<&'static str, u64>,
}

impl Journal {
    /// The number of the next request.
    pub(super) fn number(&mut self) -> u64 {
        self.requests += 1;
        self.requests
    }

    pub(super) fn push(&mut self, entry: Entry) {
        *self.tally.entry(entry.happened.label()).or_default() += 1;
        if self.entries.len() == MAX_ENTRIES {
            self.entries.pop_front();
        }
        self.entries.push_back(entry);
    }

    pub(super) fn entries(&self) -> Vec<Entry> {
        self.entries.iter().cloned().collect()
    }

    pub(super) fn tally(&self) -> BTreeMap<&'static str, u64> {
        self.tally.clone()
    }
}
