//! What holds for every text that a runtime may fail with: it has a class, and what images are called and whether it is
//! shouted makes no difference to it. The fuzz target and the tests share it.

use prewarm_runtime::{Code, classify, is_overload};

/// Every gRPC code.
const CODES: std::ops::RangeInclusive<i32> = 0..=16;

/// Names that are made of words from failures.
const NAMES: [&str; 3] =
    ["reg.example/x509:500", "\"unauthorized/429:not-found\"", "https://no/space?status=503"];

/// Checks one text.
pub fn check(text: &str) {
    let (class, overload) = (classify(Code::Unknown, text), is_overload(text));
    assert_eq!(classify(Code::Unknown, &text.to_ascii_uppercase()), class, "{text:?}");
    for name in NAMES {
        for with_name in [format!("{text} {name}"), format!("{name} {text}")] {
            assert_eq!(classify(Code::Unknown, &with_name), class, "{with_name:?}");
            assert_eq!(is_overload(&with_name), overload, "{with_name:?}");
        }
    }
    for code in CODES {
        // A code decides only if the text says nothing.
        let by_code = classify(Code::from_i32(code), text);
        assert!(by_code == class || class == classify(Code::Unknown, ""), "{code} {text:?}");
    }
}
