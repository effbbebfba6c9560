//! Prepares foreign texts for a message: on one line, with each cause once, and no longer than a bound.

use std::error::Error;

/// Marks where something was left out.
const MARK: &str = "…";

/// A text on one line and without control characters, which would hide text in a terminal and grow sixfold in JSON.
pub fn plain(text: &str) -> String {
    let words = text.split(|one: char| one.is_whitespace() || one.is_control());
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// At most this many bytes of a text. A longer one loses its middle: the beginning says what it is about, and the end
/// has the cause or the advice.
pub fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let Some(room) = most.checked_sub(MARK.len()) else { return String::new() };
    let head = text.floor_char_boundary(room.div_ceil(2));
    let tail = text.ceil_char_boundary(text.len() - room / 2);
    format!("{}{MARK}{}", &text[..head], &text[tail..])
}

/// An error and its causes. A cause that the error already mentions is not repeated.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    with_causes(&error.to_string(), error.source())
}

/// A text and its causes, for errors that print more than their message.
pub fn with_causes(text: &str, mut source: Option<&(dyn Error + 'static)>) -> String {
    let mut message = text.to_owned();
    while let Some(cause) = source {
        let words = cause.to_string();
        if !message.contains(&words) {
            message = format!("{message}: {words}");
        }
        source = cause.source();
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Trouble {
        text: &'static str,
        source: Option<Box<Trouble>>,
    }

    fn trouble(texts: &[&'static str]) -> Trouble {
        let (text, causes) = texts.split_first().unwrap();
        let source = (!causes.is_empty()).then(|| Box::new(trouble(causes)));
        Trouble { text, source }
    }

    #[test]
    fn lines_and_control_characters_become_single_spaces() {
        assert_eq!(plain(" a\n\tb\u{1b}[0m  c\0 "), "a b [0m c");
    }

    #[test]
    fn a_text_within_its_bound_stays_and_a_longer_one_loses_its_middle() {
        assert_eq!(cut("0123456789", 10), "0123456789");
        assert_eq!(cut("0123456789", 9), "012…789");
        assert_eq!(cut("ääääää", 9), "ä…ä");
        assert_eq!(cut("0123456789", 3), "…");
        assert_eq!(cut("0123456789", 2), "");
    }

    #[test]
    fn each_cause_is_mentioned_once() {
        let nested = trouble(&["cannot connect", "tcp: refused by 10.0.0.1", "refused", "no route"]);
        assert_eq!(chain(&nested), "cannot connect: tcp: refused by 10.0.0.1: no route");
        assert_eq!(chain(&trouble(&["alone"])), "alone");
        assert_eq!(with_causes("", trouble(&["x", "cause"]).source()), ": cause");
    }
}
