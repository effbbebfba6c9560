//! Reads the fields of the plugins' config one by one, so that each complaint names the path of its field and none
//! repeats a value: values of `env` may be secrets.

use serde_json::{Map, Value};

/// One object of the config, the path to it, and the complaints about the whole config.
pub(super) struct Fields<'a> {
    object: Map<String, Value>,
    path: String,
    complaints: &'a mut Vec<String>,
}

impl<'a> Fields<'a> {
    /// Takes an object. Anything else counts as an empty object, with a complaint.
    pub(super) fn new(value: Value, path: &str, complaints: &'a mut Vec<String>) -> Self {
        let object = if let Value::Object(object) = value {
            object
        } else {
            complaints
                .push(format!("{}: must be an object", if path.is_empty() { "the config" } else { path }));
            Map::new()
        };
        Self { object, path: path.to_owned(), complaints }
    }

    /// A required text.
    pub(super) fn text(&mut self, name: &str) -> String {
        match self.object.remove(name) {
            Some(Value::String(text)) if !text.is_empty() => return text,
            None | Some(Value::Null | Value::String(_)) => self.complain(name, "is required"),
            Some(_) => self.complain(name, "must be a text"),
        }
        String::new()
    }

    /// A text that may be missing or empty.
    pub(super) fn optional_text(&mut self, name: &str) -> String {
        match self.object.remove(name) {
            Some(Value::String(text)) => return text,
            None | Some(Value::Null) => {}
            Some(_) => self.complain(name, "must be a text"),
        }
        String::new()
    }

    /// A list. A missing one is empty.
    pub(super) fn list(&mut self, name: &str) -> Vec<Value> {
        match self.object.remove(name) {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(list)) => list,
            Some(_) => {
                self.complain(name, "must be a list");
                Vec::new()
            }
        }
    }

    /// A list of texts. A missing one is empty.
    pub(super) fn texts(&mut self, name: &str) -> Vec<String> {
        let mut texts = Vec::new();
        for (index, value) in self.list(name).into_iter().enumerate() {
            match value {
                Value::String(text) => texts.push(text),
                _ => self.complain(&format!("{name}[{index}]"), "must be a text"),
            }
        }
        texts
    }

    /// Refuses a field whatever its value.
    pub(super) fn refuse(&mut self, name: &str, sentence: &str) {
        if self.object.remove(name).is_some_and(|value| !value.is_null()) {
            self.complain(name, sentence);
        }
    }

    /// The fields of an object in a list.
    pub(super) fn item(&mut self, name: &str, index: usize, value: Value) -> Fields<'_> {
        let path = self.at(&format!("{name}[{index}]"));
        Fields::new(value, &path, self.complaints)
    }

    pub(super) fn complain(&mut self, name: &str, sentence: &str) {
        let path = self.at(name);
        self.complaints.push(format!("{path}: {sentence}"));
    }

    /// Complains about all fields that were not read: a misspelt field would be ignored otherwise.
    pub(super) fn finish(mut self) {
        for name in std::mem::take(&mut self.object).keys() {
            self.complain(name, "is not a known field");
        }
    }

    fn at(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }
}
