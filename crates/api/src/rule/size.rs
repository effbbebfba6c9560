//! Bounds on what one object is multiplied into: every NodeImage holds a job's sandbox, and every child of a list its
//! selector. The bounds of the single fields allow more than all of them together may be.

use serde_json::Value;

use super::{Check, Rule};

/// What a rule asks of a spec.
type Question = fn(&Value) -> bool;

/// The most labels and annotations for the runtime, together.
pub const MOST_SANDBOX_ENTRIES: usize = 16;
/// The most characters of their names and values, together: 4 KiB of plain text. Each of a job's nodes stores them. Bytes
/// would say it better, but to count those of a text the server takes for dearer than a rule may be.
pub const MOST_SANDBOX_CHARACTERS: usize = 4096;
/// The most names of nodes in all children of a list together: each child holds all of them.
pub const MOST_CHILD_NAMES: usize = 20_000;
/// The most characters of selectors in all children of a list together.
pub const MOST_CHILD_CHARACTERS: usize = 4 * 1024 * 1024;

/// The rules on the sandbox of a pull template, at the path of its spec.
pub fn sandbox(at: &str) -> Vec<Rule> {
    let at = format!("{at}.sandboxConfig");
    let count = |field: &str| format!("(has(self.{field}) ? size(self.{field}) : 0)");
    let length = |field: &str| {
        let entry = format!("size(key) + size(self.{field}[key])");
        format!("(has(self.{field}) ? self.{field}.map(key, {entry}).sum() : 0)")
    };
    vec![
        Rule {
            id: "kruise V19",
            at: at.clone(),
            field: "",
            cel: format!("{} + {} <= {MOST_SANDBOX_ENTRIES}", count("labels"), count("annotations")),
            message: "more than 16 labels and annotations for the runtime: every node stores them, so keep to those it needs",
            check: Check::Value(|sandbox| entries(sandbox).count() <= MOST_SANDBOX_ENTRIES),
        },
        Rule {
            id: "kruise V19",
            at,
            field: "",
            cel: format!("{} + {} <= {MOST_SANDBOX_CHARACTERS}", length("labels"), length("annotations")),
            message: "the labels and annotations for the runtime have more than 4096 characters in all: every node stores them, \
                      so shorten them",
            check: Check::Value(|sandbox| {
                entries(sandbox).map(|(key, value)| key.chars().count() + characters(value)).sum::<usize>()
                    <= MOST_SANDBOX_CHARACTERS
            }),
        },
    ]
}

fn entries(sandbox: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let maps = ["labels", "annotations"].into_iter().filter_map(|field| sandbox.get(field)?.as_object());
    maps.flatten()
}

/// The rules on what the children of a list hold together, at the path of its spec.
pub fn children(at: &str) -> Vec<Rule> {
    let mut rules = vec![Rule {
        id: "kruise V21",
        at: at.to_owned(),
        field: "selector.names",
        cel: format!(
            "!has(self.selector) || !has(self.selector.names) || \
             size(self.images) * size(self.selector.names) <= {MOST_CHILD_NAMES}"
        ),
        message: "too many names: images times names is at most 20000, because the job of each image holds every name; \
                  select by labels, or use several lists",
        check: Check::Value(|spec| {
            images(spec).saturating_mul(list(spec.pointer("/selector/names")).len()) <= MOST_CHILD_NAMES
        }),
    }];
    let characters: [(&str, Question); 2] = [
        ("selector", |spec| is_small(spec, "selector")),
        ("podSelector", |spec| is_small(spec, "podSelector")),
    ];
    rules.extend(characters.map(|(field, check)| Rule {
        id: "kruise V21",
        at: at.to_owned(),
        field,
        cel: format!(
            "!has(self.{field}) || size(self.images) * ({}) <= {MOST_CHILD_CHARACTERS}",
            characters_of(&format!("self.{field}"), field == "selector")
        ),
        message: "the selector is too large: its characters times the number of images are at most 4194304, because the \
                  job of each image holds it; select by fewer labels, or use several lists",
        check: Check::Value(check),
    }));
    rules
}

/// The CEL expression for the characters of a selector.
fn characters_of(at: &str, has_names: bool) -> String {
    let labels = format!(
        "(has({at}.matchLabels) ? {at}.matchLabels.map(key, size(key) + size({at}.matchLabels[key])).sum() : 0)"
    );
    let values = "(has(one.values) ? one.values.map(value, size(value)).sum() : 0)";
    let expressions = format!(
        "(has({at}.matchExpressions) ? {at}.matchExpressions.map(one, size(one.key) + {values}).sum() : 0)"
    );
    let names = format!("(has({at}.names) ? {at}.names.map(name, size(name)).sum() : 0)");
    if has_names {
        format!("{names} + {labels} + {expressions}")
    } else {
        format!("{labels} + {expressions}")
    }
}

fn is_small(spec: &Value, field: &str) -> bool {
    let characters = spec.get(field).map_or(0, |selector| {
        let names: usize = list(selector.get("names")).iter().map(characters).sum();
        let labels = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
        let labels: usize = labels.map(|(key, value)| key.chars().count() + characters(value)).sum();
        let expressions = list(selector.get("matchExpressions")).iter().map(|one| {
            let values: usize = list(one.get("values")).iter().map(characters).sum();
            one.get("key").map_or(0, characters) + values
        });
        names + labels + expressions.sum::<usize>()
    });
    images(spec).saturating_mul(characters) <= MOST_CHILD_CHARACTERS
}

fn images(spec: &Value) -> usize {
    list(spec.get("images")).len()
}

fn list(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn characters(value: &Value) -> usize {
    value.as_str().map_or(0, |text| text.chars().count())
}
