//! Watches that go on through outages: how long each waits before it tries again, and what keeps a kind from being
//! watched at all.
//!
//! This replaces the client library's own pauses. Those grow to a minute on a watch that is healthy but silent, since
//! only an event resets them; and they do not grow at all while a list is refused, since every attempt begins with an
//! event.
//!
//! The controller is alone and comes back soon. Agents are thousands that lose the same server at the same moment, so each
//! comes back at a moment of its own ([`Crowd`]).

use std::time::Duration;

use futures::{Stream, StreamExt as _, stream};
use kube::runtime::watcher::{Error, Event};
use prewarm_plan::backoff::{double, shorten};
use tokio::time::Instant;

/// The pause after the first failure.
const FIRST_PAUSE: Duration = Duration::from_millis(800);
/// The longest pause after failures that may pass.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Thousands that lose a server together come back spread over so long a time. With the list that may follow, it stays below
/// the five seconds within which a watch has caught up (reliability L7).
const SPREAD: Duration = Duration::from_secs(4);
/// A watch that was open for so long was a good one, though nothing happened on it.
const PROVEN: Duration = Duration::from_secs(5);
/// The longest pause while the kind is not defined or may not be read: somebody has to change something first.
const LONGEST_PAUSE_AT_OBSTACLES: Duration = Duration::from_secs(30);

/// How many processes watch as this one does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crowd {
    /// One, or a few.
    Few,
    /// One on every node.
    Thousands,
}

/// What keeps a kind from being watched at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The server does not know the kind, so there are no objects of it.
    NotDefined,
    /// The account may not read the kind, so nobody knows which objects there are.
    Forbidden,
}

impl Obstacle {
    /// The obstacle that an error describes. Any other error is expected to pass.
    pub fn of(error: &Error) -> Option<Self> {
        let (Error::InitialListFailed(error) | Error::WatchStartFailed(error)) = error else { return None };
        match error {
            kube::Error::Api(status) if status.code == 404 => Some(Self::NotDefined),
            kube::Error::Api(status) if status.code == 403 => Some(Self::Forbidden),
            _ => None,
        }
    }

    /// What a reader of the log should know and can do.
    pub fn advice(self) -> &'static str {
        match self {
            Self::NotDefined => "there is no such definition; apply the shipped one if the kind is wanted",
            Self::Forbidden => {
                "this account may not read it; apply the shipped roles of the kind if it is wanted"
            }
        }
    }
}

/// The same events and errors, with a pause after each error.
pub fn patiently<K>(
    events: impl Stream<Item = Result<Event<K>, Error>> + Unpin,
    crowd: Crowd,
) -> impl Stream<Item = Result<Event<K>, Error>> {
    stream::unfold((events, Failures::default(), crowd), async |(mut events, mut failures, crowd)| {
        tokio::time::sleep(failures.pause(crowd, rand::random())).await;
        let begin = Instant::now();
        let event = events.next().await?;
        failures.count(&event, begin.elapsed());
        Some((event, (events, failures, crowd)))
    })
}

/// Failures since the last event, or since a watch was last open.
#[derive(Default)]
struct Failures {
    in_a_row: u32,
    /// The longest pause before the next attempt.
    longest: Duration,
}

impl Failures {
    /// Counts what came, so long after the last attempt began.
    fn count<K>(&mut self, event: &Result<Event<K>, Error>, took: Duration) {
        self.longest = match event {
            Ok(_) => Duration::ZERO,
            Err(error) if Obstacle::of(error).is_some() => LONGEST_PAUSE_AT_OBSTACLES,
            Err(_) => LONGEST_PAUSE,
        };
        match event {
            // An attempt begins; the server has not answered yet.
            Ok(Event::Init) => {}
            Ok(_) => self.in_a_row = 0,
            Err(error) if was_open(error, took) => self.in_a_row = 1,
            Err(_) => self.in_a_row = self.in_a_row.saturating_add(1),
        }
    }

    /// `jitter` is a random number from 0 to 1.
    fn pause(&self, crowd: Crowd, jitter: f64) -> Duration {
        match crowd {
            Crowd::Few => shorten(double(FIRST_PAUSE, self.longest, self.in_a_row), jitter),
            Crowd::Thousands if self.longest == LONGEST_PAUSE => SPREAD.mul_f64(jitter),
            Crowd::Thousands => self.longest.mul_f64(jitter),
        }
    }
}

/// Whether the watch was open before it failed, or the server has only forgotten how far it had come: then this failure is the
/// first, whatever came before it.
fn was_open(error: &Error, took: Duration) -> bool {
    match error {
        Error::WatchError(status) if status.code == 410 => true,
        Error::WatchFailed(_) | Error::WatchError(_) => took >= PROVEN,
        Error::InitialListFailed(_) | Error::WatchStartFailed(_) | Error::NoResourceVersion => false,
    }
}

#[cfg(test)]
mod tests {
    use futures::future::join_all;
    use kube::core::Status;

    use super::*;

