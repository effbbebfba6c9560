//! Regular expressions by their text, each compiled once.

use std::collections::BTreeMap;
use std::sync::{OnceLock, PoisonError, RwLock};

use regex::Regex;

/// Whether a text matches a pattern of ours. Only for patterns that are constants of the program: each stays compiled
/// for good.
pub fn matches(pattern: &'static str, text: &str) -> bool {
    static COMPILED: OnceLock<RwLock<BTreeMap<&'static str, Regex>>> = OnceLock::new();
    let compiled = COMPILED.get_or_init(RwLock::default);
    // A panic elsewhere cannot leave half an entry, so a poisoned lock is still good.
    if let Some(regex) = compiled.read().unwrap_or_else(PoisonError::into_inner).get(pattern) {
        return regex.is_match(text);
    }
    let regex = Regex::new(pattern).expect("our own patterns are regular expressions");
    let verdict = regex.is_match(text);
    compiled.write().unwrap_or_else(PoisonError::into_inner).insert(pattern, regex);
    verdict
}
