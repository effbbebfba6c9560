//! What holds for every text that anyone offers as an image reference. The fuzz target and the tests share it.

use std::sync::LazyLock;

use prewarm_api::reference::{ImageRef, NAME_PATTERN, PATTERN, ParseError, TAG_PATTERN};
use regex::Regex;

/// No error message is longer, whatever the text was.
const MAX_MESSAGE_CHARS: usize = 1024;

static REFERENCE: LazyLock<Regex> = LazyLock::new(|| Regex::new(PATTERN).expect("the pattern compiles"));
static NAME: LazyLock<Regex> = LazyLock::new(|| Regex::new(NAME_PATTERN).expect("the pattern compiles"));
static TAG: LazyLock<Regex> = LazyLock::new(|| Regex::new(TAG_PATTERN).expect("the pattern compiles"));

/// Checks the text as a reference, and its two halves around each line end as a name and a tag.
pub fn check(text: &str) {
    match ImageRef::parse(text) {
        Ok(reference) => check_accepted(text, &reference),
        Err(error) => check_refused(REFERENCE.is_match(text), &error),
    }
    if let Some((name, tag)) = text.split_once('\n') {
        check_parts(name, tag);
    }
}

fn check_accepted(text: &str, reference: &ImageRef) {
    assert!(REFERENCE.is_match(text), "the pattern refuses {text:?}");
    assert!(NAME.is_match(reference.name()), "{text:?}");
    assert!(TAG.is_match(reference.tag()), "{text:?}");
    assert_eq!(reference.is_digest(), text.contains('@'));

    let same = Ok(reference.clone());
    assert_eq!(ImageRef::parse(&reference.to_string()), same, "the familiar form of {text:?}");
    assert_eq!(ImageRef::parse(&reference.full()), same, "the full form of {text:?}");
    assert_eq!(ImageRef::from_parts(reference.name(), reference.tag()), same, "the parts of {text:?}");

    let full_name = format!("{}/{}", reference.registry(), reference.repository());
    assert!(reference.full().starts_with(&full_name), "{text:?}");
    assert!(full_name.ends_with(reference.name()), "{text:?}");
}

/// A refused text may match the pattern for two reasons only.
fn check_refused(matches_pattern: bool, error: &ParseError) {
    let beyond_a_pattern = matches!(error, ParseError::ImageId | ParseError::TooLong { .. });
    assert!(beyond_a_pattern || !matches_pattern, "{error}");

    let message = error.to_string();
    assert!(message.chars().count() <= MAX_MESSAGE_CHARS, "{message}");
    assert!(!message.contains(char::is_control), "{message:?}");
}

fn check_parts(name: &str, tag: &str) {
    let matches_patterns = NAME.is_match(name) && TAG.is_match(tag);
    match ImageRef::from_parts(name, tag) {
        Ok(reference) => {
            assert!(matches_patterns, "{name:?} {tag:?}");
            assert_eq!(reference.tag(), tag);
            let joined =
                if reference.is_digest() { format!("{name}@{tag}") } else { format!("{name}:{tag}") };
            assert_eq!(ImageRef::parse(&joined), Ok(reference));
        }
        Err(error) => check_refused(matches_patterns, &error),
    }
}
