//! Durations for people.

use std::time::Duration;

/// `0.4 s`, `12 s`, `4 min 05 s`.
pub fn readable(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..10 => format!("{:.1} s", duration.as_secs_f64()),
        10..60 => format!("{seconds} s"),
        _ => format!("{} min {:02} s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_grows_with_the_duration() {
        let texts = [400, 12_900, 245_000].map(|milliseconds| readable(Duration::from_millis(milliseconds)));
        assert_eq!(texts, ["0.4 s", "12 s", "4 min 05 s"]);
    }
}
