//! Decides which events are written, and when. Pure: time is given, counted from the process's start.
//!
//! Events on one object with one reason form a series. The first is written at once. Those that follow are collected and
//! written as one when the series' window ends, and each window is twice as long as the one before:
//!
//! ```text
//! recorded  x   x x x        x x                x
//! written   1   ───10 s───▶  "… and 2 more"  ───20 s───▶ "… and 2 more"
//! ```
//!
//! If all collected events have the same text as the last written one, that one is counted up instead. One bucket of tokens
//! limits all series together, so that many objects do not make many events a second.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;

use super::{Event, Reason};

/// The first window of a series.
pub const FIRST_WINDOW: Duration = Duration::from_secs(10);
/// No window is longer. After such a window without an event, a series starts over.
pub const LONGEST_WINDOW: Duration = Duration::from_mins(5);

/// How much one process may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// At most this many series are kept. One with nothing left to write gives way to another.
    pub series: usize,
    /// At most this many events are written at once.
    pub burst: u32,
    /// After this time one more may be written.
    pub refill: Duration,
}

impl Bounds {
    /// For one of many processes, which together must not burden the API server.
    pub const ONE_OF_MANY: Self = Self { series: 256, burst: 25, refill: Duration::from_secs(5) };
    /// For a process that alone writes for the whole cluster.
    pub const ALONE: Self = Self { series: 4096, burst: 250, refill: Duration::from_millis(100) };
}

/// The collected events of one series, to be written as one.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    pub about: ObjectReference,
    pub reason: Reason,
    /// The text of the latest event.
    pub note: String,
    /// How many events were collected.
    pub count: u32,
    /// The name of the written event that already says the same.
    pub repeats: Option<String>,
    /// How many recorded events the written one stands for, this batch included.
    pub total: u32,
}

/// What identifies a series: the object's kind, namespace, name and UID, and the reason.
type Key = ([Option<String>; 4], Reason);

/// Groups recorded events into series and limits how often they are written.
#[derive(Debug)]
pub struct Correlator {
    bounds: Bounds,
    series: BTreeMap<Key, Series>,
    tokens: u32,
    refilled: Duration,
}

#[derive(Debug)]
struct Series {
    about: ObjectReference,
    note: String,
    /// How many events are collected and not written.
    count: u32,
    /// Whether all of them have the text of the last written event.
    is_same: bool,
    open_at: Duration,
    window: Duration,
    /// The last written event: its name, its text, and how many recorded events it stands for.
    written: Option<(String, String, u32)>,
}

impl Correlator {
    pub fn new(bounds: Bounds) -> Self {
        Self { bounds, series: BTreeMap::new(), tokens: bounds.burst, refilled: Duration::ZERO }
    }

    /// Adds an event to its series. `false` if no series is left for it.
    pub fn add(&mut self, event: Event, now: Duration) -> bool {
        let Event { about, reason, note } = event;
        let key = key(&about, reason);
        if !self.series.contains_key(&key) && !self.make_room() {
            return false;
        }
        let series = self.series.entry(key).or_insert_with(|| Series::new(about, now));
        if now >= series.open_at.saturating_add(LONGEST_WINDOW) {
            (series.window, series.written) = (FIRST_WINDOW, None);
        }
        let is_same = series.written.as_ref().is_some_and(|(_, written, _)| *written == note);
        series.is_same = is_same && (series.is_same || series.count == 0);
        series.count = series.count.saturating_add(1);
        series.note = note;
        true
    }

    /// When the next event may be written, if there is one to write.
    pub fn due(&self) -> Option<Duration> {
        let open_at = self.waiting().map(|(_, series)| series.open_at).min()?;
        let token_at =
            if self.tokens > 0 { Duration::ZERO } else { self.refilled.saturating_add(self.bounds.refill) };
        Some(open_at.max(token_at))
    }

    /// Takes the next batch, if one may be written now. Warnings come first.
    pub fn take(&mut self, now: Duration) -> Option<Batch> {
        self.refill(now);
        let open = self.waiting().filter(|(_, series)| series.open_at <= now);
        let next = open.min_by_key(|(key, series)| (Reverse(key.1.severity), series.open_at));
        let key = next.map(|(key, _)| key.clone())?;
        self.tokens = self.tokens.checked_sub(1)?;
        let series = self.series.get_mut(&key)?;
        let count = std::mem::take(&mut series.count);
        let repeated = series.written.as_ref().filter(|_| series.is_same);
        Some(Batch {
            about: series.about.clone(),
            reason: key.1,
            note: series.note.clone(),
            count,
            repeats: repeated.map(|(name, _, _)| name.clone()),
            total: repeated.map_or(count, |(_, _, total)| total.saturating_add(count)),
        })
    }

    /// The batch was written under this name, or never will be.
    pub fn wrote(&mut self, batch: &Batch, name: Option<String>, now: Duration) {
        let Some(series) = self.series.get_mut(&key(&batch.about, batch.reason)) else { return };
        series.open_at = now.saturating_add(series.window);
        series.window = series.window.saturating_mul(2).min(LONGEST_WINDOW);
        series.written = name.map(|name| (name, batch.note.clone(), batch.total));
    }

    /// The batch could not be written. It is written after `pause`, or without one at once and under another name.
    pub fn give_back(&mut self, batch: &Batch, pause: Option<Duration>, now: Duration) {
        let Some(series) = self.series.get_mut(&key(&batch.about, batch.reason)) else { return };
        series.count = series.count.saturating_add(batch.count);
        if let Some(pause) = pause {
            series.open_at = now.saturating_add(pause);
        } else {
            (series.written, series.is_same) = (None, false);
        }
    }

    /// Ends all windows, because the process stops.
    pub fn hurry(&mut self) {
        for series in self.series.values_mut() {
            series.open_at = Duration::ZERO;
        }
    }

    fn waiting(&self) -> impl Iterator<Item = (&Key, &Series)> {
        self.series.iter().filter(|(_, series)| series.count > 0)
    }

    /// If all series are taken, forgets the one that has had nothing to write for the longest time.
    fn make_room(&mut self) -> bool {
        if self.series.len() < self.bounds.series {
            return true;
        }
        let idle = self.series.iter().filter(|(_, series)| series.count == 0);
        let oldest = idle.min_by_key(|(_, series)| series.open_at).map(|(key, _)| key.clone());
        oldest.is_some_and(|key| self.series.remove(&key).is_some())
    }

    fn refill(&mut self, now: Duration) {
        let Bounds { burst, refill, .. } = self.bounds;
        let gained = now.saturating_sub(self.refilled).as_millis() / refill.as_millis();
        let gained = u32::try_from(gained).unwrap_or(u32::MAX);
        self.tokens = self.tokens.saturating_add(gained).min(burst);
        // A full bucket gains nothing while it waits.
        let used = refill.saturating_mul(gained);
        self.refilled = if self.tokens == burst { now } else { self.refilled.saturating_add(used) };
    }
}

impl Series {
    fn new(about: ObjectReference, now: Duration) -> Self {
        let (note, count, is_same) = (String::new(), 0, false);
        Self { about, note, count, is_same, open_at: now, window: FIRST_WINDOW, written: None }
    }
}

fn key(about: &ObjectReference, reason: Reason) -> Key {
    ([about.kind.clone(), about.namespace.clone(), about.name.clone(), about.uid.clone()], reason)
}

#[cfg(test)]
mod tests;
