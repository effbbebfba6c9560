//! What a newer version wrote into a value and this one cannot read: it is kept when the value is written anew.
//!
//! ```text
//! stored                              as it was read         what is unknown
//! {"a": 1, "new": 2}                  {"a": 1}               new = 2
//! {"tags": [{"tag": "1", "new": 2}]}  {"tags": [{"tag": "1"}]}  new = 2 of the tag 1
//! ```
//!
//! It goes with the field or the item of a list that it is a part of. Items are recognised by the fields that name them.

use std::collections::BTreeMap;

use serde_json::Value;

/// The fields that tell items of lists apart, as far as an item has them: a tag in one version, a job, a condition.
const NAMES: [&str; 4] = ["tag", "version", "uid", "type"];

/// The part of a value that cannot be read.
#[derive(Clone, Debug, PartialEq)]
pub enum Unknown {
    /// All of it.
    Whole(Value),
    /// Something of these fields.
    Fields(BTreeMap<String, Unknown>),
    /// Something of these items of a list.
    Items(Vec<(Value, Unknown)>),
}

impl Unknown {
    /// What is stored and not in `known`, which is the same value as it was read; nothing if all of it is known.
    pub fn of(stored: &Value, known: &Value) -> Option<Self> {
        match (stored, known) {
            (Value::Object(stored), Value::Object(known)) => {
                let of = |name: &String, value: &Value| match known.get(name) {
                    Some(known) => Self::of(value, known),
                    None => Some(Self::Whole(value.clone())),
                };
                let fields = stored.iter().filter_map(|(name, value)| Some((name.clone(), of(name, value)?)));
                let fields: BTreeMap<String, Self> = fields.collect();
                (!fields.is_empty()).then_some(Self::Fields(fields))
            }
            (Value::Array(stored), Value::Array(known)) => {
                let of = |item: &Value| {
                    let known = known.iter().find(|known| is_same(known, item))?;
                    Some((known.clone(), Self::of(item, known)?))
                };
                let items: Vec<(Value, Self)> = stored.iter().filter_map(of).collect();
                (!items.is_empty()).then_some(Self::Items(items))
            }
            _ => None,
        }
    }

    /// Puts it into a new value, where that says nothing itself.
    pub fn restore(&self, new: &mut Value) {
        match (self, new) {
            (Self::Fields(fields), Value::Object(new)) => {
                for (name, part) in fields {
                    match (new.get_mut(name), part) {
                        (Some(value), part) => part.restore(value),
                        (None, Self::Whole(value)) => drop(new.insert(name.clone(), value.clone())),
                        (None, Self::Fields(_) | Self::Items(_)) => {}
                    }
                }
            }
            (Self::Items(items), Value::Array(new)) => {
                for (known, part) in items {
                    if let Some(item) = new.iter_mut().find(|item| is_same(item, known)) {
                        part.restore(item);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Whether two items of lists are about the same. Values without a name are only equal or not.
fn is_same(one: &Value, other: &Value) -> bool {
    let has_name = NAMES.iter().any(|name| one.get(name).is_some());
    if has_name { NAMES.iter().all(|name| one.get(name) == other.get(name)) } else { one == other }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The new value with what is unknown of the stored one.
    fn kept(stored: &Value, known: &Value, mut new: Value) -> Value {
        if let Some(unknown) = Unknown::of(stored, known) {
            unknown.restore(&mut new);
        }
        new
    }

    #[test]
    fn where_all_is_known_nothing_is_kept() {
        let value = json!({"desired": 1, "tags": [{"tag": "1"}], "names": ["a"]});
        assert_eq!(Unknown::of(&value, &value), None);
        assert_eq!(Unknown::of(&json!("text"), &json!(null)), None);
    }

    #[test]
    fn fields_of_a_newer_version_are_kept_at_every_depth() {
        let stored = json!({"desired": 1, "speed": 7, "room": {"free": 1, "quota": {"soft": 2}}});
        let known = json!({"desired": 1, "room": {"free": 1}});
        let new = json!({"desired": 2, "room": {"free": 3}});
        let expected = json!({"desired": 2, "speed": 7, "room": {"free": 3, "quota": {"soft": 2}}});
        assert_eq!(kept(&stored, &known, new), expected);
    }

    #[test]
    fn they_go_with_the_tag_and_the_version_that_they_are_about() {
        let stored = json!({"nginx": {"tags": [
            {"tag": "1", "version": 2, "speed": 7}, {"tag": "2", "version": 1, "speed": 8}, {"tag": "3", "speed": 9},
        ]}, "redis": {"tags": [{"tag": "1", "speed": 5}]}});
        let known = json!({"nginx": {"tags": [
            {"tag": "1", "version": 2}, {"tag": "2", "version": 1}, {"tag": "3"},
        ]}, "redis": {"tags": [{"tag": "1"}]}});
        let new = json!({"nginx": {"tags": [{"tag": "2", "version": 2}, {"tag": "1", "version": 2, "phase": "Pulling"}]}});
        let expected = json!({"nginx": {"tags": [
            {"tag": "2", "version": 2}, {"tag": "1", "version": 2, "phase": "Pulling", "speed": 7},
        ]}});
        assert_eq!(kept(&stored, &known, new), expected);
    }

    #[test]
    fn what_is_said_anew_counts() {
        assert_eq!(kept(&json!({"a": 0}), &json!({}), json!({"a": 1})), json!({"a": 1}));
        assert_eq!(
            kept(&json!({"room": {"a": 1, "b": 2}}), &json!({"room": {"a": 1}}), json!({})),
            json!({})
        );
    }
}
