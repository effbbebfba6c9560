//! The meaning of an unquoted word, decided as kubectl decides it.
//!
//! kubectl reads YAML 1.1 (`yes` is true, `017` is fifteen) and then sends JSON, where `1.0` is the integer 1. A
//! lint that read the same text differently would accept what the cluster refuses, so even the odd cases are the
//! same.

use serde_json::{Number, Value};

/// From this value on, JSON numbers are written with an exponent and no longer read back as integers.
const FIRST_FLOAT_WITH_EXPONENT: f64 = 1e21;

/// Tags that set the type of a text; with any other tag it is a string.
const TAG_STRING: &str = "str";
const TAG_INTEGER: &str = "int";
const TAG_FLOAT: &str = "float";
const TAG_BOOLEAN: &str = "bool";
const TAG_NULL: &str = "null";
const TAG_BINARY: &str = "binary";

/// The notation of a scalar, as far as its meaning depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notation<'a> {
    /// Without quotes and tags: the text decides.
    Plain,
    /// In quotes or as a block: a string.
    Quoted,
    /// With a tag of YAML's own, such as `!!str`, whatever the quotes.
    Tagged(&'a str),
    /// With a tag that YAML does not define; kubectl drops the tag and keeps the text.
    ForeignTag,
}

/// The value of a scalar, or a sentence about why it has none.
pub fn resolve(text: &str, notation: Notation<'_>) -> Result<Value, String> {
    match notation {
        Notation::Plain => resolve_plain(text).into_value(text),
        Notation::Quoted | Notation::ForeignTag => Ok(Value::from(text)),
        Notation::Tagged(tag) => resolve_tagged(text, tag),
    }
}

/// The name of a field whose key has this value. Keys that are not strings are written as kubectl writes them.
pub fn key_name(key: &Value) -> Option<String> {
    match key {
        Value::String(text) => Some(text.clone()),
        Value::Bool(truth) => Some(truth.to_string()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The value of a text before it becomes JSON, which has only one type of number.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Plain {
    Null,
    Bool(bool),
    Integer(i64),
    BigInteger(u64),
    Float(f64),
    Text,
}

impl Plain {
    fn tag(self) -> &'static str {
        match self {
            Self::Null => TAG_NULL,
            Self::Bool(_) => TAG_BOOLEAN,
            Self::Integer(_) | Self::BigInteger(_) => TAG_INTEGER,
            Self::Float(_) => TAG_FLOAT,
            Self::Text => TAG_STRING,
        }
    }

    fn into_value(self, text: &str) -> Result<Value, String> {
        match self {
            Self::Null => Ok(Value::Null),
            Self::Bool(truth) => Ok(Value::Bool(truth)),
            Self::Integer(number) => Ok(Value::from(number)),
            Self::BigInteger(number) => Ok(Value::from(number)),
            Self::Float(number) => json_number(number)
                .map(Value::Number)
                .ok_or_else(|| format!("`{text}` is not a number that JSON can hold")),
            Self::Text => Ok(Value::from(text)),
        }
    }
}

fn resolve_tagged(text: &str, tag: &str) -> Result<Value, String> {
    let plain = resolve_plain(text);
    match tag {
        TAG_BINARY => {
            Err("`!!binary` values are not used in Kubernetes objects; write the base64 text as a string"
                .to_owned())
        }
        TAG_FLOAT if plain.tag() == TAG_INTEGER => plain.into_value(text),
        TAG_INTEGER | TAG_FLOAT | TAG_BOOLEAN | TAG_NULL => {
            if plain.tag() == tag {
                plain.into_value(text)
            } else {
                Err(format!("`{text}` is tagged `!!{tag}` but is not one"))
            }
        }
        _ => Ok(Value::from(text)),
    }
}

fn resolve_plain(text: &str) -> Plain {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Plain::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            Plain::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Plain::Bool(false)
        }
        ".nan" | ".NaN" | ".NAN" => Plain::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Plain::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Plain::Float(f64::NEG_INFINITY),
        _ => resolve_number(text),
    }
}

fn resolve_number(text: &str) -> Plain {
    if !text.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '+' | '-' | '.')) {
        return Plain::Text;
    }
    let digits = text.replace('_', "");
    parse_integer(&digits).or_else(|| parse_float(&digits)).unwrap_or(Plain::Text)
}

/// Reads decimal, `0x`, `0o` and `0b` numbers and, as in C, a leading zero as octal.
fn parse_integer(text: &str) -> Option<Plain> {
    let (negative, digits) = match text.strip_prefix(['+', '-']) {
        Some(digits) => (text.starts_with('-'), digits),
        None => (false, text),
    };
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &digits[2..]),
        [b'0', b'o' | b'O', ..] => (8, &digits[2..]),
        [b'0', b'b' | b'B', ..] => (2, &digits[2..]),
        [b'0', _, ..] => (8, &digits[1..]),
        _ => (10, digits),
    };
    // The standard parser would accept a second sign.
    if !digits.starts_with(|first: char| first.is_ascii_alphanumeric()) {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, radix).ok()?;
    if negative {
        return 0i64.checked_sub_unsigned(magnitude).map(Plain::Integer);
    }
    Some(i64::try_from(magnitude).map_or(Plain::BigInteger(magnitude), Plain::Integer))
}

