//! The rules of ImagePullJob, ImageListPullJob and NodeImage, and those of every pull template.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Check, Rule, has, has_items, size, text};
use crate::reference::{ImageRef, PATTERN};
use crate::selector::LABEL_KEY_PATTERN;

/// The longest image name in the keys of a NodeImage.
pub const MAX_NAME_LENGTH: usize = 512;

/// The sentence for a job of type Never with a deadline.
pub(super) const NEVER_HAS_NO_END: &str = "a job of type Never does not end: remove activeDeadlineSeconds and \
                                           ttlSecondsAfterFinished, or use type Always";

/// The rules of ImagePullJob.
pub fn image_pull_job() -> Vec<Rule> {
    let mut rules = template("spec");
    rules.push(image("kruise V16", "spec.image"));
    rules.push(Rule {
        id: "kruise V11",
        at: "spec".to_owned(),
        field: "pullSecrets",
        cel: "(has(self.pullSecrets) ? self.pullSecrets : []) == (has(oldSelf.pullSecrets) ? oldSelf.pullSecrets : [])"
            .to_owned(),
        message: "pullSecrets cannot be changed; make a new job with the other secrets",
        check: Check::Transition(|new, old| secrets(new) == secrets(old)),
    });
    rules
}

/// The rules of ImageListPullJob.
pub fn image_list_pull_job() -> Vec<Rule> {
    let mut rules = template("spec");
    rules.push(image("kruise V21", "spec.images[]"));
    rules.extend(size::children("spec"));
    rules
}

/// The rules of NodeImage: a single cheap one, because machines write it all the time.
pub fn node_image() -> Vec<Rule> {
    vec![
        Rule {
            id: "kruise V31",
            at: "spec.images".to_owned(),
            field: "",
            cel: format!("self.all(name, name != '' && size(name) <= {MAX_NAME_LENGTH})"),
            message: "an image name is empty or longer than 512 characters",
            check: Check::Value(|images| {
                let mut names = images.as_object().into_iter().flat_map(|map| map.keys());
                names.all(|name| !name.is_empty() && name.chars().count() <= MAX_NAME_LENGTH)
            }),
        },
        Rule {
            id: "kruise V32",
            at: "spec.images{}".to_owned(),
            field: "tags",
            cel: String::new(),
            message: "a tag is in the list twice",
            check: Check::Offline(|image| {
                let tags = image.get("tags").and_then(Value::as_array).into_iter().flatten();
                let mut seen = BTreeSet::new();
                tags.filter_map(|tag| text(tag, "tag")).all(|tag| seen.insert(tag))
            }),
        },
    ]
}

/// The rules of the fields that every pull job has, at the path of its spec. The function is long because it is a table.
pub fn template(at: &str) -> Vec<Rule> {
    let mut rules = vec![
        Rule {
            id: "kruise V12",
            at: format!("{at}.selector"),
            field: "names",
            cel: "!has(self.names) || !(has(self.matchLabels) || has(self.matchExpressions))".to_owned(),
            message: "select nodes by names or by labels, not both: remove names, or matchLabels and matchExpressions",
            check: Check::Value(|selector| {
                !has(selector, "names") || !(has(selector, "matchLabels") || has(selector, "matchExpressions"))
            }),
        },
        Rule {
            id: "kruise V15",
            at: at.to_owned(),
            field: "podSelector",
            cel: "!(has(self.selector) && has(self.podSelector))".to_owned(),
            message: "select nodes by selector or by podSelector, not both",
            check: Check::Value(|spec| !(has(spec, "selector") && has(spec, "podSelector"))),
        },
        Rule {
            id: "kruise V17",
            at: format!("{at}.parallelism"),
            field: "",
            cel: "type(self) == int ? self >= 0 && self <= 2147483647 : \
                  self.matches('^[+]?0*[0-9]{1,10}$') && int(self) <= 2147483647"
                .to_owned(),
            message: "parallelism is a number of nodes from 0 to 2147483647, such as 10; percentages are not supported",
            check: Check::Value(is_node_count),
        },
        Rule {
            id: "kruise V18",
            at: format!("{at}.completionPolicy"),
            field: "",
            cel: "self.type != 'Never' || !(has(self.activeDeadlineSeconds) || has(self.ttlSecondsAfterFinished))"
                .to_owned(),
            message: NEVER_HAS_NO_END,
            check: Check::Value(never_has_no_end),
        },
        Rule {
            id: "kruise V18, W11",
            at: at.to_owned(),
            field: "completionPolicy.activeDeadlineSeconds",
            cel: "!has(self.completionPolicy.activeDeadlineSeconds) || \
                  self.pullPolicy.timeoutSeconds <= self.completionPolicy.activeDeadlineSeconds"
                .to_owned(),
            message: "activeDeadlineSeconds is shorter than one pull may take (pullPolicy.timeoutSeconds, 600 if not \
                      given): raise it or lower the timeout",
            check: Check::Value(deadline_fits_timeout),
        },
    ];
    rules.extend(size::sandbox(at));
    rules.extend(label_selector(&format!("{at}.selector")));
    rules.extend(label_selector(&format!("{at}.podSelector")));
    rules
}

