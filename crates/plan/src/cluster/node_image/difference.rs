//! From one value to another as operations of a JSON patch that touch only what differs. Fields that a newer version wrote into the
//! stored value, and that are in neither of the two, stay where they are.
//!
//! The stored value has to be the old one, apart from such fields: its lists have the same items at the same places.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

/// What tells items of a list apart: a tag, the UID of an owner, namespace and name of a Secret.
type Name<'a> = (&'a str, &'a str);

/// What has to be done to the value at this path.
pub fn difference(path: &str, old: &Value, new: &Value) -> Vec<Value> {
    let mut operations = Vec::new();
    compare(path, old, new, &mut operations);
    operations
}

/// A key, as a path has it.
pub fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

fn compare(path: &str, old: &Value, new: &Value, operations: &mut Vec<Value>) {
    match (old, new) {
        (old, new) if old == new => {}
        (Value::Object(old), Value::Object(new)) => compare_fields(path, old, new, operations),
        (Value::Array(old), Value::Array(new)) if has_names(old) && has_names(new) => {
            compare_items(path, old.clone(), new, operations);
        }
        (_, new) => operations.push(json!({"op": "add", "path": path, "value": new})),
    }
}

fn compare_fields(
    path: &str,
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    operations: &mut Vec<Value>,
) {
    let place = |name: &str| format!("{path}/{}", escaped(name));
    for name in old.keys().filter(|name| !new.contains_key(*name)) {
        operations.push(json!({"op": "remove", "path": place(name)}));
    }
    for (name, value) in new {
        match old.get(name) {
            Some(old) => compare(&place(name), old, value, operations),
            None => operations.push(json!({"op": "add", "path": place(name), "value": value})),
        }
    }
}

/// `items` is the list as it is after the operations so far.
fn compare_items(path: &str, mut items: Vec<Value>, new: &[Value], operations: &mut Vec<Value>) {
    let wanted: BTreeSet<Name> = new.iter().map(name).collect();
    for place in (0..items.len()).rev() {
        if !wanted.contains(&name(&items[place])) {
            items.remove(place);
            operations.push(json!({"op": "remove", "path": format!("{path}/{place}")}));
        }
    }
    for (place, item) in new.iter().enumerate() {
        let here = format!("{path}/{place}");
        match items.iter().skip(place).position(|old| name(old) == name(item)) {
            Some(0) => compare(&here, &items[place], item, operations),
            Some(distance) => {
                let old = items.remove(place + distance);
                operations.push(
                    json!({"op": "move", "from": format!("{path}/{}", place + distance), "path": here}),
                );
                compare(&here, &old, item, operations);
                items.insert(place, old);
            }
            None => {
                operations.push(json!({"op": "add", "path": here, "value": item}));
                items.insert(place, item.clone());
            }
        }
    }
    for place in (new.len()..items.len()).rev() {
        operations.push(json!({"op": "remove", "path": format!("{path}/{place}")}));
    }
}

fn has_names(items: &[Value]) -> bool {
    items.iter().all(|item| name(item) != ("", ""))
}

fn name(item: &Value) -> Name<'_> {
    let field = |name: &str| item.get(name).and_then(Value::as_str);
    match field("tag").or_else(|| field("uid")) {
        Some(name) => (name, ""),
        None => (field("name").unwrap_or_default(), field("namespace").unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Carries out what takes `old` to `new` on what is stored. Returns what is stored then, and how many operations it took.
    fn carried_out(stored: &Value, old: &Value, new: &Value) -> (Value, usize) {
        let mut object = json!({"spec": stored});
        let operations = difference("/spec", old, new);
        let patch: json_patch::Patch = serde_json::from_value(json!(operations)).unwrap();
        json_patch::patch(&mut object, &patch).unwrap();
        (object["spec"].clone(), operations.len())
    }

    fn tag(name: &str, version: i64) -> Value {
        json!({"tag": name, "version": version})
    }

    /// The same with a field of a newer version.
    fn newer(mut value: Value) -> Value {
        value["newer"] = json!("kept");
        value
    }

    #[test]
    fn what_is_equal_takes_no_operation() {
        let value = json!({"tags": [tag("1", 1)], "a/b~c": {"x": [1, 2]}});
        assert_eq!(difference("", &value, &value), Vec::<Value>::new());
    }

    #[test]
    fn a_field_is_added_changed_or_removed_by_itself() {
        let old = json!({"a/b~c": {"x": 1, "y": 2}, "list": [1]});
        let new = json!({"a/b~c": {"x": 3, "z": 4}, "list": [2]});
        assert_eq!(carried_out(&old, &old, &new), (new, 4));
    }

    #[test]
    fn fields_of_a_newer_version_stay_with_their_item_wherever_it_goes() {
        let stored = newer(json!({"tags": [newer(tag("b", 1)), newer(tag("a", 1)), newer(tag("c", 1))]}));
        let old = json!({"tags": [tag("b", 1), tag("a", 1), tag("c", 1)]});
        let new = json!({"tags": [tag("a", 2), tag("b", 1), tag("d", 0)]});
        let expected = newer(json!({"tags": [newer(tag("a", 2)), newer(tag("b", 1)), tag("d", 0)]}));
        assert_eq!(carried_out(&stored, &old, &new), (expected, 4));
    }

    #[test]
    fn owners_and_secrets_are_added_and_removed_one_by_one() {
        let owner = |uid: &str| json!({"uid": uid, "name": "same"});
        let secret = |name: &str| json!({"namespace": "config", "name": name});
        let old = json!({"owners": [owner("1"), owner("2")], "secrets": [secret("a"), secret("b")]});
        let stored =
            json!({"owners": [owner("1"), newer(owner("2"))], "secrets": [newer(secret("a")), secret("b")]});
        let new = json!({"owners": [owner("2"), owner("3")], "secrets": [secret("a"), secret("c")]});
        let expected =
            json!({"owners": [newer(owner("2")), owner("3")], "secrets": [newer(secret("a")), secret("c")]});
        assert_eq!(carried_out(&stored, &old, &new), (expected, 4));
    }

    #[test]
    fn two_items_of_one_name_are_told_apart_by_their_places() {
        let old = json!([tag("1", 1), tag("1", 2), tag("0", 1)]);
        let new = json!([tag("0", 1), tag("1", 2)]);
        let (after, _) = carried_out(&old, &old, &new);
        assert_eq!(after, new);
    }

    #[test]
    fn whatever_the_two_are_the_operations_lead_from_one_to_the_other() {
        let names = ["a", "b", "c", "d"];
        // Every list of up to three of four tags, each against each.
        let mut lists = vec![vec![]];
        for length in 1..=3 {
            let longer: Vec<Vec<&str>> = lists
                .iter()
                .filter(|list: &&Vec<&str>| list.len() == length - 1)
                .flat_map(|list| names.map(|name| [list.clone(), vec![name]].concat()))
                .collect();
            lists.extend(longer);
        }
        let value =
            |list: &Vec<&str>, version| json!(list.iter().map(|name| tag(name, version)).collect::<Vec<_>>());
        for one in &lists {
            for other in &lists {
                let (old, new) = (value(one, 1), value(other, 2));
                assert_eq!(carried_out(&old, &old, &new).0, new, "{one:?} to {other:?}");
            }
        }
    }
}
