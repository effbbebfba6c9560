//! Amounts and durations in few characters.

use std::time::Duration;

/// Bytes in at most five characters, such as `9.8M`.
pub fn short(bytes: u64) -> String {
    const UNITS: [(u32, &str); 4] = [(40, "T"), (30, "G"), (20, "M"), (10, "K")];
    let Some((shift, unit)) = UNITS.into_iter().find(|(shift, _)| bytes >> shift > 0) else {
        return format!("{bytes}B");
    };
    let tenths = (u128::from(bytes) * 10) >> shift;
    if tenths < 100 {
        format!("{}.{}{unit}", tenths / 10, tenths % 10)
    } else {
        format!("{}{unit}", tenths / 10)
    }
}

/// A duration in its largest unit.
pub fn time(time: Duration) -> String {
    match time.as_secs() {
        0..90 => format!("{} s", time.as_secs()),
        seconds @ 90..5400 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_take_at_most_five_letters() {
        let amounts = [0, 1023, 1024, 10_276_045, 1_069_547_520, 1 << 30].map(short);
        assert_eq!(amounts, ["0B", "1023B", "1.0K", "9.8M", "1020M", "1.0G"]);
    }

    #[test]
    fn times_are_in_their_largest_unit() {
        let times = [0, 89, 90, 5399, 7200].map(|seconds| time(Duration::from_secs(seconds)));
        assert_eq!(times, ["0 s", "89 s", "1 min", "89 min", "2 h"]);
    }
}
