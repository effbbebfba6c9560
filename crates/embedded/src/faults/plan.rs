//! What may go wrong, how often, and until when, as plain data.

use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use super::asked::{Asked, Verb};

/// How likely something is, from 0 (never) to 1 (always).
pub type Chance = f64;

/// What may happen to the requests of a client. By default nothing does.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FaultPlan {
    /// The first rule that matches a request decides. A request that matches none is left alone.
    pub rules: Vec<Rule>,
    /// Periods without faults, counted from the start of the plan.
    pub quiet: Vec<Range<Duration>>,
    /// When faults end, counted from the start of the plan. Without it they never end.
    pub until: Option<Duration>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    pub applies_to: Filter,
    pub rates: Rates,
}

/// Selects requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only these verbs; empty for all.
    pub verbs: Vec<Verb>,
    /// Only this resource, as RBAC writes it: `pods` are the objects themselves, `pods/status` their status. None for
    /// all.
    pub resource: Option<String>,
    /// Only the object with this name. None for all.
    pub name: Option<String>,
}

/// How often each fault occurs, and how severe it is. By default none does.
#[derive(Clone, Debug, PartialEq)]
pub struct Rates {
    /// How long a request and its answer travel in total.
    pub latency: RangeInclusive<Duration>,
    /// The answer is 429, and the server has done nothing.
    pub too_many_requests: Chance,
    /// The seconds in `Retry-After`.
    pub retry_after: RangeInclusive<u64>,
    /// The answer is 500, and the server has done nothing.
    pub internal_error: Chance,
    /// There is no connection, and the server has done nothing.
    pub refused: Chance,
    /// The server carries the request out, and the connection breaks before the answer arrives.
    pub answer_lost: Chance,
    /// A watch ends early.
    pub watch_cut: Chance,
    /// After how many events the watch ends, at the latest.
    pub cut_after_events: RangeInclusive<u64>,
    /// After what time the watch ends, at the latest.
    pub cut_after: RangeInclusive<Duration>,
    /// The events of a watch arrive late, in order.
    pub watch_delayed: Chance,
    /// The delay of each event.
    pub watch_delay: RangeInclusive<Duration>,
    /// A watch gets no bookmarks, except the one at the end of its initial events, which every server must send.
    pub bookmarks_withheld: Chance,
    /// A read is answered from an earlier revision, as by a replica that lags behind. This affects reads that allow it:
    /// with `resourceVersion` 0 any revision, with another number at least that one.
    pub stale: Chance,
    /// How many revisions a stale answer lags behind.
    pub stale_by: RangeInclusive<u64>,
    /// Whether reads of the most recent state are stale too. No real server does that.
    pub stale_quorum_reads: bool,
}

impl FaultPlan {
    /// A plan with the same rates for all requests.
    pub fn always(rates: Rates) -> Self {
        Self { rules: vec![Rule { applies_to: Filter::default(), rates }], ..Self::default() }
    }

    /// No faults after this time.
    #[must_use]
    pub fn until(mut self, end: Duration) -> Self {
        self.until = Some(end);
        self
    }

    /// No faults in this period.
    #[must_use]
    pub fn quiet(mut self, period: Range<Duration>) -> Self {
        self.quiet.push(period);
        self
    }

    /// Whether faults occur at that time.
    pub(super) fn is_active(&self, elapsed: Duration) -> bool {
        self.until.is_none_or(|end| elapsed < end)
            && !self.quiet.iter().any(|period| period.contains(&elapsed))
    }

    pub(super) fn rates_of(&self, asked: &Asked) -> Option<&Rates> {
        self.rules.iter().find(|rule| rule.applies_to.fits(asked)).map(|rule| &rule.rates)
    }
}

impl Filter {
    /// Requests with this verb.
    pub fn verb(verb: Verb) -> Self {
        Self { verbs: vec![verb], ..Self::default() }
    }

    /// Every request that changes something.
    pub fn writes() -> Self {
        let verbs = vec![Verb::Create, Verb::Update, Verb::Patch, Verb::Delete, Verb::DeleteCollection];
        Self { verbs, ..Self::default() }
    }

    /// Restricts the filter to this resource.
    #[must_use]
    pub fn of(mut self, resource: &str) -> Self {
        self.resource = Some(resource.to_owned());
        self
    }

    /// Restricts the filter to the object with this name.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    pub(super) fn fits(&self, asked: &Asked) -> bool {
        (self.verbs.is_empty() || self.verbs.contains(&asked.verb))
            && self.resource.as_ref().is_none_or(|resource| *resource == asked.resource)
            && self.name.as_ref().is_none_or(|name| asked.name.as_ref() == Some(name))
    }
}

impl Default for Rates {
    fn default() -> Self {
        Self {
            latency: Duration::ZERO..=Duration::ZERO,
            too_many_requests: 0.0,
            retry_after: 1..=1,
            internal_error: 0.0,
            refused: 0.0,
            answer_lost: 0.0,
            watch_cut: 0.0,
            cut_after_events: 0..=10,
            cut_after: Duration::ZERO..=Duration::from_mins(5),
            watch_delayed: 0.0,
            watch_delay: Duration::ZERO..=Duration::from_secs(10),
            bookmarks_withheld: 0.0,
            stale: 0.0,
            stale_by: 1..=20,
            stale_quorum_reads: false,
        }
    }
}

impl Rates {
    /// A bad day: a little of everything that real servers and networks do.
    pub fn rough() -> Self {
        Self {
            latency: Duration::from_millis(1)..=Duration::from_millis(1500),
            too_many_requests: 0.05,
            retry_after: 1..=5,
            internal_error: 0.05,
            refused: 0.05,
            answer_lost: 0.05,
            watch_cut: 0.4,
            watch_delayed: 0.3,
            bookmarks_withheld: 0.3,
            stale: 0.5,
            ..Self::default()
        }
    }
}
