//! What becomes of one request. It is decided before the request leaves, from the plan, the seed and the request's
//! ordinal among those of its kind.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt as _, SeedableRng as _};

use super::asked::{Asked, Verb};
use super::plan::{Chance, FaultPlan, Rates};
use super::script::{Action, Cut};

/// How many kinds of requests are counted separately. A client that makes up more resources shares the last count.
const MAX_KINDS: usize = 1024;

#[derive(Debug)]
pub(super) struct Fate {
    /// How long it takes to reach the server.
    pub(super) before: Duration,
    /// How long its answer takes to come back.
    pub(super) after: Duration,
    /// How it fails, if it does.
    pub(super) failure: Option<Failure>,
    /// Whether its answer stops in the middle.
    pub(super) stalls: bool,
    /// How far its answer lags behind, if it may.
    pub(super) stale: Option<Staleness>,
    /// What becomes of the watch, if it is one.
    pub(super) watch: WatchFate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    TooManyRequests(u64),
    Forbidden,
    Conflict,
    InternalError,
    Refused,
    AnswerLost,
    Unanswered,
}

/// How old an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Staleness {
    pub(super) by: u64,
    /// Whether even reads of the most recent state are stale.
    pub(super) even_quorum: bool,
}

/// What becomes of a watch.
#[derive(Debug)]
pub(super) struct WatchFate {
    pub(super) cut: Option<WatchCut>,
    pub(super) delay: Option<RangeInclusive<Duration>>,
    pub(super) withholds_bookmarks: bool,
    /// Whether the script asked for this, so that it happens in quiet times as well.
    pub(super) is_scripted: bool,
    /// A generator whose algorithm never changes, so that a seed that failed once fails again later.
    pub(super) random: Xoshiro256PlusPlus,
}

/// Where a watch ends: at whichever bound it reaches first.
#[derive(Clone, Copy, Debug)]
pub(super) struct WatchCut {
    pub(super) events: u64,
    pub(super) after: Option<Duration>,
    pub(super) how: Cut,
}

impl Fate {
    /// A fate without faults.
    pub(super) fn good(seed: u64, asked: &Asked, ordinal: u64) -> Self {
        Self::new(Xoshiro256PlusPlus::seed_from_u64(mix(seed, asked, ordinal)))
    }

    fn new(random: Xoshiro256PlusPlus) -> Self {
        let watch =
            WatchFate { cut: None, delay: None, withholds_bookmarks: false, is_scripted: false, random };
        Self {
            before: Duration::ZERO,
            after: Duration::ZERO,
            failure: None,
            stalls: false,
            stale: None,
            watch,
        }
    }

    /// The fate that the plan and the seed choose. Everything is drawn, always in the same order, so that changing one
    /// rate moves no other.
    pub(super) fn by_chance(plan: &FaultPlan, seed: u64, asked: &Asked, ordinal: u64) -> Self {
        let Some(rates) = plan.rates_of(asked) else { return Self::good(seed, asked, ordinal) };
        let mut random = Xoshiro256PlusPlus::seed_from_u64(mix(seed, asked, ordinal));
        let latency = within(&mut random, &rates.latency);
        let before = within(&mut random, &(Duration::ZERO..=latency));
        let failure = failure(rates, &mut random);
        let is_stale = happens(&mut random, rates.stale);
        let by = random.random_range(ordered(&rates.stale_by));
        let cut = cut(rates, &mut random);
        let is_delayed = happens(&mut random, rates.watch_delayed);
        let withholds_bookmarks = happens(&mut random, rates.bookmarks_withheld);
        Self {
            before,
            after: latency.saturating_sub(before),
            failure,
            stalls: false,
            stale: is_stale.then_some(Staleness { by, even_quorum: rates.stale_quorum_reads }),
            watch: WatchFate {
                cut,
                delay: is_delayed.then(|| rates.watch_delay.clone()),
                withholds_bookmarks,
                is_scripted: false,
                random,
            },
        }
    }

