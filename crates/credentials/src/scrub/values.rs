//! Finds the values of credentials that are in use: plain, with any escapes, in base64 at any alignment, in hex.

use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use memchr::memmem;
use zeroize::Zeroizing;

use super::MIN_VALUE_BYTES;
use super::views::View;
use crate::Credential;

/// The values to find. Wiped on drop.
pub(super) struct Needles {
    /// Searched for as they are.
    plain: Vec<Zeroizing<Vec<u8>>>,
    /// Searched for where a value is expected.
    short: Vec<Zeroizing<Vec<u8>>>,
    /// Searched for in base64, with the alphabets of files and of URLs unified.
    base64: Vec<Zeroizing<Vec<u8>>>,
    /// Searched for in hex, in lower case.
    hex: Vec<Zeroizing<Vec<u8>>>,
}

impl Needles {
    pub(super) fn of(credentials: &[Credential]) -> Self {
        let mut needles = Self { plain: Vec::new(), short: Vec::new(), base64: Vec::new(), hex: Vec::new() };
        for credential in credentials {
            for secret in credential.secrets().filter(|secret| !secret.is_empty()) {
                needles.add(secret.reveal().as_bytes());
            }
            if !credential.password.is_empty() {
                // The form in docker configs and headers. A Secret's data is base64 once more.
                let pair =
                    Zeroizing::new(format!("{}:{}", credential.username, credential.password.reveal()));
                let encoded = Zeroizing::new(STANDARD.encode(&*pair));
                needles.add(encoded.trim_end_matches('=').as_bytes());
            }
        }
        needles
    }

    fn add(&mut self, value: &[u8]) {
        if value.len() < MIN_VALUE_BYTES {
            return self.short.push(Zeroizing::new(value.to_vec()));
        }
        self.plain.push(Zeroizing::new(value.to_vec()));
        if value.contains(&b' ') {
            let plus = value.iter().map(|byte| if *byte == b' ' { b'+' } else { *byte });
            self.plain.push(Zeroizing::new(plus.collect()));
        }
        self.base64.extend((0..3).map(|offset| base64_core(value, offset)));
        self.hex.push(Zeroizing::new(value.iter().flat_map(|byte| hex_digits(*byte)).collect()));
    }

    /// Where the values are in the text, in any encoding.
    pub(super) fn find(&self, text: &str) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        for view in View::all(text) {
            self.find_plain(&view, &mut found);
            self.find_short(&view, &mut found);
            // The surroundings of a value are encoded with it, and the edges mix bits of both, so all of it is hidden.
            let folded = fold(&view.bytes, |byte| match byte {
                b'-' => b'+',
                b'_' => b'/',
                other => other,
            });
            find_runs(&view, &folded, &self.base64, is_base64, &mut found);
            let lower = fold(&view.bytes, |byte| byte.to_ascii_lowercase());
            find_runs(&view, &lower, &self.hex, |byte| byte.is_ascii_hexdigit(), &mut found);
        }
        found
    }

    fn find_plain(&self, view: &View, found: &mut Vec<Range<usize>>) {
        for needle in &self.plain {
            let starts = memmem::find_iter(&view.bytes, needle.as_slice());
            found.extend(starts.map(|start| view.place(&(start..start + needle.len()))));
        }
    }

    /// A short value counts if it is a word of its own after a colon, an equals sign or a quote.
    fn find_short(&self, view: &View, found: &mut Vec<Range<usize>>) {
        for needle in &self.short {
            let ranges =
                memmem::find_iter(&view.bytes, needle.as_slice()).map(|start| start..start + needle.len());
            let values = ranges.filter(|range| {
                let before = range.start.checked_sub(1).map(|place| view.bytes[place]);
                let is_end = view.bytes.get(range.end).is_none_or(|byte| !byte.is_ascii_alphanumeric());
                is_end && before.is_some_and(|byte| b":=\"'".contains(&byte))
            });
            found.extend(values.map(|range| view.place(&range)));
        }
    }
}

fn find_runs(
    view: &View,
    folded: &[u8],
    needles: &[Zeroizing<Vec<u8>>],
    belongs: fn(u8) -> bool,
    found: &mut Vec<Range<usize>>,
) {
    for needle in needles {
        let mut covered = 0;
        for start in memmem::find_iter(folded, needle.as_slice()) {
            if start + needle.len() <= covered {
                continue;
            }
            let run = view.widen(start..start + needle.len(), belongs);
            covered = run.end;
            found.push(view.place(&run));
        }
    }
}

/// The characters of base64 that depend only on the value, if it starts `offset` bytes after a group of three.
fn base64_core(value: &[u8], offset: usize) -> Zeroizing<Vec<u8>> {
    const BITS_PER_CHARACTER: usize = 6;
    let mut padded = Zeroizing::new(vec![0; offset]);
    padded.extend_from_slice(value);
    let encoded = Zeroizing::new(STANDARD.encode(&*padded));
    let first = (offset * 8).div_ceil(BITS_PER_CHARACTER);
    let end = padded.len() * 8 / BITS_PER_CHARACTER;
    Zeroizing::new(encoded.as_bytes()[first..end].to_vec())
}

fn hex_digits(byte: u8) -> [u8; 2] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/-_=".contains(&byte)
}

fn fold(bytes: &[u8], each: fn(u8) -> u8) -> Vec<u8> {
    bytes.iter().map(|byte| each(*byte)).collect()
}
