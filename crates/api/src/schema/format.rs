//! The formats of texts and numbers that the server checks.

use serde_json::Value;

use super::pattern::matches;

const TIME: &str = "^([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]+)?([zZ]|[+-][0-9]{2}:[0-9]{2})$";

/// What a value should be according to its format, if it is not. Formats that the server does not know allow
/// everything.
pub(super) fn fault(format: &str, value: &Value) -> Option<&'static str> {
    let fits = match format {
        "date-time" | "datetime" => value.as_str().is_none_or(is_date_time),
        "int32" => value.as_i64().is_none_or(|number| i32::try_from(number).is_ok()) && !is_huge(value),
        "int64" => !is_huge(value),
        _ => true,
    };
    match format {
        _ if fits => None,
        "int32" => Some("a whole number of at most 32 bits"),
        "int64" => Some("a whole number of at most 64 bits"),
        _ => Some("a time such as 2026-11-15T08:30:00Z"),
    }
}

/// A number that does not fit into 64 bits with a sign.
fn is_huge(value: &Value) -> bool {
    value.is_number()
        && value.as_i64().is_none()
        && value.as_f64().is_none_or(|number| number.abs() >= 9.2e18)
}

fn is_date_time(text: &str) -> bool {
    let Some((date, time)) = text.split_once(['T', 't']) else { return false };
    is_date(date) && matches(TIME, time)
}

fn is_date(text: &str) -> bool {
    if !matches("^[0-9]{4}-[0-9]{2}-[0-9]{2}$", text) {
        return false;
    }
    let part = |range: std::ops::Range<usize>| text[range].parse::<u32>().unwrap_or(0);
    let (year, month, day) = (part(0..4), part(5..7), part(8..10));
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    (1..=days).contains(&day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_real_times_are_times() {
        assert!(is_date_time("2024-02-29T23:59:59Z") && is_date_time("2026-11-15t08:30:00.123+02:00"));
        for text in
            ["yesterday", "2026-02-29T00:00:00Z", "2026-11-15", "2026-11-15T24:00:00Z", "2026-11-15T08:30Z"]
        {
            assert!(!is_date_time(text), "{text}");
        }
    }
}