    /// Adds what the script says.
    pub(super) fn take(&mut self, action: Action) {
        match action {
            Action::Latency(latency) => self.before = latency,
            Action::TooManyRequests(seconds) => self.failure = Some(Failure::TooManyRequests(seconds)),
            Action::Forbidden => self.failure = Some(Failure::Forbidden),
            Action::Conflict => self.failure = Some(Failure::Conflict),
            Action::InternalError => self.failure = Some(Failure::InternalError),
            Action::Refused => self.failure = Some(Failure::Refused),
            Action::AnswerLost => self.failure = Some(Failure::AnswerLost),
            Action::Unanswered => self.failure = Some(Failure::Unanswered),
            Action::Stalled => self.stalls = true,
            Action::CutWatch(events, how) => self.watch.cut = Some(WatchCut { events, after: None, how }),
            Action::DelayWatch(delay) => self.watch.delay = Some(delay..=delay),
            Action::WithholdBookmarks => self.watch.withholds_bookmarks = true,
            Action::Stale(by) => self.stale = Some(Staleness { by, even_quorum: true }),
        }
        self.watch.is_scripted |=
            matches!(action, Action::CutWatch(..) | Action::DelayWatch(_) | Action::WithholdBookmarks);
    }
}

fn failure(rates: &Rates, random: &mut Xoshiro256PlusPlus) -> Option<Failure> {
    let seconds = random.random_range(ordered(&rates.retry_after));
    let failures = [
        (rates.refused, Failure::Refused),
        (rates.too_many_requests, Failure::TooManyRequests(seconds)),
        (rates.internal_error, Failure::InternalError),
        (rates.answer_lost, Failure::AnswerLost),
    ];
    // Each is drawn, and the first that occurs hides the others.
    let drawn = failures.map(|(chance, failure)| happens(random, chance).then_some(failure));
    drawn.into_iter().flatten().next()
}

fn cut(rates: &Rates, random: &mut Xoshiro256PlusPlus) -> Option<WatchCut> {
    let happens = happens(random, rates.watch_cut);
    let events = random.random_range(ordered(&rates.cut_after_events));
    let after = Some(within(random, &rates.cut_after));
    let how = [Cut::Clean, Cut::Broken, Cut::Torn][random.random_range(0..3)];
    happens.then_some(WatchCut { events, after, how })
}

fn happens(random: &mut Xoshiro256PlusPlus, chance: Chance) -> bool {
    random.random_range(0.0..1.0) < chance
}

/// A random duration within bounds.
pub(super) fn within(random: &mut Xoshiro256PlusPlus, bounds: &RangeInclusive<Duration>) -> Duration {
    let micros = |time: &Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    Duration::from_micros(random.random_range(ordered(&(micros(bounds.start())..=micros(bounds.end())))))
}

/// A range that is never empty, whatever the plan says.
fn ordered(range: &RangeInclusive<u64>) -> RangeInclusive<u64> {
    *range.start()..=*range.end().max(range.start())
}

/// How many requests of each kind there have been.
#[derive(Debug, Default)]
pub(super) struct Ordinals {
    kinds: BTreeMap<(Verb, String), u64>,
    others: u64,
}

impl Ordinals {
    /// The ordinal of this request among those of its kind.
    pub(super) fn next(&mut self, asked: &Asked) -> u64 {
        let is_full = self.kinds.len() >= MAX_KINDS;
        let kind = (asked.verb, asked.resource.clone());
        let ordinal = if is_full && !self.kinds.contains_key(&kind) {
            &mut self.others
        } else {
            self.kinds.entry(kind).or_default()
        };
        *ordinal += 1;
        *ordinal
    }
}

/// A seed for one request (FNV-1a: the same everywhere, unlike the standard library's hashes).
fn mix(seed: u64, asked: &Asked, ordinal: u64) -> u64 {
    let bytes = seed.to_le_bytes().into_iter().chain(ordinal.to_le_bytes());
    let bytes = bytes.chain(asked.verb.as_str().bytes()).chain(asked.resource.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
