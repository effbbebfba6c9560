//! The number of a rule or of a section.

use std::fmt;

/// No number has more digits in a row.
const MOST_DIGITS: usize = 3;

/// What can be cited of a page.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Number {
    /// A letter and digits, such as `R45`.
    Rule(char, String),
    /// Digits, with dots between them if there are several, such as `7.10`.
    Section(String),
}

impl Number {
    pub fn parse(text: &str) -> Option<Self> {
        let mut rest = text.chars();
        match rest.next()? {
            letter @ 'A'..='Z' if is_digits(rest.as_str()) => {
                Some(Self::Rule(letter, rest.as_str().to_owned()))
            }
            _ => text.split('.').all(is_digits).then(|| Self::Section(text.to_owned())),
        }
    }

    /// One number, or the two ends of a range: `R45–R49`, `R45–49`, `7.1-7.4`.
    pub fn parse_range(text: &str) -> Option<Vec<Self>> {
        let Some((first, last)) = text.split_once(['–', '-']) else {
            return Some(vec![Self::parse(text)?]);
        };
        let (first, last) = (Self::parse(first)?, Self::parse(last)?);
        let last = match (&first, last) {
            (Self::Rule(letter, _), Self::Section(digits)) => Self::Rule(*letter, digits),
            (_, last) => last,
        };
        Some(vec![first, last])
    }
}

impl fmt::Display for Number {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Rule(letter, digits) => write!(formatter, "{letter}{digits}"),
            Self::Section(digits) => write!(formatter, "{digits}"),
        }
    }
}

fn is_digits(text: &str) -> bool {
    (1..=MOST_DIGITS).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}