    fn refused(code: u16) -> Error {
        Error::InitialListFailed(kube::Error::Api(Box::new(Status { code, ..Status::default() })))
    }

    fn broken() -> Error {
        Error::WatchFailed(kube::Error::ReadEvents(std::io::ErrorKind::ConnectionReset.into()))
    }

    fn forgotten() -> Error {
        Error::WatchError(Box::new(Status { code: 410, ..Status::default() }))
    }

    /// The pauses after each of these, in milliseconds. Each takes so long to come.
    fn pauses_after(took: Duration, events: impl IntoIterator<Item = Result<Event<()>, Error>>) -> Vec<u128> {
        let mut failures = Failures::default();
        let pause = |event| {
            failures.count(&event, took);
            failures.pause(Crowd::Few, 0.0).as_millis()
        };
        events.into_iter().map(pause).collect()
    }

    fn pauses(events: impl IntoIterator<Item = Result<Event<()>, Error>>) -> Vec<u128> {
        pauses_after(Duration::ZERO, events)
    }

    #[test]
    fn a_kind_that_is_not_there_differs_from_one_that_may_not_be_read() {
        assert_eq!(Obstacle::of(&refused(404)), Some(Obstacle::NotDefined));
        assert_eq!(Obstacle::of(&refused(403)), Some(Obstacle::Forbidden));
        assert_eq!(Obstacle::of(&refused(503)), None);
        assert_eq!(Obstacle::of(&Error::NoResourceVersion), None);
    }

    #[test]
    fn pauses_grow_to_five_seconds_and_starting_an_attempt_does_not_reset_them() {
        let events = (0..5).flat_map(|_| [Ok(Event::Init), Err(refused(503))]);
        assert_eq!(pauses(events), [0, 800, 0, 1600, 0, 3200, 0, 5000, 0, 5000]);
    }

    #[test]
    fn any_event_ends_the_pauses() {
        let events = [Err(refused(503)), Err(refused(503)), Ok(Event::Apply(())), Err(refused(503))];
        assert_eq!(pauses(events), [800, 1600, 0, 800]);
    }

    #[test]
    fn a_kind_that_is_not_defined_is_asked_for_less_often() {
        let pauses = pauses((0..9).map(|_| Err(refused(404))));
        assert_eq!(pauses[6..], [30_000, 30_000, 30_000]);
    }

    #[test]
    fn a_watch_that_was_open_ends_the_pauses_though_nothing_happened_on_it() {
        let events = || (0..3).map(|_| Err(broken()));
        assert_eq!(pauses_after(PROVEN, events()), [800, 800, 800]);
        assert_eq!(pauses(events()), [800, 1600, 3200], "one that opens and breaks at once was not open");
    }

    #[test]
    fn a_server_that_has_forgotten_is_asked_for_a_list_soon() {
        let events = [Err(refused(503)), Err(refused(503)), Err(refused(503)), Err(forgotten())];
        assert_eq!(pauses(events), [800, 1600, 3200, 800]);
    }

    #[test]
    fn thousands_come_back_at_moments_of_their_own() {
        for (error, milliseconds) in [(broken(), 4000), (refused(503), 4000), (refused(403), 30_000)] {
            let mut failures = Failures::default();
            failures.count::<()>(&Err(error), Duration::from_mins(1));
            let pauses = [0.0, 0.25, 1.0].map(|jitter| failures.pause(Crowd::Thousands, jitter).as_millis());
            assert_eq!(pauses, [0, milliseconds / 4, milliseconds]);
        }
        let mut failures = Failures::default();
        failures.count(&Ok(Event::Apply(())), Duration::ZERO);
        assert_eq!(failures.pause(Crowd::Thousands, 1.0), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn thousands_that_are_cut_off_together_ask_the_server_again_evenly_over_the_spread() {
        const AGENTS: usize = 2000;
        let start = Instant::now();
        let returns = join_all((0..AGENTS).map(async |_| {
            let events = stream::iter([Err(broken()), Ok(Event::Apply(()))]);
            let mut events = std::pin::pin!(patiently(events, Crowd::Thousands));
            while events.next().await.is_some() {}
            start.elapsed()
        }));
        let returns = returns.await;
        for second in 0..SPREAD.as_secs() {
            let share = returns.iter().filter(|at| at.as_secs() == second).count();
            assert!((AGENTS / 8..=AGENTS * 3 / 8).contains(&share), "{share} in second {second}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_is_handed_on_before_its_pause() {
        let start = tokio::time::Instant::now();
        let events = stream::iter([Err(refused(503)), Ok(Event::Apply(()))]);
        let mut events = std::pin::pin!(patiently(events, Crowd::Few));
        assert!(events.next().await.is_some_and(|event| event.is_err()));
        assert_eq!(start.elapsed(), Duration::ZERO);
        assert!(events.next().await.is_some_and(|event| event.is_ok()));
        assert!(start.elapsed() >= FIRST_PAUSE / 2);
        assert!(events.next().await.is_none());
    }
}
