//! Durations as Go writes them: `90m`, `1h30m`, `1.5h`, `-2s`.

/// Nanoseconds of each unit.
const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];
/// The most nanoseconds that a duration can have, and one more for the negative ones.
const MOST: u64 = 1 << 63;

/// Reads a duration as nanoseconds, or says what is wrong with it.
pub fn parse(text: &str) -> Result<i64, &'static str> {
    const NONE: &str = "write a duration such as 90m or 1h30m";
    const TOO_LONG: &str = "longer than any duration";
    let (is_negative, mut rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(NONE);
    }
    let mut sum: u64 = 0;
    while !rest.is_empty() {
        let (digits, after) = digits(rest);
        let whole = if digits.is_empty() {
            0
        } else {
            digits.parse().ok().filter(|number| *number <= MOST).ok_or(TOO_LONG)?
        };
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => self::digits(after),
            None => ("", after),
        };
        if digits.is_empty() && fraction.is_empty() {
            return Err(NONE);
        }
        let end = after.find(|one: char| one == '.' || one.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        if unit.is_empty() {
            return Err("a unit is missing: h, m, s, ms, us or ns");
        }
        let (_, unit) = UNITS
            .into_iter()
            .find(|(name, _)| *name == unit)
            .ok_or("no such unit: there are h, m, s, ms, us and ns")?;
        let whole: u64 = whole;
        let nanoseconds = whole.checked_mul(unit).filter(|value| *value <= MOST).ok_or(TOO_LONG)?;
        let nanoseconds =
            nanoseconds.checked_add(part(fraction, unit)).filter(|value| *value <= MOST).ok_or(TOO_LONG)?;
        sum = sum.checked_add(nanoseconds).filter(|value| *value <= MOST).ok_or(TOO_LONG)?;
        rest = after;
    }
    match (is_negative, i64::try_from(sum)) {
        (true, _) => Ok(0_i64.wrapping_sub_unsigned(sum)),
        (false, sum) => sum.map_err(|_| TOO_LONG),
    }
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

/// The nanoseconds of a fraction of a unit. Digits that do not fit are too small to matter.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "as Go counts"
)]
fn part(fraction: &str, unit: u64) -> u64 {
    let (mut value, mut scale) = (0_u64, 1.0_f64);
    for digit in fraction.bytes() {
        let next = value.checked_mul(10).and_then(|value| value.checked_add(u64::from(digit - b'0')));
        match next.filter(|next| value <= (MOST - 1) / 10 && *next <= MOST) {
            Some(next) => (value, scale) = (next, scale * 10.0),
            None => break,
        }
    }
    if value == 0 { 0 } else { (value as f64 * (unit as f64 / scale)) as u64 }
}
