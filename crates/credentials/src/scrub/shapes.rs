//! Hides what looks like a credential, whether or not it is known here. Each shape keeps the words around the value, so
//! that a sentence still says what went wrong.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::MARK;

/// Words that follow `Bearer` or `Basic` in sentences.
const PROSE: [&str; 8] = [
    "authentication",
    "authorization",
    "challenge",
    "challenges",
    "credential",
    "credentials",
    "information",
    "requests",
];

/// What follows `authorization:` in sentences of runtimes that do not quote a header.
const SENTENCES: [&str; 2] = ["authorization failed", "server message:"];

/// In each shape the first group stays and the second is hidden.
const SHAPES: [&str; 6] = [
    // https://user:password@host, up to the at sign that ends the authority. A digest comes after a slash.
    r#"([a-z][a-z0-9+.-]*://)([^/?#\s"'<>]+)@"#,
    // Headers, to the end of the line, quote or list; also in a printed map.
    r#"\b((?:proxy-)?authorization[\\"']*\s*[:=]\s*[\\"'\[(]*|x-registry-(?:auth|config)[\\"']*\s*[:=]\s*[\\"'\[(]*|(?:set-)?cookie[\\"']*\s*[:=]\s*[\\"'\[(]*)([^\r\n"'\\\])]+)"#,
    // The value of a header without its name.
    r"\b((?:bearer|basic)\s+)([a-z0-9._~+/=:-]{8,})",
    // Signed tokens.
    r"()(\beyj[a-z0-9_-]{8,}\.[a-z0-9_-]*(?:\.[a-z0-9_-]*)?)",
    // Query parameters and settings.
    r#"\b((?:[a-z0-9]+[-_])*(?:token|sig|signature|password|passwd|pwd|secret|credential|api-?key|accesskeyid|key-pair-id)=)([^&\s"'<>#\\,;)]+)"#,
    // Fields of JSON.
    r#"((?:password|passwd|\bauth|token|secret)[\\]*["'][\\]*\s*:\s*[\\]*["'])([^"'\\]+)"#,
];

static COMPILED: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    SHAPES.iter().map(|shape| Regex::new(&format!("(?i){shape}")).expect("the shapes are patterns")).collect()
});

pub(super) fn hide(text: &str) -> String {
    let mut text = Cow::Borrowed(text);
    for shape in COMPILED.iter() {
        if let Cow::Owned(hidden) = shape.replace_all(&text, hide_one) {
            text = Cow::Owned(hidden);
        }
    }
    text.into_owned()
}

fn hide_one(found: &Captures<'_>) -> String {
    let (whole, kept, value) = (&found[0], &found[1], &found[2]);
    let lower = value.to_ascii_lowercase();
    let is_sentence = SENTENCES.iter().any(|beginning| lower.starts_with(beginning));
    if is_sentence || PROSE.contains(&lower.trim_end_matches(['.', ':'])) {
        return whole.to_owned();
    }
    let rest = &whole[kept.len() + value.len()..];
    format!("{kept}{MARK}{rest}")
}
