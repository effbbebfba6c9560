//! YAML bodies, for people who talk to the API by hand.

use serde_json::Value;
use serde_saphyr::options::DuplicateKeyPolicy;

use super::decode::Decoded;
use crate::refusal::Refusal;

/// How deep a document may be nested. The reader needs about 20 KiB of stack per level in a debug build, and the thread
/// of a test has 2 MiB.
const MAX_DEPTH: usize = 40;

/// Reads one document. As in JSON, if a field is given twice, the last value counts and there is a complaint.
pub(super) fn decode(text: &[u8]) -> Result<Decoded, Refusal> {
    let (value, complaints) = match read(text, DuplicateKeyPolicy::Error) {
        Ok(value) => (value, Vec::new()),
        Err(complaint) => {
            let refusal =
                |error| Refusal::bad_request(format!("the body of the request is not YAML: {error}"));
            (read(text, DuplicateKeyPolicy::LastWins).map_err(refusal)?, vec![complaint.to_string()])
        }
    };
    Ok(Decoded { value, complaints })
}

fn read(text: &[u8], duplicate_keys: DuplicateKeyPolicy) -> Result<Value, serde_saphyr::Error> {
    let options = serde_saphyr::options! {
        // Anchors would let a small body grow beyond every bound.
        budget: serde_saphyr::budget! { max_anchors: 0, max_aliases: 0, max_documents: 1, max_depth: MAX_DEPTH },
        duplicate_keys: duplicate_keys,
        with_snippet: false,
    };
    serde_saphyr::from_slice_with_options(text, options)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_that_is_given_twice_is_noticed_and_its_last_value_counts() {
        let decoded = decode(b"a: 1\nb: [x, {c: null}]\na: 2\n").unwrap();
        assert_eq!(decoded.value, json!({ "a": 2, "b": ["x", { "c": null }] }));
        assert_eq!(decoded.complaints.len(), 1);
    }

    #[test]
    fn anchors_and_broken_yaml_are_refused() {
        let deep = "[".repeat(200) + &"]".repeat(200);
        for text in ["a: &x 1\nb: *x", "a: [", "a: 1\n---\nb: 2", &deep] {
            assert!(decode(text.as_bytes()).is_err(), "{text}");
        }
    }
}
