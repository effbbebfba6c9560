//! Types and bounds: everything that is wrong with a value, as sentences for a person.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{JsonType, ListType, Schema, format};
use crate::path::{FieldPath, Trail};
use crate::validate::{Class, Violation};

/// How much of a text is repeated in a sentence about it.
const QUOTED: usize = 64;

impl Schema {
    /// Everything that is wrong with a value. What has not changed since `old` is not checked again, so that objects
    /// stored under looser rules keep accepting other writes.
    pub fn check(&self, value: &Value, old: Option<&Value>) -> Vec<Violation> {
        let mut findings = Findings(Vec::new());
        self.check_at(value, old, &Trail::Root, &mut findings);
        findings.0
    }

    fn check_at(&self, value: &Value, old: Option<&Value>, trail: &Trail<'_>, findings: &mut Findings) {
        if old == Some(value) || (value.is_null() && self.nullable) {
            return;
        }
        if !self.check_type(value, trail, findings) {
            return;
        }
        self.check_any(value, trail, findings);
        match value {
            Value::Object(map) => {
                self.check_object(map.len(), value, trail, findings);
                for (name, inner) in map {
                    // Kubernetes itself checks the metadata of whole objects.
                    let is_metadata = name == "metadata" && (trail.is_root() || self.embedded_resource);
                    if let (Some(schema), false) = (self.field(name), is_metadata) {
                        let old = old.and_then(|old| old.get(name));
                        schema.check_at(inner, old, &Trail::Field(trail, name), findings);
                        self.propose_neighbour(schema, inner, findings);
                    }
                }
            }
            Value::Array(items) => {
                self.check_list(items, trail, findings);
                for (index, item) in items.iter().enumerate() {
                    if let Some(schema) = &self.items {
                        schema.check_at(
                            item,
                            self.old_item(item, old),
                            &Trail::Index(trail, index),
                            findings,
                        );
                    }
                }
            }
            Value::String(text) => self.check_text(text, trail, findings),
            Value::Number(number) => self.check_number(number.as_f64().unwrap_or(f64::NAN), trail, findings),
            _ => {}
        }
    }

    /// If a text is given instead of an object, and a neighbouring field accepts just that text, suggests it:
    /// `pullPolicy: Always` means imagePullPolicy.
    fn propose_neighbour(&self, schema: &Schema, value: &Value, findings: &mut Findings) {
        let is_meant =
            |other: &Schema| other.limits.allowed.as_ref().is_some_and(|allowed| allowed.contains(value));
        if schema.json_type != Some(JsonType::Object) || !value.is_string() {
            return;
        }
        let neighbour = self.properties.iter().find(|(_, other)| is_meant(other));
        if let (Some((name, _)), Some(last)) = (neighbour, findings.0.last_mut()) {
            last.message = format!("{}; did you mean {name:?}?", last.message);
        }
    }

