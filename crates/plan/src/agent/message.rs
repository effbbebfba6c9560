//! The sentence of a failure: what was not pulled, why, how often it was tried, and what to do.

use prewarm_api::kruise::FailureClass;
use prewarm_api::text::{cut, plain};

/// The most bytes that a message of a status has.
pub const MOST_BYTES: usize = 512;
/// The most bytes that a reference takes of a message. Almost all are far shorter, and the entry beside it has the whole one.
const MOST_OF_REFERENCE: usize = 140;
/// The most bytes that advice takes of a message.
const MOST_OF_ADVICE: usize = 160;
/// All problems with credentials together may take this much of a message, or half of what is left.
const LEAST_OF_CREDENTIALS: usize = 80;
/// At least this much is left for the runtime's own words; the bounds above see to it.
const LEAST_OF_TEXT: usize = 16;

/// What is known about a failed attempt.
#[derive(Clone, Copy, Debug)]
pub struct Failure<'a> {
    /// The image, as the runtime was asked for it.
    pub reference: &'a str,
    pub class: FailureClass,
    /// What the runtime said, without credentials.
    pub text: &'a str,
    /// How many attempts were begun, this one included.
    pub begun: u32,
    /// How many attempts there can be.
    pub allowed: u32,
    /// What was wrong with credentials on the way, such as a Secret that does not exist.
    pub credentials: &'a [String],
    /// What a person can do about it.
    pub advice: &'a str,
}

/// The sentence, in at most [`MOST_BYTES`]. Reference, class, count and advice survive however long the rest is.
pub fn sentence(failure: &Failure<'_>) -> String {
    let reference = cut(&plain(failure.reference), MOST_OF_REFERENCE);
    let (class, begun, allowed) = (words(failure.class), failure.begun, failure.allowed);
    let head = format!("cannot pull {reference}: {class} (attempt {begun} of {allowed})");
    let mut tail = String::new();
    let advice = plain(failure.advice);
    if !advice.is_empty() {
        tail = format!("; {}", cut(&advice, MOST_OF_ADVICE));
    }
    if !failure.credentials.is_empty() {
        let left = MOST_BYTES.saturating_sub(head.len() + tail.len());
        let problems = plain(&failure.credentials.join("; "));
        tail = format!("; credentials: {}{tail}", cut(&problems, LEAST_OF_CREDENTIALS.max(left / 2)));
    }
    let text = plain(failure.text);
    if text.is_empty() {
        return head + &tail;
    }
    let room = MOST_BYTES.saturating_sub(head.len() + tail.len() + 2).max(LEAST_OF_TEXT);
    format!("{head}: {}{tail}", cut(&text, room))
}

/// The sentence of a task that waits until a mirror has its image, in at most [`MOST_BYTES`].
pub fn unserved(reference: &str, text: &str) -> String {
    let reference = cut(&plain(reference), MOST_OF_REFERENCE);
    let tail = "; it is asked for again within 30 s";
    let head = format!("no mirror of this node has {reference} yet: ");
    let room = MOST_BYTES.saturating_sub(head.len() + tail.len());
    format!("{head}{}{tail}", cut(&plain(text), room))
}

/// A class in words.
const fn words(class: FailureClass) -> &'static str {
    match class {
        FailureClass::NotFound => "not found",
        FailureClass::NoPlatform => "no image for this platform",
        FailureClass::InvalidReference => "invalid reference",
        FailureClass::Unauthorized => "not authorized",
        FailureClass::RateLimited => "rate limited",
        FailureClass::Unreachable => "registry unreachable",
        FailureClass::Tls => "TLS failed",
        FailureClass::NoSpace => "no space",
        FailureClass::TimedOut => "timed out",
        FailureClass::Corrupt => "corrupt",
        FailureClass::RuntimeCrash => "the container runtime stopped",
        FailureClass::Unknown => "failed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Failure<'static> = Failure {
        reference: "registry.example/shop/web:v9",
        class: FailureClass::NotFound,
        text: "manifest unknown",
        begun: 2,
        allowed: 4,
        credentials: &[],
        advice: "check the tag, or push the image",
    };

    #[test]
    fn a_sentence_says_what_why_how_often_and_what_to_do() {
        assert_eq!(
            sentence(&PLAIN),
            "cannot pull registry.example/shop/web:v9: not found (attempt 2 of 4): manifest unknown; \
             check the tag, or push the image"
        );
    }

    #[test]
    fn problems_with_credentials_stand_before_the_advice() {
        let credentials =
            ["Secret shop/pull does not exist".to_owned(), "Secret shop/old has no data".to_owned()];
        let class = FailureClass::Unauthorized;
        let failure =
            Failure { class, text: "", credentials: &credentials, advice: "create the Secret", ..PLAIN };
        assert_eq!(
            sentence(&failure),
            "cannot pull registry.example/shop/web:v9: not authorized (attempt 2 of 4); credentials: \
             Secret shop/pull does not exist; Secret shop/old has no data; create the Secret"
        );
    }

    #[test]
    fn lines_and_control_characters_become_spaces() {
        let failure = Failure { text: " rpc error:\n\tcode\u{1b}[31m = x\0 ", advice: "", ..PLAIN };
        assert_eq!(
            sentence(&failure),
            "cannot pull registry.example/shop/web:v9: not found (attempt 2 of 4): rpc error: code [31m = x"
        );
    }

    #[test]
    fn everything_but_the_middle_of_long_parts_survives_the_cut() {
        let text = format!("first {} last", "words ".repeat(10_000));
        let failure = Failure { text: &text, ..PLAIN };
        let sentence = sentence(&failure);
        assert!((MOST_BYTES - 1..=MOST_BYTES).contains(&sentence.len()), "{}", sentence.len());
        assert!(
            sentence
                .starts_with("cannot pull registry.example/shop/web:v9: not found (attempt 2 of 4): first ")
        );
        assert!(sentence.ends_with(" last; check the tag, or push the image"), "{sentence}");
    }

    #[test]
    fn no_sentence_is_longer_than_the_bound() {
        let long = "ü…\u{1f980}\n\"".repeat(10_000);
        assert!(unserved(&long, &long).len() <= MOST_BYTES);
        let credentials = vec![long.clone(); 3];
        for class in FailureClass::ALL {
            let failure = Failure {
                reference: &long,
                class,
                text: &long,
                begun: u32::MAX,
                allowed: u32::MAX,
                credentials: &credentials,
                advice: &long,
            };
            let sentence = sentence(&failure);
            assert!(sentence.len() <= MOST_BYTES, "{} bytes: {sentence}", sentence.len());
        }
    }
}
