//! Applies the table of rules to an object.

use serde_json::Value;

use super::{Class, Violation};
use crate::path::{FieldPath, Trail};
use crate::rule::{Check, Rule};

/// Adds a violation for each broken rule. A value that already has a violation is not checked again.
pub(super) fn check(rules: &[Rule], object: &Value, old: Option<&Value>, violations: &mut Vec<Violation>) {
    let judged: Vec<FieldPath> = violations.iter().map(|violation| violation.path.clone()).collect();
    for rule in rules {
        let steps: Vec<&str> = rule.at.split('.').filter(|step| !step.is_empty()).collect();
        visit(&steps, object, old, &Trail::Root, &mut |value, old, trail| {
            if let Some(message) = fault(rule, value, old) {
                let path = trail.path();
                let place = path.below(rule.field);
                if judged.contains(&path) || judged.contains(&place) {
                    return;
                }
                violations.push(Violation { path: place, class: Class::Invalid, message });
            }
        });
    }
}

/// The sentence for a person if the rule is broken.
fn fault(rule: &Rule, value: &Value, old: Option<&Value>) -> Option<String> {
    let holds = match rule.check {
        Check::Value(check) | Check::Offline(check) => old == Some(value) || check(value),
        Check::Transition(check) => old.is_none_or(|old| check(value, old)),
        Check::Creation(check) => old.is_some() || check(value),
        Check::Text(check) => return value.as_str().and_then(|text| check(text).err()),
    };
    (!holds).then(|| rule.message.to_owned())
}

type Visitor<'v> = dyn FnMut(&Value, Option<&Value>, &Trail<'_>) + 'v;

/// Calls `found` for every value that a rule is about. Items of a list have no old version: the server cannot tell
/// which was which.
fn visit(steps: &[&str], value: &Value, old: Option<&Value>, trail: &Trail<'_>, found: &mut Visitor<'_>) {
    let Some((step, rest)) = steps.split_first() else { return found(value, old, trail) };
    let name = step.trim_end_matches("[]").trim_end_matches("{}");
    let Some(inner) = value.get(name) else { return };
    let (old, trail) = (old.and_then(|old| old.get(name)), &Trail::Field(trail, name));
    // What has not changed is not checked again, including everything below it.
    if old == Some(inner) {
        return;
    }
    if step.ends_with("[]") {
        for (index, item) in inner.as_array().into_iter().flatten().enumerate() {
            visit(rest, item, None, &Trail::Index(trail, index), found);
        }
    } else if step.ends_with("{}") {
        for (key, item) in inner.as_object().into_iter().flatten() {
            visit(rest, item, old.and_then(|old| old.get(key)), &Trail::Field(trail, key), found);
        }
    } else {
        visit(rest, inner, old, trail, found);
    }
}