    /// The old version of a list item. Only items with keys have one.
    fn old_item<'a>(&self, item: &Value, old: Option<&'a Value>) -> Option<&'a Value> {
        let ListType::Map(keys) = &self.list_type else { return None };
        let same = |other: &&Value| keys.iter().all(|key| other.get(key) == item.get(key));
        old?.as_array()?.iter().find(same)
    }

    fn check_type(&self, value: &Value, trail: &Trail<'_>, findings: &mut Findings) -> bool {
        let fits = if self.int_or_string {
            value.is_string() || JsonType::Integer.fits(value)
        } else {
            self.json_type.is_none_or(|json_type| json_type.fits(value))
        };
        if !fits {
            let wanted = match self.json_type {
                Some(json_type) if !self.int_or_string => json_type.describe(),
                _ => "a whole number or a text",
            };
            let is_unquoted =
                wanted == JsonType::String.describe() && (value.is_number() || value.is_boolean());
            let hint = if is_unquoted { "; put it in quotes" } else { "" };
            let class = if wanted == JsonType::Integer.describe() && value.is_number() {
                Class::Number
            } else {
                Class::Type
            };
            findings.add(trail, class, format!("must be {wanted}, not {}{hint}", describe(value)));
        }
        fits
    }

    fn check_any(&self, value: &Value, trail: &Trail<'_>, findings: &mut Findings) {
        let limits = &self.limits;
        if let Some(allowed) = limits.allowed.as_ref().filter(|allowed| !allowed.contains(value)) {
            let names: Vec<String> = allowed.iter().map(plain).collect();
            let message = format!("{} is not one of {}", describe(value), names.join(", "));
            findings.add(trail, Class::NotSupported, message);
        }
        if let Some(wanted) = limits.format.as_deref().and_then(|name| format::fault(name, value)) {
            let class = if value.is_number() { Class::Number } else { Class::Type };
            findings.add(trail, class, format!("must be {wanted}, not {}", describe(value)));
        }
        let is_valid = |schema: &Schema| schema.check(value, None).is_empty();
        let fits = limits.all_of.iter().all(is_valid)
            && (limits.any_of.is_empty() || limits.any_of.iter().any(is_valid))
            && (limits.one_of.is_empty()
                || limits.one_of.iter().filter(|schema| is_valid(schema)).count() == 1)
            && !limits.not.as_deref().is_some_and(is_valid);
        if !fits {
            findings.add(
                trail,
                Class::Invalid,
                "does not fit the combinations that the schema allows".to_owned(),
            );
        }
    }

    fn check_object(&self, fields: usize, value: &Value, trail: &Trail<'_>, findings: &mut Findings) {
        for name in self.limits.required.iter().filter(|name| value.get(name.as_str()).is_none()) {
            let description = self.properties.get(name).and_then(|schema| schema.description.as_deref());
            let message = description
                .map_or("must be given".to_owned(), |text| format!("must be given: {}", start_of(text)));
            findings.add_at(trail.path().field(name), Class::Required, message);
        }
        if self.limits.min_properties.is_some_and(|least| fields < least) {
            let known: Vec<&str> = self.properties.keys().map(String::as_str).collect();
            let choice = if known.is_empty() {
                "one entry".to_owned()
            } else {
                format!("one of {}", known.join(", "))
            };
            findings.add(trail, Class::Invalid, format!("must have at least {choice}"));
        }
        if let Some(most) = self.limits.max_properties.filter(|most| fields > *most) {
            let message = match value.as_object().filter(|_| self.values.is_none()) {
                Some(map) => {
                    let names: Vec<&str> = map.keys().map(String::as_str).collect();
                    format!("has {} together; give only {most} of them", names.join(", "))
                }
                None => format!("has {fields} entries; at most {most} may be given"),
            };
            findings.add(trail, Class::TooLong, message);
        }
    }

    fn check_list(&self, items: &[Value], trail: &Trail<'_>, findings: &mut Findings) {
        if let Some(least) = self.limits.min_items.filter(|least| items.len() < *least) {
            let message = format!(
                "has {} items, and must have at least {least}; leave the field out if none is meant",
                items.len()
            );
            findings.add(trail, Class::Invalid, message);
        }
        if let Some(most) = self.limits.max_items.filter(|most| items.len() > *most) {
            findings.add(
                trail,
                Class::TooLong,
                format!("has {} items; at most {most} may be given", items.len()),
            );
        }
        let mut seen = BTreeSet::new();
        for (index, item) in items.iter().enumerate() {
            let key = match &self.list_type {
                ListType::Atomic => return,
                ListType::Set => item.to_string(),
                ListType::Map(keys) => keys
                    .iter()
                    .map(|key| item.get(key).map(Value::to_string).unwrap_or_default())
                    .collect::<Vec<_>>()
                    .join(","),
            };
            if !seen.insert(key) {
                findings.add_at(
                    trail.path().index(index),
                    Class::Duplicate,
                    format!("{} is in the list twice", describe(item)),
                );
            }
        }
    }

    fn check_text(&self, text: &str, trail: &Trail<'_>, findings: &mut Findings) {
        let length = text.chars().count();
        if self.limits.min_length.is_some_and(|least| length < least) {
            findings.add(trail, Class::Invalid, "must not be empty".to_owned());
        }
        if let Some(most) = self.limits.max_length.filter(|most| length > *most) {
            findings.add(
                trail,
                Class::TooLong,
                format!("has {length} characters; at most {most} may be given"),
            );
        }
        if let Some(pattern) = self.limits.pattern.as_ref().filter(|pattern| !pattern.is_match(text)) {
            let message = format!("{} does not match {}", quote(text), pattern.as_str());
            findings.add(trail, Class::Invalid, message);
        }
    }

    fn check_number(&self, number: f64, trail: &Trail<'_>, findings: &mut Findings) {
        let limits = &self.limits;
        let below = |least: &f64| number < *least || (limits.exclusive_minimum && number <= *least);
        let above = |most: &f64| number > *most || (limits.exclusive_maximum && number >= *most);
        if let Some(least) = limits.minimum.filter(below) {
            let what = if limits.exclusive_minimum { "more than" } else { "at least" };
            findings.add(trail, Class::Invalid, format!("is {number}, and must be {what} {least}"));
        }
        if let Some(most) = limits.maximum.filter(above) {
            let what = if limits.exclusive_maximum { "less than" } else { "at most" };
            findings.add(trail, Class::Invalid, format!("is {number}, and must be {what} {most}"));
        }
        if let Some(step) = limits.multiple_of.filter(|step| (number / step).fract() != 0.0) {
            findings.add(trail, Class::Invalid, format!("is {number}, and must be a multiple of {step}"));
        }
    }
}

struct Findings(Vec<Violation>);

impl Findings {
    fn add(&mut self, trail: &Trail<'_>, class: Class, message: String) {
        self.add_at(trail.path(), class, message);
    }

    fn add_at(&mut self, path: FieldPath, class: Class, message: String) {
        self.0.push(Violation { path, class, message });
    }
}

fn describe(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::String(text) => format!("the text {}", quote(text)),
        Value::Number(number) => format!("the number {number}"),
        Value::Bool(flag) => flag.to_string(),
    }
}

/// A value as a person writes it in YAML.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn quote(text: &str) -> String {
    if text.chars().count() <= QUOTED {
        return format!("{text:?}");
    }
    let start: String = text.chars().take(QUOTED).collect();
    format!("{start:?}…")
}

/// The first sentence of a description, without its full stop.
fn start_of(description: &str) -> &str {
    let first = description.split(". ").next().unwrap_or(description);
    first.strip_suffix('.').unwrap_or(first)
}
