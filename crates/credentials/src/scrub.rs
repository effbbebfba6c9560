//! Removes credentials from foreign texts: a runtime's error, a plugin's standard error.
//!
//! First the values that are in use, in whatever encoding; then everything that looks like a credential. Every text
//! passes through here before it reaches a status, an event, a log line or a metric.

use std::ops::Range;

use crate::Credential;

mod shapes;
mod values;
mod views;

/// The replacement for what was removed. It is shorter than any value that is searched for everywhere, so it cannot
/// contain one.
pub const MARK: &str = "***";
/// Shorter values, in bytes, are searched for only where a value is expected: `ab` is in half of all sentences.
pub const MIN_VALUE_BYTES: usize = 4;

/// The text without the credentials: their values in any encoding, and anything that has the shape of one.
pub fn scrub(text: &str, credentials: &[Credential]) -> String {
    let needles = values::Needles::of(credentials);
    let scrubbed = shapes::hide(&hide(text, needles.find(text)));
    // A mark and its neighbours may form a value together. No text is worth that risk.
    if needles.find(&scrubbed).is_empty() { scrubbed } else { MARK.to_owned() }
}

/// Replaces the ranges, which may overlap. Each group of touching ranges becomes one mark.
fn hide(text: &str, mut ranges: Vec<Range<usize>>) -> String {
    ranges.sort_by_key(|range| range.start);
    let (mut out, mut kept_to) = (String::with_capacity(text.len()), 0);
    for range in ranges {
        let (start, end) = (text.floor_char_boundary(range.start), text.ceil_char_boundary(range.end));
        if start >= kept_to && (start > kept_to || kept_to == 0) {
            out.push_str(&text[kept_to..start]);
            out.push_str(MARK);
        }
        kept_to = kept_to.max(end);
    }
    out.push_str(&text[kept_to..]);
    out
}

#[cfg(test)]
mod tests;
