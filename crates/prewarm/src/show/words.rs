//! Times, amounts and lists of names as kubectl users read them.

use std::time::Duration;

use jiff::Timestamp;
use prewarm_plan::amount;

/// A duration in the style of kubectl's ages: its two largest units while they matter.
pub fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    let pair = |large: u64, unit: char, small: u64, small_unit: char| {
        if small == 0 { format!("{large}{unit}") } else { format!("{large}{unit}{small}{small_unit}") }
    };
    match seconds {
        0..120 => format!("{seconds}s"),
        120..600 => pair(minutes, 'm', seconds % 60, 's'),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => pair(hours, 'h', minutes % 60, 'm'),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => pair(days, 'd', hours % 24, 'h'),
        _ => format!("{days}d"),
    }
}

/// How long ago it was. Clocks differ, so a time in the future counts as the present.
pub fn ago(then: Timestamp, now: Timestamp) -> String {
    duration(Duration::try_from(now.duration_since(then)).unwrap_or_default())
}

/// An amount of bytes; `-` if there is none.
pub fn bytes(count: Option<i64>) -> String {
    count.and_then(|count| u64::try_from(count).ok()).map_or("-".to_owned(), amount::show)
}

/// Bytes per second; `-` if unknown.
pub fn speed(bytes: Option<u64>) -> String {
    bytes.map_or("-".to_owned(), |bytes| format!("{}/s", amount::show(bytes)))
}

/// The first names, and how many more there are.
pub fn names(all: &[String], most: usize) -> String {
    let shown = all.iter().take(most).map(String::as_str).collect::<Vec<_>>().join(", ");
    match all.len().saturating_sub(most) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// A number with its noun: `1 node`, `2 nodes`.
pub fn counted(number: usize, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {thing}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_like_the_ages_of_kubectl() {
        let shown = [5, 119, 120, 125, 3599, 10_799, 10_800, 11_000, 86_400, 172_800, 180_000, 10_000_000]
            .map(|seconds| duration(Duration::from_secs(seconds)));
        assert_eq!(
            shown,
            ["5s", "119s", "2m", "2m5s", "59m", "179m", "3h", "3h3m", "24h", "2d", "2d2h", "115d"]
        );
        assert_eq!(ago(Timestamp::from_second(10).unwrap(), Timestamp::from_second(5).unwrap()), "0s");
    }

    #[test]
    fn long_lists_of_names_are_cut_with_their_number() {
        let all: Vec<String> = ["a", "b", "c"].map(str::to_owned).into();
        assert_eq!(names(&all, 3), "a, b, c");
        assert_eq!(names(&all, 1), "a and 2 more");
    }
}
