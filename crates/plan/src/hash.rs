//! A small hash that is the same on every machine and in every release, for names that must come out alike again.
//! It is no protection against somebody who wants two texts to collide.

const OFFSET: u32 = 0x811c_9dc5;
const PRIME: u32 = 0x0100_0193;

/// FNV-1a with 32 bits.
pub(crate) fn fnv1a(text: &str) -> u32 {
    text.bytes().fold(OFFSET, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_the_hashes_that_the_algorithm_is_known_by() {
        assert_eq!(["", "a", "foobar"].map(fnv1a), [0x811c_9dc5, 0xe40c_292c, 0xbf9c_f968]);
    }
}
