//! Label and field selectors.

use prewarm_api::selector::text::{self, Requirement};

use crate::refusal::Refusal;
use crate::request::Query;
use crate::resource::Resource;
use crate::store::Stored;

/// What a list or watch requires of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    labels: Vec<Requirement>,
    fields: Vec<FieldRequirement>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct FieldRequirement {
    path: String,
    value: String,
    is_equal: bool,
}

impl Selector {
    pub fn parse(query: &Query, resource: &Resource, version: &str) -> Result<Self, Refusal> {
        Ok(Self {
            labels: text::parse(&query.label_selector).map_err(Refusal::bad_request)?,
            fields: parse_fields(&query.field_selector, resource, version)?,
        })
    }

    /// Whether an object is selected.
    pub fn matches(&self, object: &Stored) -> bool {
        self.labels.iter().all(|requirement| requirement.holds(&object.labels))
            && self.fields.iter().all(|requirement| requirement.holds(object))
    }

    /// Whether every object is selected.
    pub fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// The only name that is selected, if the selector requires one.
    pub fn single_name(&self) -> Option<&str> {
        let name = self.fields.iter().find(|field| field.path == "metadata.name" && field.is_equal);
        name.map(|field| field.value.as_str())
    }
}

impl FieldRequirement {
    fn holds(&self, object: &Stored) -> bool {
        let value = match self.path.as_str() {
            "metadata.name" => object.key.name.as_str(),
            "metadata.namespace" => object.key.namespace.as_str(),
            path => object.fields.get(path).map_or("", String::as_str),
        };
        (value == self.value) == self.is_equal
    }
}

fn parse_fields(text: &str, resource: &Resource, version: &str) -> Result<Vec<FieldRequirement>, Refusal> {
    let terms = split_unescaped(text);
    let terms = terms.iter().filter(|term| !term.is_empty());
    terms.map(|term| parse_field(term, text, (resource, version))).collect()
}

/// Splits at commas, except those after a backslash.
fn split_unescaped(text: &str) -> Vec<String> {
    let mut terms = vec![String::new()];
    let mut is_escaped = false;
    for character in text.chars() {
        match character {
            ',' if !is_escaped => terms.push(String::new()),
            other => terms.last_mut().expect("there is always a term").push(other),
        }
        is_escaped = character == '\\' && !is_escaped;
    }
    terms
}

fn parse_field(
    term: &str,
    whole: &str,
    (resource, version): (&Resource, &str),
) -> Result<FieldRequirement, Refusal> {
    let place = term.find("!=").into_iter().chain(term.find('=')).min();
    let Some((path, rest)) = place.and_then(|place| term.split_at_checked(place)) else {
        return Err(Refusal::bad_request(format!("invalid selector: '{whole}'; can't understand '{term}'")));
    };
    let value = rest.strip_prefix("!=").or(rest.strip_prefix("==")).or(rest.strip_prefix('='));
    check_field(path, resource, version)?;
    Ok(FieldRequirement {
        path: path.to_owned(),
        value: unescape(value.unwrap_or_default()),
        is_equal: !rest.starts_with("!="),
    })
}

fn unescape(value: &str) -> String {
    let mut characters = value.chars();
    let mut plain = String::with_capacity(value.len());
    while let Some(character) = characters.next() {
        plain.extend(if character == '\\' { characters.next() } else { Some(character) });
    }
    plain
}

fn check_field(path: &str, resource: &Resource, version: &str) -> Result<(), Refusal> {
    let selectable = resource.version(version).map_or(&[][..], |version| &version.selectable);
    if matches!(path, "metadata.name" | "metadata.namespace") || selectable.iter().any(|name| name == path) {
        return Ok(());
    }
    let message = if resource.kind == "Job" && !resource.is_custom {
        format!("field label {path:?} not supported for Job")
    } else if resource.is_custom || !resource.selectable.is_empty() {
        format!("field label not supported: {path}")
    } else {
        format!("{path:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
    };
    Err(Refusal::bad_request(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comma_after_a_backslash_belongs_to_the_value() {
        let resource = crate::resource::built_in().remove(0);
        let query = Query {
            field_selector: r"metadata.name=a\,b,metadata.namespace!=c".to_owned(),
            ..Query::default()
        };
        let selector = Selector::parse(&query, &resource, "v1").unwrap();
        let found: Vec<(&str, bool)> =
            selector.fields.iter().map(|field| (field.value.as_str(), field.is_equal)).collect();
        assert_eq!(found, [("a,b", true), ("c", false)]);
    }
}
