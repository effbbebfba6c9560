//! The part of `JSONPath` that printer columns may use: fields, indexes, `[*]` and a filter for one value, as in
//! `.status.conditions[?(@.type=="Ready")].status`.

use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonPath(Vec<Step>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Field(String),
    Index(i64),
    All,
    Where { path: Vec<String>, is: String },
}

impl JsonPath {
    /// Reads a path; none if it uses more than columns may.
    pub fn parse(text: &str) -> Option<Self> {
        let mut rest = text.trim().trim_start_matches('$');
        let mut steps = Vec::new();
        while !rest.is_empty() {
            let (step, left) = match rest.strip_prefix('[') {
                Some(bracket) => parse_bracket(bracket)?,
                None => parse_field(rest.strip_prefix('.').unwrap_or(rest))?,
            };
            steps.extend(step);
            rest = left;
        }
        Some(Self(steps))
    }

    /// The first value that the path leads to.
    pub fn find<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        let start = vec![object];
        let found = self
            .0
            .iter()
            .fold(start, |values, step| values.into_iter().flat_map(|value| step.walk(value)).collect());
        found.first().copied()
    }
}

impl Step {
    fn walk<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        let items = || value.as_array().into_iter().flatten();
        match self {
            Self::Field(name) => value.get(name).into_iter().collect(),
            Self::Index(index) => {
                let length = value.as_array().map_or(0, Vec::len);
                let index = if *index < 0 {
                    length.checked_sub(usize::try_from(index.unsigned_abs()).unwrap_or(usize::MAX))
                } else {
                    usize::try_from(*index).ok()
                };
                index.and_then(|index| value.get(index)).into_iter().collect()
            }
            Self::All => match value {
                Value::Object(fields) => fields.values().collect(),
                _ => items().collect(),
            },
            Self::Where { path, is } => items()
                .filter(|item| {
                    let found = path.iter().try_fold(*item, |value, name| value.get(name));
                    found.is_some_and(|found| match found {
                        Value::String(text) => text == is,
                        other => &other.to_string() == is,
                    })
                })
                .collect(),
        }
    }
}

/// A name up to the next unescaped dot or bracket. A dot alone is no step.
fn parse_field(text: &str) -> Option<(Option<Step>, &str)> {
    let mut name = String::new();
    let mut characters = text.char_indices();
    while let Some((index, character)) = characters.next() {
        match character {
            '\\' => name.push(characters.next()?.1),
            '.' | '[' => return Some((field_step(name), &text[index..])),
            other => name.push(other),
        }
    }
    Some((field_step(name), ""))
}

fn field_step(name: String) -> Option<Step> {
    match name.as_str() {
        "" => None,
        "*" => Some(Step::All),
        _ => Some(Step::Field(name)),
    }
}

/// The content of brackets, after the opening one.
fn parse_bracket(text: &str) -> Option<(Option<Step>, &str)> {
    if let Some(filter) = text.strip_prefix("?(") {
        let (filter, rest) = filter.split_once(")]")?;
        return Some((Some(parse_filter(filter)?), rest));
    }
    if let Some(quote) = text.chars().next().filter(|first| matches!(first, '\'' | '"')) {
        let (name, rest) = text[1..].split_once(&format!("{quote}]"))?;
        return Some((Some(Step::Field(name.to_owned())), rest));
    }
    let (inside, rest) = text.split_once(']')?;
    let step = if inside == "*" { Step::All } else { Step::Index(inside.trim().parse().ok()?) };
    Some((Some(step), rest))
}

fn parse_filter(text: &str) -> Option<Step> {
    let (path, value) = text.split_once("==")?;
    let path = path.trim().strip_prefix("@.")?.split('.').map(str::to_owned).collect();
    let value = value.trim();
    let unquoted = ['\'', '"'].iter().find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote));
    Some(Step::Where { path, is: unquoted.unwrap_or(value).to_owned() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_leads_to_the_first_value() {
        let object = json!({
            "spec": { "image": "a", "list": [{ "x": 1 }, { "x": 2 }], "a.b": "dotted" },
            "status": { "conditions": [
                { "type": "Ready", "status": "False" }, { "type": "Done", "status": "True", "n": 3 },
            ] },
        });
        let table = [
            (".spec.image", json!("a")),
            ("spec.image", json!("a")),
            (".spec.list[1].x", json!(2)),
            (".spec.list[-1].x", json!(2)),
            (".spec.list[*].x", json!(1)),
            (".spec['a.b']", json!("dotted")),
            (r".spec.a\.b", json!("dotted")),
            (".status.conditions[?(@.type==\"Done\")].status", json!("True")),
            (".status.conditions[?(@.type=='Ready')].status", json!("False")),
            (".status.conditions[?(@.n==3)].status", json!("True")),
        ];
        for (path, wanted) in table {
            let found = JsonPath::parse(path).unwrap().find(&object).cloned();
            assert_eq!(found, Some(wanted), "{path}");
        }
        for path in [
            ".spec.nothing",
            ".spec.list[7]",
            ".status.conditions[?(@.type==\"No\")].status",
            ".spec.image.x",
        ] {
            assert_eq!(JsonPath::parse(path).unwrap().find(&object), None, "{path}");
        }
    }

    #[test]
    fn an_unsupported_path_is_none() {
        for path in [".a[", ".a[x]", ".a[?(@.b)]", ".a[?(b==1)]", ".a['b]", ".a\\"] {
            assert_eq!(JsonPath::parse(path), None, "{path}");
        }
    }
}
