//! Writes to one object: one at a time, after trouble only after a pause, and the same one again and again only with
//! pauses that grow.
//!
//! A write that arrives and is asked for again was undone: the definitions drop it, a webhook rewrites it, or another
//! program writes something else. Whoever corrects that at once, and is corrected at once, writes as fast as the API server
//! answers.

use std::time::Duration;

use jiff::Timestamp;

use crate::backoff::{double, shorten};
use crate::object::echo::{FIRST_AGAIN, LONGEST_AGAIN};
use crate::time::after;

/// The first pause after trouble.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// No pause is longer.
const LONGEST_PAUSE: Duration = Duration::from_mins(5);
/// No pause after a write that nobody answered is longer: an outage ends for all objects at once, and what could not be
/// written during it is written soon (reliability L5).
const LONGEST_PAUSE_UNANSWERED: Duration = Duration::from_secs(5);
/// After so many collisions in a row there are pauses too.
const FREE_COLLISIONS: u32 = 3;

/// Failures that last this long are reported: they do not pass by themselves.
const TELL_AFTER: Duration = Duration::from_mins(1);
/// How often the same write is repeated without a pause: somebody may have wiped something by mistake.
const FREE_REPEATS: u32 = 2;
/// The first pause before the same write is made once more.
const FIRST_REPEAT: Duration = Duration::from_secs(1);
/// A write that holds for so long, or for twice its pause, begins anew when it is undone after that.
const CALM: Duration = Duration::from_mins(1);

/// How writes to one object go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attempts {
    is_busy: bool,
    failures: u32,
    not_before: Option<Timestamp>,
    /// When the first of the failures was.
    failing_since: Option<Timestamp>,
    has_told: bool,
    /// What is under way, by its fingerprint.
    under_way: Option<u64>,
    arrived: Option<Arrived>,
}

/// The write that arrived last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Arrived {
    write: u64,
    at: Timestamp,
    /// How often it has arrived in a row.
    times: u32,
    /// Whether the server did not keep what it says.
    is_dropped: bool,
}

impl Attempts {
    /// Whether nothing may be written now: a write is under way, or a pause.
    pub fn is_blocked(&self, now: Timestamp) -> bool {
        self.is_busy || self.not_before.is_some_and(|at| now < at)
    }

    /// Whether a write is under way.
    pub fn is_busy(&self) -> bool {
        self.is_busy
    }

    /// Whether the last write went wrong: whoever has a choice tries elsewhere first.
    pub fn is_failing(&self) -> bool {
        self.not_before.is_some()
    }

    /// When the pause ends, if there is one.
    pub fn pause_ends(&self) -> Option<Timestamp> {
        self.not_before.filter(|_| !self.is_busy)
    }

    /// Until when this write has to wait because the same one has arrived before, again and again.
    pub fn repeats_at(&self, write: u64, now: Timestamp) -> Option<Timestamp> {
        // A time that is yet to come is a clock that was set back.
        let arrived = self.arrived.filter(|arrived| arrived.write == write && arrived.at <= now)?;
        Some(after(arrived.at, arrived.pause())).filter(|at| *at > now)
    }

    /// The answer to this write shows that nothing came of it although nobody else wrote: the server drops what it says.
    /// That takes other definitions to change, so the next try comes after minutes.
    pub fn note_dropped(&mut self, write: u64) {
        if let Some(arrived) = self.arrived.as_mut().filter(|arrived| arrived.write == write) {
            arrived.is_dropped = true;
        }
    }

    /// A write with this fingerprint begins.
    pub fn begin(&mut self, write: u64) {
        (self.is_busy, self.under_way) = (true, Some(write));
    }

    /// The write arrived.
    pub fn succeed(&mut self, now: Timestamp) {
        let arrived = self.under_way.map(|write| Arrived::next(self.arrived, write, now)).or(self.arrived);
        *self = Self { arrived, ..Self::default() };
    }

    /// The write did not arrive, or not as it was meant. The pauses double; `jitter` is a random number from 0 to 1.
    pub fn fail(&mut self, now: Timestamp, jitter: f64) {
        self.pause(LONGEST_PAUSE, now, jitter);
    }

    /// Nobody answered the write.
    pub fn miss(&mut self, now: Timestamp, jitter: f64) {
        self.pause(LONGEST_PAUSE_UNANSWERED, now, jitter);
    }

    fn pause(&mut self, longest: Duration, now: Timestamp, jitter: f64) {
        self.failures = self.failures.saturating_add(1);
        let pause = shorten(double(FIRST_PAUSE, longest, self.failures), jitter);
        self.not_before = Some(now + pause);
        self.failing_since.get_or_insert(now);
        (self.is_busy, self.under_way) = (false, None);
    }

    /// Whether writes have failed for so long that somebody should know. It is said once, until one succeeds.
    pub fn is_news(&mut self, now: Timestamp) -> bool {
        let is_long = self.failing_since.is_some_and(|since| after(since, TELL_AFTER) <= now);
        is_long && !std::mem::replace(&mut self.has_told, true)
    }

