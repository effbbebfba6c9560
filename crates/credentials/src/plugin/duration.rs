//! Durations as Go writes them: `12h`, `1h30m`, `1.5s`, `0`.

use std::time::Duration;

/// Nothing is cached for longer, whatever a plugin asks for. This keeps sums of times within bounds.
pub(super) const MAX: Duration = Duration::from_hours(30 * 24);

/// Parses a duration that is not negative. One longer than [`MAX`] becomes [`MAX`].
pub(super) fn parse(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let (mut rest, mut seconds) = (text.strip_prefix('+').unwrap_or(text), 0.0);
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let (number, unit_on) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit() && c != '.')?);
        let (unit, after) =
            unit_on.split_at(unit_on.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(unit_on.len()));
        seconds += number.parse::<f64>().ok()? * seconds_of(unit)?;
        rest = after;
    }
    Some(Duration::try_from_secs_f64(seconds).unwrap_or(MAX).min(MAX))
}

fn seconds_of(unit: &str) -> Option<f64> {
    match unit {
        "ns" => Some(1e-9),
        "us" | "µs" | "μs" => Some(1e-6),
        "ms" => Some(1e-3),
        "s" => Some(1.0),
        "m" => Some(60.0),
        "h" => Some(3600.0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_reads_them() {
        for (text, seconds) in [
            ("0", 0.0),
            ("0s", 0.0),
            ("12h", 43_200.0),
            ("1h30m", 5400.0),
            ("1.5s", 1.5),
            ("250ms", 0.25),
            ("+5m0s", 300.0),
        ] {
            assert_eq!(parse(text), Some(Duration::from_secs_f64(seconds)), "{text}");
        }
        assert_eq!(parse("9999999h"), Some(MAX));
        for text in ["", "+", "5", "-5s", "5 s", "5days", "s", "1.2.3s", "12h5", "1e3s"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
