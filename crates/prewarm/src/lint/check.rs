//! Checks the objects of one file. Pure: bytes come in, findings go out.

use std::collections::BTreeMap;

use prewarm_api::path::{FieldPath, Step};
use prewarm_api::validate::{Class, Inspection, Violation, inspect};
use serde_json::Value;

use super::decode::decode;
use super::list::{self, ItemNames};
use super::misplaced;
use super::report::{FileReport, Finding, ObjectName, Severity};
use crate::yaml::{self, Document, Marks, Position, Problem};

/// For at most this many unknown fields of an object the right place is searched; each costs several inspections.
const MAX_LOOKUPS_PER_OBJECT: usize = 20;

pub fn check(file: &str, bytes: Vec<u8>) -> FileReport {
    let mut checker = Checker { file, seen: BTreeMap::new(), report: FileReport::default() };
    match decode(bytes) {
        Ok(text) => checker.text(&text),
        Err((at, message)) => checker.error(at, FieldPath::root(), message, None),
    }
    checker.report.close(file);
    checker.report
}

struct Checker<'a> {
    file: &'a str,
    /// Where each object was first seen. It is kept for one file only: overlays repeat names across files on purpose.
    seen: BTreeMap<ObjectName, Position>,
    report: FileReport,
}

/// An object within a document: the document itself, or an item of a list.
struct Located<'a> {
    value: &'a Value,
    marks: &'a Marks,
    /// Its path in the document.
    path: FieldPath,
}

impl Checker<'_> {
    fn text(&mut self, text: &str) {
        let mut has_documents = false;
        for document in yaml::documents(text) {
            has_documents = true;
            match document {
                Ok(document) => self.document(&document),
                Err(Problem { at, path, message }) => self.error(at, path, message, None),
            }
        }
        if !has_documents {
            self.error(Position::START, FieldPath::root(), "the file has no objects".to_owned(), None);
        }
    }

    fn document(&mut self, document: &Document) {
        let before = (self.report.objects, self.report.errors);
        self.object(&Located { value: &document.value, marks: &document.marks, path: FieldPath::root() });
        // Mistakes in objects of other kinds are left to other tools.
        let is_ours = before != (self.report.objects, self.report.errors);
        for Problem { at, path, message } in document.problems.iter().filter(|_| is_ours) {
            self.error(*at, path.clone(), message.clone(), Some(ObjectName::of(&document.value)));
        }
    }

    fn object(&mut self, object: &Located<'_>) {
        let Value::Object(fields) = object.value else {
            let message =
                format!("expected an object with apiVersion and kind, not {}", describe(object.value));
            return self.error_at(object, &FieldPath::root(), message);
        };
        let names = ["apiVersion", "kind"];
        let missing: Vec<&str> = names.into_iter().filter(|name| !fields.contains_key(*name)).collect();
        if !missing.is_empty() {
            let message =
                format!("no {}; every Kubernetes object has apiVersion and kind", missing.join(" and "));
            return self.error_at(object, &FieldPath::root(), message);
        }
        if let Some(name) = names.into_iter().find(|name| !fields[*name].is_string()) {
            let message = format!("must be a text, not {}", describe(&fields[name]));
            return self.error_at(object, &FieldPath::root().field(name), message);
        }
        match list::items_of(object.value) {
            Some(item_names) => self.list(object, &item_names),
            None => self.single(object),
        }
    }

    fn list(&mut self, list: &Located<'_>, item_names: &ItemNames) {
        let items_path = FieldPath::root().field("items");
        let Some(Value::Array(items)) = list.value.get("items") else {
            return self.error_at(list, &items_path, "must be a list of objects".to_owned());
        };
        for (index, item) in items.iter().enumerate() {
            let marks = list.marks.child(&Step::Field("items".to_owned()));
            let marks = marks.and_then(|marks| marks.child(&Step::Index(index))).unwrap_or(list.marks);
            let value = item_names.complete(item);
            let path = join(&list.path, &items_path.index(index));
            self.object(&Located { value: &value, marks, path });
        }
    }

    fn single(&mut self, object: &Located<'_>) {
        match inspect(object.value) {
            Inspection::Foreign => self.pass_over(object),
            Inspection::UnknownKind(violation) => {
                self.report.objects += 1;
                self.violations(object, vec![violation]);
            }
            Inspection::Ours(violations) => {
                self.report.objects += 1;
                self.violations(object, violations);
                self.note_repetition(object);
            }
        }
    }

    fn pass_over(&mut self, object: &Located<'_>) {
        self.report.passed_over += 1;
        let ObjectName { api_version, kind, .. } = ObjectName::of(object.value);
        let message = format!(
            "{} {} is not a kind of Prewarm's, passed over",
            api_version.unwrap_or_default(),
            kind.unwrap_or_default()
        );
        self.note(object, message);
    }

    fn violations(&mut self, object: &Located<'_>, violations: Vec<Violation>) {
        let mut lookups = 0;
        let mistyped: Vec<FieldPath> =
            violations.iter().filter(|one| one.class == Class::Type).map(|one| one.path.clone()).collect();
        // If a value has the wrong type, that is enough; its content is not reported as unknown as well.
        let is_aside =
            |one: &Violation| one.class == Class::UnknownField && mistyped.contains(&one.path.parent());
        for violation in violations.into_iter().filter(|one| !is_aside(one)) {
            let mut message = violation.message;
            let is_misspelt = message.contains("did you mean");
            if violation.class == Class::UnknownField && !is_misspelt && lookups < MAX_LOOKUPS_PER_OBJECT {
                lookups += 1;
                message = misplaced::sentence(object.value, &violation.path).unwrap_or(message);
            }
            if violation.class == Class::Type
                && !is_misspelt
                && let Some(meant) = misplaced::name_alone(object.value, &violation.path)
            {
                message = format!("{message}; did you mean {meant:?}?");
            }
            self.error_at(object, &violation.path, message);
        }
    }

    /// Reports an object that is given twice: when both are applied, the later one silently wins.
    fn note_repetition(&mut self, object: &Located<'_>) {
        let name = ObjectName::of(object.value);
        let Some(own_name) = name.name.clone() else { return };
        if let Some(first) = self.seen.get(&name) {
            let kind = name.kind.unwrap_or_default();
            let message = format!("{kind} {own_name} is already in line {}; the later one wins", first.line);
            self.note(object, message);
        } else {
            self.seen.insert(name, object.marks.at);
        }
    }

    fn error_at(&mut self, object: &Located<'_>, path: &FieldPath, message: String) {
        let at = object.marks.locate(path);
        let name = object.value.is_object().then(|| ObjectName::of(object.value));
        self.error(at, join(&object.path, path), message, name);
    }

    fn error(&mut self, at: Position, path: FieldPath, message: String, object: Option<ObjectName>) {
        let file = self.file.to_owned();
        self.report.push(Finding { file, at, path, severity: Severity::Error, message, object });
    }

    fn note(&mut self, object: &Located<'_>, message: String) {
        self.report.push(Finding {
            file: self.file.to_owned(),
            at: object.marks.at,
            path: object.path.clone(),
            severity: Severity::Note,
            message,
            object: Some(ObjectName::of(object.value)),
        });
    }
}

