//! The chart's values and the schema that describes them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::Value;

fn read(file: &str) -> String {
    let path = prewarm_generate::root().join("deploy/chart").join(file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn schema() -> Value {
    serde_json::from_str(&read("values.schema.json")).expect("the schema is JSON")
}

fn values() -> Value {
    serde_saphyr::from_str(&read("values.yaml")).expect("the values are YAML")
}

/// Calls with the path and the schema of every value, and of the sections around them.
fn each(schema: &Value, path: &str, see: &mut dyn FnMut(&str, &Value)) {
    for (name, value) in schema["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        see(&path, value);
        each(value, &path, see);
    }
}

#[test]
fn every_value_is_described_by_a_sentence() {
    each(&schema(), "", &mut |path, value| {
        let sentence = value["description"].as_str().unwrap_or_default();
        assert!(sentence.len() > 4 && sentence.starts_with(char::is_uppercase), "{path}: {sentence:?}");
        assert!(value.get("type").or(value.get("enum")).is_some(), "{path} has no type");
    });
}

#[test]
fn a_section_takes_no_values_that_nobody_knows() {
    let whole = schema();
    assert_eq!(whole["additionalProperties"], false);
    each(&whole, "", &mut |path, value| {
        assert!(value.get("properties").is_none() || value["additionalProperties"] == false, "{path}");
    });
}

#[test]
fn the_schema_and_the_defaults_have_the_same_values() {
    let values = values();
    let mut described = BTreeSet::new();
    each(&schema(), "", &mut |path, _| {
        described.insert(path.to_owned());
    });
    // Helm puts it there, if the chart is a part of another.
    described.remove("global");
    let given: BTreeSet<String> =
        described.iter().filter(|path| values.pointer(&pointer(path)).is_some()).cloned().collect();
    assert_eq!(given, described, "the schema has what no default is given for");
    each_default(&values, "", &schema(), &mut |path| {
        assert!(described.contains(path), "{path} is not described");
    });
}

fn pointer(path: &str) -> String {
    format!("/{}", path.replace('.', "/"))
}

/// Goes into sections only: a map that is one value, such as `resources`, is its user's.
fn each_default(values: &Value, path: &str, schema: &Value, see: &mut dyn FnMut(&str)) {
    if schema.get("properties").is_none() {
        return;
    }
    for (name, value) in values.as_object().into_iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        see(&path);
        each_default(value, &path, &schema["properties"][name], see);
    }
}

#[test]
fn the_comment_above_a_value_is_what_the_schema_says_of_it() {
    let comments = comments(&read("values.yaml"));
    each(&schema(), "", &mut |path, value| {
        let is_section = value.get("properties").is_some() || path == "global";
        let comment = comments.get(path).map(String::as_str);
        assert!(comment.is_some() || is_section, "{path} has no comment");
        assert!(comment.is_none() || comment == value["description"].as_str(), "{path}: {comment:?}");
    });
}

/// What stands right above each key, by the key's path.
fn comments(text: &str) -> BTreeMap<String, String> {
    let (mut comments, mut above, mut around) = (BTreeMap::new(), Vec::new(), Vec::<(usize, &str)>::new());
    for line in text.lines() {
        let (content, depth) = (line.trim_start(), line.len() - line.trim_start().len());
        if let Some(comment) = content.strip_prefix('#') {
            above.push(comment.trim());
            continue;
        }
        let words: Vec<&str> = std::mem::take(&mut above);
        let Some((key, _)) = content.split_once(':') else { continue };
        around.retain(|(outer, _)| *outer < depth);
        around.push((depth, key));
        if !words.is_empty() {
            let path: Vec<&str> = around.iter().map(|(_, key)| *key).collect();
            comments.insert(path.join("."), words.join(" "));
        }
    }
    comments
}
