//! Amounts: of bytes, as people write and read them, and counts, as statuses have them.

/// A count as a field of a status.
pub fn counter(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// An amount as people write it: `10GiB`, `10Gi`, `500MB`, `500000000`, in any case. `None` if it is none.
pub fn parse(text: &str) -> Option<u64> {
    let (number, unit) = split(text.trim());
    scaled(number, factor(unit)?)
}

/// An amount in its largest unit, rounded down to a tenth.
pub fn show(bytes: u64) -> String {
    amount(bytes, |tenths, unit| tenths / unit)
}

/// The same rounded up, for what has to be reached.
pub fn show_up(bytes: u64) -> String {
    amount(bytes, u128::div_ceil)
}

/// A number and what comes after it.
pub(crate) fn split(text: &str) -> (&str, &str) {
    let number = text.trim_end_matches(|one: char| one.is_alphabetic() || one == '%' || one == ' ');
    (number, text[number.len()..].trim())
}

/// `of × part ÷ whole`, without overflow; 0 of nothing.
pub(crate) fn share(of: u64, part: u64, whole: u64) -> u64 {
    let product = u128::from(of) * u128::from(part);
    u64::try_from(product.checked_div(u128::from(whole)).unwrap_or(0)).unwrap_or(u64::MAX)
}

fn amount(bytes: u64, divide: impl Fn(u128, u128) -> u128) -> String {
    const UNITS: [(&str, u32); 4] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    for (unit, shift) in UNITS {
        if bytes >> shift > 0 {
            let rounded = divide(u128::from(bytes) * 10, 1 << shift);
            return tenths(u64::try_from(rounded).unwrap_or(u64::MAX), unit);
        }
    }
    format!("{bytes} bytes")
}

pub(crate) fn tenths(tenths: u64, unit: &str) -> String {
    match (tenths / 10, tenths % 10) {
        (whole, 0) => format!("{whole} {unit}"),
        (whole, tenth) => format!("{whole}.{tenth} {unit}"),
    }
}

/// Bytes of a unit: Kubernetes' quantities (`Gi`, `G`), and as people write them (`GiB`, `GB`), in any case.
pub(crate) fn factor(unit: &str) -> Option<u64> {
    let unit = unit.to_ascii_lowercase();
    let prefix = unit.strip_suffix('b').unwrap_or(&unit);
    Some(match prefix {
        "" => 1,
        "k" => 1000,
        "m" => 1_000_000,
        "g" => 1_000_000_000,
        "t" => 1_000_000_000_000,
        "ki" => 1 << 10,
        "mi" => 1 << 20,
        "gi" => 1 << 30,
        "ti" => 1 << 40,
        _ => return None,
    })
}

/// A decimal number times `factor`, rounded down. Digits that would not fit are refused.
pub(crate) fn scaled(number: &str, factor: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|one| one.is_ascii_digit());
    if !is_digits(whole) || !is_digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let scale = 10_u64.pow(u32::try_from(fraction.len()).ok()?);
    let fraction = share(factor, fraction.parse().ok()?, scale);
    whole.parse::<u64>().ok()?.checked_mul(factor)?.checked_add(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_as_people_write_them() {
        let texts = ["10GiB", "1.5 Mi", "500MB", "8mb", "42", "0"];
        let read = texts.map(parse);
        assert_eq!(read, [10 << 30, 3 << 19, 500_000_000, 8_000_000, 42, 0].map(Some));
        for text in ["", "GiB", "-1", "1e3", "20%", "99999999999TiB", "1.2.3"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn amounts_are_shown_in_their_largest_unit() {
        assert_eq!([0, 1023, 1536, (1 << 30) + 1].map(show), ["0 bytes", "1023 bytes", "1.5 KiB", "1 GiB"]);
        assert_eq!(show_up((1 << 30) + 1), "1.1 GiB");
    }
}
