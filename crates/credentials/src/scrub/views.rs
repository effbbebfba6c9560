//! A text with its escapes undone, byte by byte with the positions they came from. Searching a view finds a value
//! however many of its characters were escaped.

use std::ops::Range;

/// Bytes, and the position of each in the text.
pub(super) struct View {
    pub(super) bytes: Vec<u8>,
    places: Vec<Range<usize>>,
}

impl View {
    /// Every way in which the text may have to be read. Those that change nothing are left out.
    pub(super) fn all(text: &str) -> Vec<Self> {
        let plain = Self {
            bytes: text.as_bytes().to_vec(),
            places: (0..text.len()).map(|place| place..place + 1).collect(),
        };
        let query = plain.undo(b'%', percent);
        let quoted = plain.undo(b'\\', backslash);
        // A quoted text is quoted again when an error is put into JSON. A query may be quoted as well.
        let twice = quoted.as_ref().and_then(|view| view.undo(b'\\', backslash));
        let mixed = quoted.as_ref().and_then(|view| view.undo(b'%', percent));
        let inner = query.as_ref().and_then(|view| view.undo(b'\\', backslash));
        // After a stray backslash, the first escape of a value reads as an escaped backslash and a plain rest.
        let stray = plain.undo(b'\\', |bytes| backslash(bytes).filter(|_| bytes.get(1) != Some(&b'\\')));
        [Some(plain), query, quoted, twice, mixed, inner, stray].into_iter().flatten().collect()
    }

    /// The position in the text of a range in this view.
    pub(super) fn place(&self, range: &Range<usize>) -> Range<usize> {
        match self.places.get(range.clone()) {
            Some([first, .., last]) => first.start..last.end,
            Some([only]) => only.clone(),
            _ => 0..0,
        }
    }

    /// The widest range around `range` whose bytes all satisfy `belongs`.
    pub(super) fn widen(&self, range: Range<usize>, belongs: fn(u8) -> bool) -> Range<usize> {
        let before = self.bytes[..range.start].iter().rev().take_while(|byte| belongs(**byte)).count();
        let after = self.bytes[range.end..].iter().take_while(|byte| belongs(**byte)).count();
        range.start - before..range.end + after
    }

    /// Undoes the escapes that start with `mark`; `None` if there are none.
    fn undo(&self, mark: u8, escape: fn(&[u8]) -> Option<Escape>) -> Option<Self> {
        memchr::memchr(mark, &self.bytes)?;
        let mut view = Self { bytes: Vec::with_capacity(self.bytes.len()), places: Vec::new() };
        let mut at = 0;
        while at < self.bytes.len() {
            let found = if self.bytes[at] == mark { escape(&self.bytes[at..]) } else { None };
            let taken = found.as_ref().map_or(1, |(taken, _)| *taken);
            let bytes = found.as_ref().map_or(&self.bytes[at..=at], |(_, bytes)| bytes);
            let place = self.place(&(at..at + taken));
            view.places.extend(bytes.iter().map(|_| place.clone()));
            view.bytes.extend_from_slice(bytes);
            at += taken;
        }
        Some(view)
    }
}

/// How many bytes an escape takes, and what it stands for.
type Escape = (usize, Vec<u8>);

fn percent(bytes: &[u8]) -> Option<Escape> {
    Some((3, vec![u8::try_from(hexadecimal(bytes.get(1..3)?)?).ok()?]))
}

/// The escapes of JSON, and of Go's and Rust's quoted texts.
fn backslash(bytes: &[u8]) -> Option<Escape> {
    let plain = |byte: u8| Some((2, vec![byte]));
    match bytes.get(1)? {
        b'n' => plain(b'\n'),
        b'r' => plain(b'\r'),
        b't' => plain(b'\t'),
        b'b' => plain(8),
        b'f' => plain(12),
        b'a' => plain(7),
        b'v' => plain(11),
        b'x' => Some((4, vec![u8::try_from(hexadecimal(bytes.get(2..4)?)?).ok()?])),
        b'u' if bytes.get(2) == Some(&b'{') => braced(bytes),
        b'u' => unicode(bytes),
        byte @ (b'"' | b'\'' | b'\\' | b'/') => plain(*byte),
        _ => None,
    }
}

/// `\u{1f511}`, as Rust writes it.
fn braced(bytes: &[u8]) -> Option<Escape> {
    const MAX_DIGITS: usize = 6;
    let length = bytes.iter().take(3 + MAX_DIGITS + 1).position(|byte| *byte == b'}')?;
    Some((length + 1, utf8(hexadecimal(bytes.get(3..length)?)?)?))
}

/// `\ud83d\udd11` or `\u0041`, as JSON writes it.
fn unicode(bytes: &[u8]) -> Option<Escape> {
    let high = hexadecimal(bytes.get(2..6)?)?;
    if !(0xd800..0xdc00).contains(&high) {
        return Some((6, utf8(high)?));
    }
    let low =
        bytes.get(6..12).filter(|rest| rest.starts_with(b"\\u")).and_then(|rest| hexadecimal(&rest[2..]))?;
    let low = low.checked_sub(0xdc00).filter(|low| *low < 0x400)?;
    Some((12, utf8(0x1_0000 + ((high - 0xd800) << 10) + low)?))
}

fn utf8(code: u32) -> Option<Vec<u8>> {
    char::from_u32(code).map(|character| character.to_string().into_bytes())
}

fn hexadecimal(digits: &[u8]) -> Option<u32> {
    let all_digits = !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
    let text = std::str::from_utf8(digits).ok().filter(|_| all_digits)?;
    u32::from_str_radix(text, 16).ok()
}
