//! Fields of entries that the API server drops without a word, because the installed definitions do not know them.
//!
//! An entry that lacks such a field is never as it should be. Whether somebody has undone what was written or it was never kept, the
//! answer to the write says: if it shows the same difference, the server dropped the field. That is reported, and the write is
//! made again after minutes only.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::node::Node;
use crate::object::echo::Answer;

/// A field of an entry is so many names below the root: `/spec/images/NAME/tags/0/FIELD`.
const DEPTH: usize = 7;

/// The fields of entries that were written last.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    sent: BTreeMap<String, Value>,
    /// The resourceVersion of the answer, until it was looked at.
    answered: Option<String>,
}

impl Node {
    /// A patch with these operations is being written.
    pub(super) fn begin_fields(&mut self, operations: &[Value]) {
        self.fields = Fields { sent: fields(operations), answered: None };
    }

    /// It arrived, and the NodeImage has this version.
    pub(super) fn answer_fields(&mut self, version: Option<String>) {
        self.fields.answered = version.filter(|_| !self.fields.sent.is_empty());
    }

    /// What came of the fields that were written last, if these operations are what is to be done to the very answer.
    pub(super) fn kept_fields(&mut self, operations: &[Value]) -> Option<Answer> {
        let answered = self.fields.answered.take()?;
        self.image.as_ref().filter(|image| image.resource_version == answered)?;
        let sent = std::mem::take(&mut self.fields.sent);
        let again = fields(operations);
        let is_kept = |(path, value): &(&String, &Value)| again.get(*path) != Some(value);
        Some(Answer { sent: names(sent.iter()), shown: names(sent.iter().filter(is_kept)) })
    }
}

/// The operations that write one field of an entry, by path.
fn fields(operations: &[Value]) -> BTreeMap<String, Value> {
    let field = |operation: &Value| {
        let path = operation["path"].as_str().filter(|path| path.split('/').count() == DEPTH)?;
        (operation["op"] == "add").then(|| (path.to_owned(), operation["value"].clone()))
    };
    operations.iter().filter_map(field).collect()
}

/// How often each field is among these.
fn names<'a>(fields: impl Iterator<Item = (&'a String, &'a Value)>) -> Value {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (path, _) in fields {
        *counts.entry(path.rsplit('/').next().unwrap_or_default()).or_default() += 1;
    }
    Value::Object(
        counts.into_iter().map(|(name, count)| (name.to_owned(), json!(count))).collect::<Map<_, _>>(),
    )
}
