//! How long a runtime that went away is left alone before it is asked again.
//!
//! ```text
//! does not answer, or stops     0   1   2   4   8  16  30  30 s …   connecting takes as long as it takes
//! answers that it cannot        1   2   4   8  16  30  30 s …       connecting would succeed at once
//! ```
//!
//! A runtime that answered a pull, well or badly, is asked without a pause again, and so is one whose trouble was a while ago.

use std::time::Duration;

use crate::backoff::double;

/// How the runtime went away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence {
    /// It could not be reached, or did not answer.
    Unreachable,
    /// It answered that it is unavailable.
    Unavailable,
    /// It stopped while it pulled.
    Stopped,
}

/// The first pause, which doubles.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Trouble that lies further back than this is over. It is longer than any pause, so that a runtime that is only ever asked
/// after a pause does not get a clean slate by that.
const FORGIVEN_AFTER: Duration = Duration::from_mins(1);

/// Remembers how often in a row the runtime went away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Patience {
    strikes: u32,
    paused_until: Duration,
}

impl Patience {
    /// The runtime went away: how long to wait before it is asked again.
    pub fn pause(&mut self, absence: Absence, now: Duration) -> Duration {
        if now > self.paused_until.saturating_add(FORGIVEN_AFTER) {
            self.strikes = 0;
        }
        self.strikes = self.strikes.saturating_add(1);
        let times = match absence {
            Absence::Unavailable => self.strikes,
            Absence::Unreachable | Absence::Stopped => self.strikes - 1,
        };
        let pause = double(FIRST_PAUSE, LONGEST_PAUSE, times);
        self.paused_until = now.saturating_add(pause);
        pause
    }

    /// The runtime answered a pull.
    pub fn answered(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pauses of a runtime that goes away again at once, in seconds.
    fn pauses(absence: Absence, times: usize) -> Vec<u64> {
        let (mut patience, mut now) = (Patience::default(), Duration::from_hours(1));
        let mut next = || {
            let pause = patience.pause(absence, now);
            now += pause;
            pause.as_secs()
        };
        (0..times).map(|_| next()).collect()
    }

    #[test]
    fn a_runtime_that_answers_that_it_cannot_is_asked_with_growing_pauses() {
        assert_eq!(pauses(Absence::Unavailable, 8), [1, 2, 4, 8, 16, 30, 30, 30]);
    }

    #[test]
    fn one_that_stopped_is_looked_for_at_once_and_later_less_often_if_it_stops_again() {
        assert_eq!(pauses(Absence::Stopped, 5), [0, 1, 2, 4, 8]);
        assert_eq!(pauses(Absence::Unreachable, 3), [0, 1, 2]);
    }

    #[test]
    fn an_answer_and_time_make_up_for_it() {
        let mut patience = Patience::default();
        let second = Duration::from_secs(1);
        assert_eq!(patience.pause(Absence::Unavailable, second), second);
        patience.answered();
        assert_eq!(patience.pause(Absence::Unavailable, second), second);
        let later = second + second + FORGIVEN_AFTER;
        assert_eq!(patience.pause(Absence::Unavailable, later), 2 * second, "it is only just over");
        let much_later = later + 2 * second + FORGIVEN_AFTER + second;
        assert_eq!(patience.pause(Absence::Unavailable, much_later), second);
    }
}
