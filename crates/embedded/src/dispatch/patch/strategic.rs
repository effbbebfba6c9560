//! The part of strategic merge patches that needs no knowledge of types: maps are merged, as in a merge patch. kubectl
//! sends them for every built-in kind. A patch that would merge a list by a key is refused.

use serde_json::Value;

use crate::refusal::Refusal;
use crate::resource::Resource;

/// Lists that are replaced as a whole in every built-in kind that has them.
const WHOLE_LISTS: [&str; 2] = ["rules", "subjects"];

/// Checks that a patch means the same as a merge patch.
pub fn check(resource: &Resource, patch: &Value) -> Result<(), Refusal> {
    if resource.is_custom {
        return Err(Refusal::unsupported_media_type(
            "the body of the request was in an unknown format - accepted media types include: \
             application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
        ));
    }
    let top = patch.as_object().into_iter().flatten();
    let mut doubtful = top.filter_map(|(name, value)| {
        let is_whole = WHOLE_LISTS.contains(&name.as_str()) && value.is_array();
        if is_whole { None } else { doubt(name, value) }
    });
    match doubtful.next() {
        None => Ok(()),
        Some(field) => Err(Refusal::unsupported_media_type(format!(
            "the embedded API merges maps but not lists in strategic merge patches, and this one has {field:?}: use a \
             merge patch, a JSON patch, or kubectl replace"
        ))),
    }
}

/// The first field whose meaning depends on its type: a list, or a directive such as `$patch`.
fn doubt(name: &str, value: &Value) -> Option<String> {
    if name.starts_with('$') || value.is_array() {
        return Some(name.to_owned());
    }
    value.as_object().into_iter().flatten().find_map(|(name, value)| doubt(name, value))
}
