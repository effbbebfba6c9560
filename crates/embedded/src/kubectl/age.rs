//! How long ago something happened, in the short form that kubectl users know.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// The time since a timestamp in an object.
pub fn since(moment: &Value, now: Timestamp) -> String {
    match parse(moment) {
        Moment::Unknown => "<unknown>".to_owned(),
        Moment::Invalid => "<invalid>".to_owned(),
        Moment::At(moment) => shown(now.duration_since(moment)),
    }
}

/// The time between two timestamps in an object, or until now if the second is missing.
pub fn between(start: &Value, end: &Value, now: Timestamp) -> String {
    let Moment::At(start) = parse(start) else { return String::new() };
    let end = if let Moment::At(end) = parse(end) { end } else { now };
    shown(end.duration_since(start))
}

enum Moment {
    Unknown,
    Invalid,
    At(Timestamp),
}

fn parse(moment: &Value) -> Moment {
    match moment.as_str() {
        None | Some("") => Moment::Unknown,
        Some(text) => text.parse().map_or(Moment::Invalid, Moment::At),
    }
}

/// A duration in one or two units: the longer it is, the less the small units matter. The steps are those of kubectl.
pub fn shown(duration: SignedDuration) -> String {
    let seconds = duration.as_secs();
    let two = |large: i64, unit: &str, small: i64, rest: &str| {
        if small == 0 { format!("{large}{unit}") } else { format!("{large}{unit}{small}{rest}") }
    };
    match seconds {
        // The clocks of two machines may differ by a moment; more than that is an error worth showing.
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        _ if seconds < 2 * MINUTE => format!("{seconds}s"),
        _ if seconds < 10 * MINUTE => two(seconds / MINUTE, "m", seconds % MINUTE, "s"),
        _ if seconds < 3 * HOUR => format!("{}m", seconds / MINUTE),
        _ if seconds < 8 * HOUR => two(seconds / HOUR, "h", seconds % HOUR / MINUTE, "m"),
        _ if seconds < 2 * DAY => format!("{}h", seconds / HOUR),
        _ if seconds < 8 * DAY => two(seconds / DAY, "d", seconds % DAY / HOUR, "h"),
        _ if seconds < 2 * YEAR => format!("{}d", seconds / DAY),
        _ if seconds < 8 * YEAR => two(seconds / YEAR, "y", seconds % YEAR / DAY, "d"),
        _ => format!("{}y", seconds / YEAR),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_shown_as_in_kubectl() {
        let table = [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (150, "2m30s"),
            (9 * MINUTE + 59, "9m59s"),
            (10 * MINUTE + 30, "10m"),
            (179 * MINUTE, "179m"),
            (3 * HOUR, "3h"),
            (7 * HOUR + 59 * MINUTE, "7h59m"),
            (8 * HOUR + 59 * MINUTE, "8h"),
            (47 * HOUR, "47h"),
            (2 * DAY, "2d"),
            (2 * DAY + 3 * HOUR, "2d3h"),
            (8 * DAY + 3 * HOUR, "8d"),
            (729 * DAY, "729d"),
            (2 * YEAR + DAY, "2y1d"),
            (9 * YEAR + DAY, "9y"),
        ];
        for (seconds, wanted) in table {
            assert_eq!(shown(SignedDuration::from_secs(seconds)), wanted, "{seconds} s");
        }
    }

    #[test]
    fn a_missing_timestamp_is_unknown() {
        let now = Timestamp::UNIX_EPOCH;
        assert_eq!(since(&Value::Null, now), "<unknown>");
        assert_eq!(since(&"yesterday".into(), now), "<invalid>");
        assert_eq!(since(&"1969-12-31T23:55:00Z".into(), now), "5m");
    }
}
