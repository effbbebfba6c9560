//! The times that have come meanwhile.

use jiff::Timestamp;

use super::{Rule, Schedule};

/// No more are counted one by one: a minute schedule has so many in sixteen hours, and nobody reads a larger number
/// otherwise.
pub const MOST_COUNTED: u64 = 1000;

/// Times of a schedule that have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missed {
    /// The first of them.
    pub first: Timestamp,
    /// The last of them.
    pub latest: Timestamp,
    /// How many there are, or at least [`MOST_COUNTED`].
    pub count: u64,
}

impl Schedule {
    /// The times after `since`, up to and with `until`.
    pub fn missed(&self, since: Timestamp, until: Timestamp) -> Option<Missed> {
        let first = self.next(since).filter(|first| *first <= until)?;
        if let Rule::Every(seconds) = &self.rule {
            let more = (until.as_second() - first.as_second()) / seconds;
            let latest = Timestamp::from_second(first.as_second() + more * seconds).ok()?;
            let count = u64::try_from(more).unwrap_or(0).saturating_add(1).min(MOST_COUNTED);
            return Some(Missed { first, latest, count });
        }
        let (mut latest, mut count) = (first, 1);
        while let Some(next) = self.next(latest).filter(|next| *next <= until) {
            latest = next;
            count += 1;
            if count == MOST_COUNTED {
                latest = self.last_before(latest, until);
                break;
            }
        }
        Some(Missed { first, latest, count })
    }

    /// The last time up to `until`, found by halving: `known` is one, and may be the last.
    fn last_before(&self, mut known: Timestamp, until: Timestamp) -> Timestamp {
        // Nothing comes after this one.
        let mut barren = until.as_second();
        while known.as_second() < barren {
            let middle = known.as_second() + (barren - known.as_second()) / 2;
            let next = Timestamp::from_second(middle).ok().and_then(|middle| self.next(middle));
            match next.filter(|next| *next <= until) {
                Some(next) => known = next,
                None => barren = middle,
            }
        }
        known
    }
}
