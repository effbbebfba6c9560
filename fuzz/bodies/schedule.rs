//! Whatever a line is, reading it ends, and its times go forward. The fuzz target and the tests share it.

use jiff::Timestamp;
use prewarm_plan::schedule::{Schedule, Zone};

pub fn check(line: &str, second: i64) {
    let schedule = match Schedule::read(line, Zone::utc()) {
        Ok(schedule) => schedule,
        Err(fault) => {
            assert!(!fault.what.is_empty());
            assert!(line.get(fault.at.clone()).is_some(), "{line:?}: {:?} is no place in it", fault.at);
            return;
        }
    };
    let Ok(mut at) = Timestamp::from_second(second) else { return };
    for _ in 0..5 {
        let Some(next) = schedule.next(at) else { return };
        assert!(next > at, "{line:?} after {at} gives {next}");
        assert_eq!(
            schedule.missed(at, next).map(|missed| (missed.latest, missed.count)),
            Some((next, 1)),
            "{line:?}"
        );
        at = next;
    }
}