    /// The object was changed meanwhile: nobody's fault, so the next try comes at once, unless that happens again and
    /// again.
    pub fn collide(&mut self, now: Timestamp, jitter: f64) {
        if self.failures < FREE_COLLISIONS {
            self.failures += 1;
            (self.is_busy, self.under_way, self.not_before) = (false, None, None);
        } else {
            self.fail(now, jitter);
        }
    }
}

impl Arrived {
    fn next(before: Option<Self>, write: u64, at: Timestamp) -> Self {
        let same = before.filter(|before| before.write == write && at <= after(before.at, before.memory()));
        Self { write, at, times: same.map_or(1, |same| same.times.saturating_add(1)), is_dropped: false }
    }

    /// How long the same write has to wait.
    fn pause(self) -> Duration {
        if self.is_dropped {
            return double(FIRST_AGAIN, LONGEST_AGAIN, self.times);
        }
        double(FIRST_REPEAT, LONGEST_PAUSE, self.times.saturating_sub(FREE_REPEATS))
    }

    /// How long it counts as the same.
    fn memory(self) -> Duration {
        self.pause().saturating_mul(2).max(CALM)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_bound_and_end_with_a_success() {
        let mut attempts = Attempts::default();
        let now = Timestamp::UNIX_EPOCH;
        let mut pauses = Vec::new();
        for _ in 0..13 {
            attempts.fail(now, 0.0);
            pauses.push(attempts.pause_ends().map(|at| at.duration_since(now).as_millis()));
        }
        assert_eq!(pauses[..3], [Some(200), Some(400), Some(800)]);
        assert_eq!(pauses[12], Some(300_000));
        attempts.succeed(now);
        assert_eq!(attempts, Attempts::default());
    }

    /// The pauses before a write that is undone as soon as it has arrived.
    fn pauses_of_a_quarrel(attempts: &mut Attempts, mut now: Timestamp, times: usize) -> Vec<u64> {
        let mut pauses = Vec::new();
        for _ in 0..times {
            let at = attempts.repeats_at(7, now).unwrap_or(now);
            pauses.push(Duration::try_from(at.duration_since(now)).unwrap().as_secs());
            now = at;
            attempts.begin(7);
            attempts.succeed(now);
        }
        pauses
    }

    #[test]
    fn the_same_write_again_and_again_is_made_less_and_less_often() {
        let mut attempts = Attempts::default();
        let pauses = pauses_of_a_quarrel(&mut attempts, Timestamp::UNIX_EPOCH, 14);
        assert_eq!(pauses, [0, 0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        assert_eq!(attempts.repeats_at(8, Timestamp::UNIX_EPOCH), None, "another write does not wait");
    }

    #[test]
    fn a_write_that_held_for_a_while_is_repeated_at_once() {
        let mut attempts = Attempts::default();
        pauses_of_a_quarrel(&mut attempts, Timestamp::UNIX_EPOCH, 5);
        let later = Timestamp::UNIX_EPOCH + Duration::from_mins(10);
        assert_eq!(pauses_of_a_quarrel(&mut attempts, later, 4), [0, 0, 0, 1]);
    }

    #[test]
    fn a_clock_that_is_set_back_holds_up_nothing() {
        let mut attempts = Attempts::default();
        let late = Timestamp::UNIX_EPOCH + Duration::from_hours(1);
        pauses_of_a_quarrel(&mut attempts, late, 9);
        assert_eq!(attempts.repeats_at(7, Timestamp::UNIX_EPOCH), None);
    }

    #[test]
    fn failures_are_news_once_after_a_minute_and_again_after_a_success() {
        let (mut attempts, mut now) = (Attempts::default(), Timestamp::UNIX_EPOCH);
        let mut news = Vec::new();
        for round in 0..24 {
            if round == 12 {
                attempts.succeed(now);
            }
            now = attempts.pause_ends().unwrap_or(now);
            attempts.begin(7);
            attempts.fail(now, 0.0);
            if attempts.is_news(now) {
                news.push(round);
            }
        }
        assert_eq!(news, [9, 21]);
    }

    #[test]
    fn what_did_not_arrive_is_no_repetition() {
        let (mut attempts, now) = (Attempts::default(), Timestamp::UNIX_EPOCH);
        for _ in 0..9 {
            attempts.begin(7);
            attempts.fail(now, 0.0);
        }
        assert_eq!(attempts.repeats_at(7, now), None);
    }

    #[test]
    fn an_outage_makes_no_pause_longer_than_five_seconds() {
        let mut attempts = Attempts::default();
        let now = Timestamp::UNIX_EPOCH;
        for _ in 0..13 {
            attempts.miss(now, 0.0);
        }
        assert_eq!(attempts.pause_ends().map(|at| at.duration_since(now).as_secs()), Some(5));
    }

    #[test]
    fn one_write_is_under_way_at_a_time() {
        let mut attempts = Attempts::default();
        attempts.begin(1);
        assert!(attempts.is_blocked(Timestamp::UNIX_EPOCH));
        attempts.collide(Timestamp::UNIX_EPOCH, 0.0);
        assert!(!attempts.is_blocked(Timestamp::UNIX_EPOCH));
    }
}
