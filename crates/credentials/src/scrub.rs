//! Takes credentials out of texts that come from elsewhere: a runtime's error, a plugin's last words.
//!
//! First the values that are in use, in whatever encoding; then whatever looks like a credential. Every text goes
//! through here before it reaches a status, an event, a log line or a metric.

use std::ops::Range;

use crate::Credential;

mod shapes;
mod values;
mod views;

/// What stands where something was taken out. It is shorter than any value that is looked for everywhere, so it
/// cannot spell one.
pub const MARK: &str = "***";
/// Values of fewer bytes are looked for only where a value is expected: `ab` is in half of all sentences.
pub const MIN_VALUE_BYTES: usize = 4;

/// The text without the credentials: their values in any encoding, and anything that has the shape of one.
pub fn scrub(text: &str, credentials: &[Credential]) -> String {
    let needles = values::Needles::of(credentials);
    let scrubbed = shapes::hide(&hide(text, needles.find(text)));
    // A mark and its neighbours may spell a value together. Then nothing of the text is worth that risk.
    if needles.find(&scrubbed).is_empty() { scrubbed } else { MARK.to_owned() }
}

/// Replaces the ranges, which may overlap, each group of touching ones by one mark.
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