/// The rules of a label selector (kruise V13): what `metav1.LabelSelectorAsSelector` would refuse.
pub fn label_selector(at: &str) -> Vec<Rule> {
    vec![
        Rule {
            id: "kruise V13",
            at: format!("{at}.matchExpressions[]"),
            field: "values",
            cel: "(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)"
                .to_owned(),
            message: "operators In and NotIn need at least one value; Exists and DoesNotExist take none",
            check: Check::Value(|requirement| match text(requirement, "operator") {
                Some("In" | "NotIn") => has_items(requirement, "values"),
                Some("Exists" | "DoesNotExist") => !has_items(requirement, "values"),
                // The operator itself is invalid, which the schema reports.
                _ => true,
            }),
        },
        Rule {
            id: "kruise V13",
            at: format!("{at}.matchLabels"),
            field: "",
            cel: format!("self.all(key, size(key) <= 317 && key.matches('{LABEL_KEY_PATTERN}'))"),
            message: "a key is not a label name: up to 63 letters, digits, '-', '_' and '.', with an optional \
                      DNS prefix and '/'",
            check: Check::Value(|labels| {
                let mut keys = labels.as_object().into_iter().flat_map(|map| map.keys());
                keys.all(|key| key.len() <= 317 && crate::schema::matches(LABEL_KEY_PATTERN, key))
            }),
        },
    ]
}

/// The rule that a text is an image reference.
pub fn image(id: &'static str, at: &str) -> Rule {
    Rule {
        id,
        at: at.to_owned(),
        field: "",
        // A bare image ID fits the grammar, but does not name an image.
        cel: format!("self.matches('{}') && !self.matches('^[a-f0-9]{{64}}$')", escape(PATTERN)),
        message: "not an image reference: write it as [registry[:port]/]name[:tag][@digest] with a lower-case name, \
                  for example nginx:1.25",
        check: Check::Text(|text| ImageRef::parse(text).map(drop).map_err(|error| error.to_string())),
    }
}

/// A pattern inside a CEL string literal.
pub(super) fn escape(pattern: &str) -> String {
    pattern.replace('\\', "\\\\").replace('\'', "\\'")
}

fn secrets(spec: &Value) -> &[Value] {
    spec.get("pullSecrets").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn is_node_count(parallelism: &Value) -> bool {
    const MAX: u64 = i32::MAX as u64;
    match parallelism {
        Value::Number(number) => number.as_u64().is_some_and(|count| count <= MAX),
        Value::String(text) => {
            let digits = text.strip_prefix('+').unwrap_or(text);
            !digits.is_empty()
                && digits.bytes().all(|byte| byte.is_ascii_digit())
                && digits.parse::<u64>().is_ok_and(|count| count <= MAX)
        }
        _ => false,
    }
}

pub(super) fn never_has_no_end(policy: &Value) -> bool {
    text(policy, "type") != Some("Never")
        || !(has(policy, "activeDeadlineSeconds") || has(policy, "ttlSecondsAfterFinished"))
}

fn deadline_fits_timeout(spec: &Value) -> bool {
    let number = |pointer: &str| spec.pointer(pointer).and_then(Value::as_i64);
    match (number("/completionPolicy/activeDeadlineSeconds"), number("/pullPolicy/timeoutSeconds")) {
        (Some(deadline), Some(timeout)) => timeout <= deadline,
        _ => true,
    }
}
