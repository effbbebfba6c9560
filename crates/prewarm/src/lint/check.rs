//! Judges the objects of one file. Pure: bytes come in, findings go out.

use std::borrow::Cow;
use std::collections::BTreeMap;

use prewarm_api::path::{FieldPath, Step};
use prewarm_api::validate::{Class, Inspection, Violation, inspect};
use serde_json::{Value, json};

use super::misplaced;
use super::report::{FileReport, Finding, ObjectName, Severity};
use super::sources;
use crate::yaml::{self, Document, Marks, Position, Problem};

/// How many unknown fields of one object are looked up elsewhere in it; each costs several inspections.
const MAX_LOOKUPS_PER_OBJECT: usize = 20;

/// Checks one file.
pub fn check(file: &str, bytes: Vec<u8>) -> FileReport {
    let mut checker = Checker { file, seen: BTreeMap::new(), report: FileReport::default() };
    match sources::decode(bytes) {
        Ok(text) => checker.text(&text),
        Err((at, message)) => checker.error(at, FieldPath::root(), message, None),
    }
    checker.report.close(file);
    checker.report
}

struct Checker<'a> {
    file: &'a str,
    /// Where each object was first seen. It ends with the file: overlays repeat names across files on purpose.
    seen: BTreeMap<ObjectName, Position>,
    report: FileReport,
}

/// An object within a document: the document itself, or an item of a list.
struct Located<'a> {
    value: &'a Value,
    marks: &'a Marks,
    /// Where it stands in its document.
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
        // Slips in objects that are none of ours are for others to find.
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
        match list_of(object.value) {
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
        for violation in violations {
            let mut message = violation.message;
            if violation.class == Class::UnknownField && lookups < MAX_LOOKUPS_PER_OBJECT {
                lookups += 1;
                message = misplaced::sentence(object.value, &violation.path).unwrap_or(message);
            }
            self.error_at(object, &violation.path, message);
        }
    }

    /// Says when an object is given twice: applied together, the later one silently wins.
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
        self.error(at, join(&object.path, path), message, Some(ObjectName::of(object.value)));
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

/// What the items of a list are called when they do not say it themselves.
enum ItemNames {
    /// `v1 List`: every item says what it is.
    Own,
    /// `ImagePullJobList` and the like: the API leaves the names of the items out.
    Inherited { api_version: String, kind: String },
}

impl ItemNames {
    fn complete<'a>(&self, item: &'a Value) -> Cow<'a, Value> {
        match (self, item) {
            (Self::Inherited { api_version, kind }, Value::Object(fields))
                if !fields.contains_key("apiVersion") && !fields.contains_key("kind") =>
            {
                let mut fields = fields.clone();
                fields.insert("apiVersion".to_owned(), json!(api_version));
                fields.insert("kind".to_owned(), json!(kind));
                Cow::Owned(Value::Object(fields))
            }
            _ => Cow::Borrowed(item),
        }
    }
}

/// Whether an object is a list whose items are worth a look.
fn list_of(object: &Value) -> Option<ItemNames> {
    let (api_version, kind) = (object["apiVersion"].as_str()?, object["kind"].as_str()?);
    if (api_version, kind) == ("v1", "List") {
        return Some(ItemNames::Own);
    }
    let kind = kind.strip_suffix("List")?;
    let item = json!({ "apiVersion": api_version, "kind": kind });
    let names = ItemNames::Inherited { api_version: api_version.to_owned(), kind: kind.to_owned() };
    matches!(inspect(&item), Inspection::Ours(_)).then_some(names)
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