/// Reads a decimal fraction with an optional exponent. One that is too large stays text.
fn parse_float(text: &str) -> Option<Plain> {
    let written_in_decimals = text.contains(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | 'e' | 'E'));
    let number: f64 = written_in_decimals.then(|| text.parse().ok()).flatten()?;
    number.is_finite().then_some(Plain::Float(number))
}

/// The number as it is after a round trip through JSON: whole ones are integers.
fn json_number(number: f64) -> Option<Number> {
    let whole = number.fract() == 0.0 && number.abs() < FIRST_FLOAT_WITH_EXPONENT;
    let integer = whole.then(|| format!("{number:.0}").parse::<i64>().ok()).flatten();
    integer.map_or_else(|| Number::from_f64(number), |integer| Some(Number::from(integer)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn plain(text: &str) -> Value {
        resolve(text, Notation::Plain).unwrap()
    }

    #[test]
    fn unquoted_words_mean_what_they_mean_to_kubectl() {
        for (text, value) in [
            ("y", json!(true)),
            ("Yes", json!(true)),
            ("off", json!(false)),
            ("tRUE", json!("tRUE")),
            ("~", json!(null)),
            ("", json!(null)),
            ("nil", json!("nil")),
            ("nginx:1.27", json!("nginx:1.27")),
            ("50%", json!("50%")),
            ("2001-01-01T00:00:00Z", json!("2001-01-01T00:00:00Z")),
            ("12:30:45", json!("12:30:45")),
            ("1,000", json!("1,000")),
            ("+", json!("+")),
            ("--1", json!("--1")),
            ("+-1", json!("+-1")),
            ("...", json!("...")),
            ("1e", json!("1e")),
            ("0x", json!("0x")),
            ("0x-1", json!("0x-1")),
            ("0b2", json!("0b2")),
            ("_1", json!("_1")),
            ("1e400", json!("1e400")),
            ("inf", json!("inf")),
            ("-inf", json!("-inf")),
        ] {
            assert_eq!(plain(text), value, "{text:?}");
        }
    }

    #[test]
    fn numbers_arrive_as_the_json_that_kubectl_sends() {
        for (text, value) in [
            ("1", json!(1)),
            ("-1", json!(-1)),
            ("+1", json!(1)),
            ("-0", json!(0)),
            ("-0.0", json!(0)),
            ("0x1F", json!(31)),
            ("-0X1f", json!(-31)),
            ("0o17", json!(15)),
            ("017", json!(15)),
            ("0b11", json!(3)),
            ("08", json!(8)),
            ("09.5", json!(9.5)),
            ("1_000", json!(1000)),
            ("1.0", json!(1)),
            ("1.", json!(1)),
            ("1e3", json!(1000)),
            (".5", json!(0.5)),
            ("+.5", json!(0.5)),
            ("1.10", json!(1.1)),
            ("9223372036854775807", json!(i64::MAX)),
            ("-9223372036854775808", json!(i64::MIN)),
            ("18446744073709551615", json!(u64::MAX)),
            ("18446744073709551616", json!(1.844_674_407_370_955_2e19)),
            ("1e21", json!(1e21)),
        ] {
            assert_eq!(plain(text), value, "{text:?}");
        }
    }

    #[test]
    fn what_json_cannot_hold_is_refused() {
        for text in [".inf", "-.INF", ".nan"] {
            assert!(resolve(text, Notation::Plain).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_tag_overrides_how_the_text_looks() {
        for (text, tag, value) in [
            ("1", "str", json!("1")),
            ("1", "int", json!(1)),
            ("1", "float", json!(1)),
            ("yes", "bool", json!(true)),
            ("", "null", json!(null)),
            ("2001-01-01", "timestamp", json!("2001-01-01")),
        ] {
            assert_eq!(resolve(text, Notation::Tagged(tag)).unwrap(), value, "!!{tag} {text:?}");
        }
        for (text, tag) in [("x", "int"), ("1.0", "int"), ("x", "float"), ("x", "null"), ("aGk=", "binary")] {
            assert!(resolve(text, Notation::Tagged(tag)).is_err(), "!!{tag} {text:?}");
        }
        assert_eq!(resolve("12", Notation::ForeignTag).unwrap(), json!("12"));
        assert_eq!(resolve("12", Notation::Quoted).unwrap(), json!("12"));
    }

    #[test]
    fn a_key_that_is_no_text_is_written_out() {
        assert_eq!(key_name(&plain("yes")).as_deref(), Some("true"));
        assert_eq!(key_name(&plain("0x10")).as_deref(), Some("16"));
        assert_eq!(key_name(&plain("1.10")).as_deref(), Some("1.1"));
        assert_eq!(key_name(&plain("~")), None);
    }
}
