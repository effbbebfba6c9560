//! Turns the bytes of a file into text, or into a sentence about why they are not text.

use super::sources::MAX_FILE_BYTES;
use crate::yaml::Position;

/// The bytes as text, or where and why they are not text.
pub fn decode(bytes: Vec<u8>) -> Result<String, (Position, String)> {
    if bytes.len() > MAX_FILE_BYTES {
        let message = format!(
            "the file is larger than {} MiB, which is more than lint reads; split it",
            MAX_FILE_BYTES >> 20
        );
        return Err((Position::START, message));
    }
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        let message = "the file is UTF-16, as PowerShell's `>` writes it; save it as UTF-8";
        return Err((Position::START, message.to_owned()));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let before = String::from_utf8_lossy(&error.as_bytes()[..valid]);
        (Position::after(&before), "the file is not UTF-8 text from here on; is it a manifest?".to_owned())
    })?;
    match text.char_indices().find(|(_, c)| is_unprintable(*c)) {
        None => Ok(text),
        Some((offset, c)) => {
            let message =
                format!("the file has the control character U+{:04X} here; is it a manifest?", u32::from(c));
            Err((Position::after(&text[..offset]), message))
        }
    }
}

/// Characters that YAML does not allow; binary files are full of them.
fn is_unprintable(c: char) -> bool {
    c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{85}')
}
