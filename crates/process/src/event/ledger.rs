//! Decides which events are written, and when. Pure: time is given, counted from the process's start.
//!
//! Happenings of one kind on one object share a line. The first is written at once. Those that follow are gathered and
//! leave together when the line's window ends, and each window is twice as long as the one before:
//!
//! ```text
//! happenings  x   x x x        x x                x
//! written     1   ───10 s───▶  "… and 2 more"  ───20 s───▶ "… and 2 more"
//! ```
//!
//! If all that was gathered has the same text as the last event, that event is counted up instead. Above all lines
//! stands one bucket of tokens, so that many objects do not make many events a second.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;

use super::{Happening, Reason};

/// The first window of a line.
pub const FIRST_WINDOW: Duration = Duration::from_secs(10);
/// No window is longer. After one such window without a happening, a line begins anew.
pub const LONGEST_WINDOW: Duration = Duration::from_mins(5);

/// How much a process may tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// So many lines are kept. A line with nothing to tell gives way to another.
    pub lines: usize,
    /// So many events may be written at once.
    pub burst: u32,
    /// After this there is one more.
    pub refill: Duration,
}

impl Bounds {
    /// One of many processes, which together must not burden the API server.
    pub const ONE_OF_MANY: Self = Self { lines: 256, burst: 25, refill: Duration::from_secs(5) };
    /// The only one, which speaks for the whole cluster.
    pub const ALONE: Self = Self { lines: 4096, burst: 250, refill: Duration::from_millis(100) };
}

/// One event to write: what was gathered on one line.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    pub about: ObjectReference,
    pub reason: Reason,
    /// The text of the latest happening.
    pub note: String,
    /// How many happenings were gathered.
    pub happenings: u32,
    /// The name of the event that says the same already.
    pub repeats: Option<String>,
    /// How many happenings that event stands for then.
    pub total: u32,
}

/// What makes a line: the object's kind, namespace, name and UID, and the reason.
type Key = ([Option<String>; 4], Reason);

/// All lines.
#[derive(Debug)]
pub struct Ledger {
    bounds: Bounds,
    lines: BTreeMap<Key, Gathered>,
    tokens: u32,
    refilled: Duration,
}

#[derive(Debug)]
struct Gathered {
    about: ObjectReference,
    note: String,
    happenings: u32,
    /// Whether all of them have the text of the last event.
    is_same: bool,
    open_at: Duration,
    window: Duration,
    /// The last event: its name, its text, and how many happenings it stands for.
    written: Option<(String, String, u32)>,
}

impl Ledger {
    /// A ledger without any line.
    pub fn new(bounds: Bounds) -> Self {
        Self { bounds, lines: BTreeMap::new(), tokens: bounds.burst, refilled: Duration::ZERO }
    }

    /// Takes note of something. `false` if there is no line left for it.
    pub fn note(&mut self, happening: Happening, now: Duration) -> bool {
        let Happening { about, reason, note } = happening;
        let key = key(&about, reason);
        if !self.lines.contains_key(&key) && !self.make_room() {
            return false;
        }
        let line = self.lines.entry(key).or_insert_with(|| Gathered::new(about, now));
        if now >= line.open_at.saturating_add(LONGEST_WINDOW) {
            (line.window, line.written) = (FIRST_WINDOW, None);
        }
        let is_same = line.written.as_ref().is_some_and(|(_, written, _)| *written == note);
        line.is_same = is_same && (line.is_same || line.happenings == 0);
        line.happenings = line.happenings.saturating_add(1);
        line.note = note;
        true
    }

    /// When the next event may be written, if there is one to write.
    pub fn due(&self) -> Option<Duration> {
        let open_at = self.waiting().map(|(_, line)| line.open_at).min()?;
        let token_at =
            if self.tokens > 0 { Duration::ZERO } else { self.refilled.saturating_add(self.bounds.refill) };
        Some(open_at.max(token_at))
    }

    /// Takes the next event to write, if one may be written now. What somebody should look at comes first.
    pub fn take(&mut self, now: Duration) -> Option<Line> {
        self.refill(now);
        let open = self.waiting().filter(|(_, line)| line.open_at <= now);
        let next = open.min_by_key(|(key, line)| (Reverse(key.1.severity), line.open_at));
        let key = next.map(|(key, _)| key.clone())?;
        self.tokens = self.tokens.checked_sub(1)?;
        let line = self.lines.get_mut(&key)?;
        let happenings = std::mem::take(&mut line.happenings);
        let repeated = line.written.as_ref().filter(|_| line.is_same);
        Some(Line {
            about: line.about.clone(),
            reason: key.1,
            note: line.note.clone(),
            happenings,
            repeats: repeated.map(|(name, _, _)| name.clone()),
            total: repeated.map_or(happenings, |(_, _, total)| total.saturating_add(happenings)),
        })
    }

    /// The event was written under this name, or will never be.
    pub fn wrote(&mut self, event: &Line, name: Option<String>, now: Duration) {
        let Some(line) = self.lines.get_mut(&key(&event.about, event.reason)) else { return };
        line.open_at = now.saturating_add(line.window);
        line.window = line.window.saturating_mul(2).min(LONGEST_WINDOW);
        line.written = name.map(|name| (name, event.note.clone(), event.total));
    }

    /// The event could not be written: what it told is told later, or at once and as another event.
    pub fn give_back(&mut self, event: &Line, pause: Option<Duration>, now: Duration) {
        let Some(line) = self.lines.get_mut(&key(&event.about, event.reason)) else { return };
        line.happenings = line.happenings.saturating_add(event.happenings);
        if let Some(pause) = pause {
            line.open_at = now.saturating_add(pause);
        } else {
            (line.written, line.is_same) = (None, false);
        }
    }

    /// The process stops: no window is waited for.
    pub fn hurry(&mut self) {
        for line in self.lines.values_mut() {
            line.open_at = Duration::ZERO;
        }
    }

    fn waiting(&self) -> impl Iterator<Item = (&Key, &Gathered)> {
        self.lines.iter().filter(|(_, line)| line.happenings > 0)
    }

    /// Forgets the line that was told the longest ago, if all are taken.
    fn make_room(&mut self) -> bool {
        if self.lines.len() < self.bounds.lines {
            return true;
        }
        let told = self.lines.iter().filter(|(_, line)| line.happenings == 0);
        let oldest = told.min_by_key(|(_, line)| line.open_at).map(|(key, _)| key.clone());
        oldest.is_some_and(|key| self.lines.remove(&key).is_some())
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

impl Gathered {
    fn new(about: ObjectReference, now: Duration) -> Self {
        let (note, happenings, is_same) = (String::new(), 0, false);
        Self { about, note, happenings, is_same, open_at: now, window: FIRST_WINDOW, written: None }
    }
}

fn key(about: &ObjectReference, reason: Reason) -> Key {
    ([about.kind.clone(), about.namespace.clone(), about.name.clone(), about.uid.clone()], reason)
}

#[cfg(test)]
mod tests;
