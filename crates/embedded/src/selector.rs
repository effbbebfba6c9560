//! Label and field selectors: what they mean, and which they are not.

use crate::refusal::Refusal;
use crate::resource::Resource;
use crate::store::Stored;

/// Everything that a list or watch asks of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    labels: Vec<Requirement>,
    fields: Vec<FieldRequirement>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Requirement {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    DoesNotExist(String),
    GreaterThan(String, i64),
    LessThan(String, i64),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct FieldRequirement {
    path: String,
    value: String,
    is_equal: bool,
}

impl Selector {
    /// Reads both selectors of a request.
    pub fn parse(labels: &str, fields: &str, resource: &Resource) -> Result<Self, Refusal> {
        Ok(Self { labels: parse_labels(labels)?, fields: parse_fields(fields, resource)? })
    }

    /// Whether an object is meant.
    pub fn matches(&self, object: &Stored) -> bool {
        self.labels.iter().all(|requirement| requirement.holds(object))
            && self.fields.iter().all(|requirement| requirement.holds(object))
    }

    /// Whether every object is meant.
    pub fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// The one name that is meant, if the selector says so.
    pub fn single_name(&self) -> Option<&str> {
        let name = self.fields.iter().find(|field| field.path == "metadata.name" && field.is_equal);
        name.map(|field| field.value.as_str())
    }
}

impl Requirement {
    fn holds(&self, object: &Stored) -> bool {
        let label = |key: &str| object.labels.get(key);
        let number = |key: &str| label(key).and_then(|value| value.parse::<i64>().ok());
        match self {
            Self::In(key, values) => label(key).is_some_and(|value| values.contains(value)),
            Self::NotIn(key, values) => label(key).is_none_or(|value| !values.contains(value)),
            Self::Exists(key) => label(key).is_some(),
            Self::DoesNotExist(key) => label(key).is_none(),
            Self::GreaterThan(key, bound) => number(key).is_some_and(|value| value > *bound),
            Self::LessThan(key, bound) => number(key).is_some_and(|value| value < *bound),
        }
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

fn parse_labels(text: &str) -> Result<Vec<Requirement>, Refusal> {
    let mut requirements = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let end = end_of_requirement(rest);
        requirements.push(parse_requirement(rest[..end].trim(), text)?);
        rest = rest[end..].strip_prefix(',').unwrap_or("").trim();
    }
    Ok(requirements)
}

/// The comma that ends a requirement is the first one outside of parentheses.
fn end_of_requirement(text: &str) -> usize {
    let mut depth = 0_usize;
    for (index, character) in text.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => return index,
            _ => {}
        }
    }
    text.len()
}

fn parse_requirement(text: &str, whole: &str) -> Result<Requirement, Refusal> {
    let fault =
        || Refusal::bad_request(format!("unable to parse requirement: invalid label selector {whole:?}"));
    let requirement = if let Some(key) = text.strip_prefix('!') {
        Requirement::DoesNotExist(key.trim().to_owned())
    } else if let Some((key, values)) = text.split_once('(') {
        let values = values.strip_suffix(')').ok_or_else(fault)?;
        let values = values.split(',').map(|value| value.trim().to_owned()).collect();
        match key.split_whitespace().collect::<Vec<_>>().as_slice() {
            [key, "in"] => Requirement::In((*key).to_owned(), values),
            [key, "notin"] => Requirement::NotIn((*key).to_owned(), values),
            _ => return Err(fault()),
        }
    } else if let Some((key, value)) = text.split_once("!=") {
        Requirement::NotIn(key.trim().to_owned(), vec![value.trim().to_owned()])
    } else if let Some((key, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        Requirement::In(key.trim().to_owned(), vec![value.trim().to_owned()])
    } else if let Some((key, bound)) = text.split_once('>') {
        Requirement::GreaterThan(key.trim().to_owned(), bound.trim().parse().map_err(|_| fault())?)
    } else if let Some((key, bound)) = text.split_once('<') {
        Requirement::LessThan(key.trim().to_owned(), bound.trim().parse().map_err(|_| fault())?)
    } else {
        Requirement::Exists(text.to_owned())
    };
    if requirement.is_well_formed() { Ok(requirement) } else { Err(fault()) }
}

impl Requirement {
    fn is_well_formed(&self) -> bool {
        use prewarm_api::schema::matches;
        use prewarm_api::selector::{LABEL_KEY_PATTERN, LABEL_VALUE_PATTERN};
        let (key, values) = match self {
            Self::In(key, values) | Self::NotIn(key, values) => (key, values.as_slice()),
            Self::Exists(key)
            | Self::DoesNotExist(key)
            | Self::GreaterThan(key, _)
            | Self::LessThan(key, _) => (key, [].as_slice()),
        };
        matches(LABEL_KEY_PATTERN, key) && values.iter().all(|value| matches(LABEL_VALUE_PATTERN, value))
    }
}

fn parse_fields(text: &str, resource: &Resource) -> Result<Vec<FieldRequirement>, Refusal> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts.map(|part| parse_field(part, text, resource)).collect()
}

fn parse_field(part: &str, whole: &str, resource: &Resource) -> Result<FieldRequirement, Refusal> {
    let split = |operator: &str, is_equal: bool| {
        part.split_once(operator).map(|(path, value)| FieldRequirement {
            path: path.to_owned(),
            value: value.to_owned(),
            is_equal,
        })
    };
    let requirement = split("!=", false).or_else(|| split("==", true)).or_else(|| split("=", true));
    let requirement = requirement.ok_or_else(|| {
        Refusal::bad_request(format!("invalid field selector: {whole:?}: can't understand {part:?}"))
    })?;
    let path = &requirement.path;
    let is_known =
        matches!(path.as_str(), "metadata.name" | "metadata.namespace") || resource.selectable.contains(path);
    if !is_known {
        return Err(Refusal::bad_request(format!("field label not supported: {path}")));
    }
    Ok(requirement)
}
