//! Amounts of resources as Kubernetes writes them (`500m`, `1.5Gi`, `2e3`), exactly, in billionths. k8s-openapi hands them
//! over as text, and the only thing that is done with them here is to add and compare.

/// What one is in billionths.
pub const ONE: i128 = 1_000_000_000;

/// Reads an amount; `None` if it is none. What is finer than a billionth is rounded up, as Kubernetes does.
pub fn parse(text: &str) -> Option<i128> {
    let end = text
        .find(|one: char| !(one.is_ascii_digit() || matches!(one, '.' | '+' | '-')))
        .unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (factor, divisor) = scale(suffix)?;
    let (digits, places) = decimal(number)?;
    let above = digits.checked_mul(ONE)?.checked_mul(factor)?;
    let below = 10_i128.checked_pow(places)?.checked_mul(divisor)?;
    let whole = above / below;
    Some(if above % below > 0 { whole + 1 } else { whole })
}

/// The digits as one number, and how many of them stand behind the point.
fn decimal(number: &str) -> Option<(i128, u32)> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{fraction}");
    Some((digits.parse().ok()?, u32::try_from(fraction.len()).ok()?))
}

/// By what an amount with this suffix is multiplied and divided.
fn scale(suffix: &str) -> Option<(i128, i128)> {
    let power = |base: i128, exponent: u32| base.checked_pow(exponent);
    let whole = |factor: Option<i128>| factor.map(|factor| (factor, 1));
    match suffix {
        "n" => Some((1, ONE)),
        "u" => Some((1, 1_000_000)),
        "m" => Some((1, 1000)),
        "" => Some((1, 1)),
        "k" => whole(power(1000, 1)),
        "M" => whole(power(1000, 2)),
        "G" => whole(power(1000, 3)),
        "T" => whole(power(1000, 4)),
        "P" => whole(power(1000, 5)),
        "E" => whole(power(1000, 6)),
        "Ki" => whole(power(1024, 1)),
        "Mi" => whole(power(1024, 2)),
        "Gi" => whole(power(1024, 3)),
        "Ti" => whole(power(1024, 4)),
        "Pi" => whole(power(1024, 5)),
        "Ei" => whole(power(1024, 6)),
        _ => {
            let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            let factor = power(10, exponent.unsigned_abs())?;
            Some(if exponent < 0 { (1, factor) } else { (factor, 1) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_write_an_amount_is_read() {
        let of = |text: &str| parse(text).unwrap_or_else(|| panic!("{text}"));
        assert_eq!(of("1"), ONE);
        assert_eq!(of("500m"), ONE / 2);
        assert_eq!(of("0.5"), of("500m"));
        assert_eq!(of("1.5Gi"), of("1536Mi"));
        assert_eq!(of("2e3"), of("2k"));
        assert_eq!(of("1E"), of("1e18"));
        assert_eq!(of("5e-1"), of("500m"));
        assert_eq!(of("0.1n"), 1, "rounded up");
        assert!(of("-1") < 0);
    }

    #[test]
    fn what_is_no_amount_is_none() {
        for text in ["", "Gi", "1.2.3", "1 Gi", "1gi", "e3", "99999999999999999999999999999E"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