fn join(outer: &FieldPath, inner: &FieldPath) -> FieldPath {
    inner.steps().iter().fold(outer.clone(), |path, step| match step {
        Step::Field(name) => path.field(name),
        Step::Index(index) => path.index(*index),
    })
}

fn describe(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The pieces of a manifest in a meaningless order.
    fn shuffled_manifests() -> impl Strategy<Value = String> {
        let lines = vec![
            "apiVersion: apps.kruise.io/v1beta1",
            "apiVersion: v1",
            "kind: ImagePullJob",
            "kind: ImagePullJobList",
            "kind: List",
            "metadata: {name: a}",
            "spec:",
            "items:",
            "- &a x: *a",
            "  - <<: [{a: 1}]",
            "  image: nginx",
            "  selector:",
            "    names: [a]",
            "\tparallelism: 1",
            "---",
            "{\"a\": [",
            "]}",
        ];
        prop::collection::vec(prop::sample::select(lines), 0..20).prop_map(|lines| lines.join("\n"))
    }

    proptest! {
        #[test]
        fn any_bytes_are_checked_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(check("file", bytes).errors > 0);
        }

        #[test]
        fn whatever_is_wrong_stands_in_a_line_of_the_file(text in shuffled_manifests()) {
            let lines = text.lines().count().max(1) + 1;
            for finding in check("file", text.into_bytes()).findings {
                prop_assert!((1..=lines).contains(&(finding.at.line as usize)), "{:?}", finding);
            }
        }
    }
}
