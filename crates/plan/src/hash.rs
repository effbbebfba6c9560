//! Hashes that are the same on every machine and in every release, for names that must come out alike again.
//! They are no protection against somebody who wants two texts to collide.

use std::fmt::Write as _;

use sha1::{Digest as _, Sha1};

const OFFSET: u32 = 0x811c_9dc5;
const PRIME: u32 = 0x0100_0193;

/// FNV-1a with 32 bits.
pub(crate) fn fnv1a(text: &str) -> u32 {
    text.bytes().fold(OFFSET, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(PRIME))
}

/// The first bytes of a SHA-1, as clients of ofen's API know them from names.
pub(crate) fn sha1_digits(text: &str, bytes: usize) -> String {
    Sha1::digest(text).iter().take(bytes).fold(String::new(), |mut digits, byte| {
        // Writing into a text cannot fail.
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_the_hashes_that_the_algorithm_is_known_by() {
        assert_eq!(["", "a", "foobar"].map(fnv1a), [0x811c_9dc5, 0xe40c_292c, 0xbf9c_f968]);
        assert_eq!(sha1_digits("abc", 4), "a9993e36");
    }
}
