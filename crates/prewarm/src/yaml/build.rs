//! Puts one document together from the parser's events.
//!
//! Aliases are expanded in place, because the value that is checked has none. Their growth is limited before
//! anything is copied, so that a few lines cannot fill the memory.

use std::collections::BTreeMap;

use granit_parser::{Event, ScalarStyle, Tag};
use prewarm_api::path::FieldPath;
use serde_json::Value;

use super::mapping::{Key, Node, OpenMapping};
use super::position::{Below, Marks, Position};
use super::scalar::{self, Notation};
use super::{Document, MAX_ALIAS_BYTES, MAX_DEPTH, MAX_PROBLEMS, MAX_VALUES, Problem};

/// The document read so far.
#[derive(Default)]
pub(super) struct Builder {
    root: Option<Node>,
    /// From the outermost collection to the one being read.
    open: Vec<Collection>,
    anchors: BTreeMap<usize, Anchored>,
    values: usize,
    alias_bytes: usize,
    problems: Vec<Problem>,
}

/// A list or mapping that is not complete yet.
struct Collection {
    at: Position,
    anchor: usize,
    content: Content,
}

enum Content {
    List { items: Vec<Value>, marks: Vec<Marks> },
    Mapping(OpenMapping),
}

/// A value that aliases can repeat, and what one repetition costs.
struct Anchored {
    node: Node,
    extent: Extent,
}

/// The size of a value with everything in it.
#[derive(Clone, Copy, Default)]
struct Extent {
    values: usize,
    bytes: usize,
    depth: usize,
}

impl Builder {
    /// Processes the next event. An error means that the rest of the document has to be skipped.
    pub fn take(&mut self, event: Event<'_>, at: Position) -> Result<(), Problem> {
        match event {
            Event::Scalar(text, style, anchor, tag) => self.scalar(&text, style, tag.as_deref(), anchor, at),
            Event::SequenceStart(_, anchor, _) => {
                self.begin(at, anchor, Content::List { items: Vec::new(), marks: Vec::new() })
            }
            Event::MappingStart(_, anchor, _) => {
                self.begin(at, anchor, Content::Mapping(OpenMapping::default()))
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(at),
            Event::Alias(anchor) => self.alias(anchor, at),
            _ => Ok(()),
        }
    }

    /// Whether a limit is exhausted. The documents after such a one are not read either.
    pub fn is_exhausted(&self) -> bool {
        self.values > MAX_VALUES || self.alias_bytes > MAX_ALIAS_BYTES
    }

    /// The document, if it has any content.
    pub fn finish(self) -> Option<Document> {
        let root = self.root.filter(|root| !root.value.is_null())?;
        Some(Document { value: root.value, marks: root.marks, problems: self.problems })
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        tag: Option<&Tag>,
        anchor: usize,
        at: Position,
    ) -> Result<(), Problem> {
        let notation = notation(style, tag);
        if let Some(mapping) = self.awaiting_key()
            && text == "<<"
            && matches!(notation, Notation::Plain | Notation::Tagged("merge"))
        {
            mapping.key = Some(Key::Merge);
            return Ok(());
        }
        let value = scalar::resolve(text, notation).map_err(|message| self.problem(at, message))?;
        let node = Node { value, marks: Marks { at, below: Below::Nothing } };
        self.spend(1, at)?;
        self.remember(anchor, &node, at)?;
        self.place(node, at)
    }

    fn begin(&mut self, at: Position, anchor: usize, content: Content) -> Result<(), Problem> {
        if self.awaiting_key().is_some() {
            return Err(self.problem(at, "a key must be a word, not a list or a mapping".to_owned()));
        }
        self.spend(1, at)?;
        self.open.push(Collection { at, anchor, content });
        Ok(())
    }

    fn end(&mut self, at: Position) -> Result<(), Problem> {
        let Some(Collection { at: start, anchor, content }) = self.open.pop() else { return Ok(()) };
        let node = match content {
            Content::Mapping(mapping) => mapping.close(start),
            Content::List { items, marks } => {
                Node { value: Value::Array(items), marks: Marks { at: start, below: Below::Items(marks) } }
            }
        };
        self.remember(anchor, &node, at)?;
        self.place(node, start)
    }

    fn alias(&mut self, anchor: usize, at: Position) -> Result<(), Problem> {
        let Some(anchored) = self.anchors.get(&anchor) else {
            return Err(self.problem(at, "the alias stands inside the value that it repeats".to_owned()));
        };
        let extent = anchored.extent;
        if self.open.len() + extent.depth > MAX_DEPTH {
            return Err(self.problem(at, format!("values are nested more than {MAX_DEPTH} levels deep")));
        }
        self.alias_bytes += extent.bytes;
        self.spend(extent.values, at)?;
        let node = self.anchors[&anchor].node.clone();
        self.place(node, at)
    }

    /// Puts a finished value where it belongs: it is a key, a field's value, an item or the whole document.
    fn place(&mut self, node: Node, at: Position) -> Result<(), Problem> {
        match self.open.last_mut().map(|collection| &mut collection.content) {
            None => self.root = Some(node),
            Some(Content::List { items, marks }) => {
                items.push(node.value);
                marks.push(Marks { at, below: node.marks.below });
            }
            Some(Content::Mapping(mapping)) => match mapping.key.take() {
                None => return self.key(&node.value, at),
                Some(Key::Field { name, at }) => mapping.set(name, at, node),
                Some(Key::Merge) => mapping.merge(node).map_err(|message| self.problem(at, message))?,
            },
        }
        Ok(())
    }

    fn key(&mut self, key: &Value, at: Position) -> Result<(), Problem> {
        let Some(name) = scalar::key_name(key) else {
            return Err(self.problem(at, "a key is missing before the `:`".to_owned()));
        };
        let Some(mapping) = self.awaiting_key() else { return Ok(()) };
        let first = mapping.is_set_at(&name);
        mapping.key = Some(Key::Field { name: name.clone(), at });
        if let Some(first) = first
            && self.problems.len() < MAX_PROBLEMS
        {
            let message = format!("{name:?} is already set in line {}; keep one of the two", first.line);
            let problem = self.problem(at, message);
            self.problems.push(problem);
        }
        Ok(())
    }

    /// The innermost mapping, if the next thing in it is a key.
    fn awaiting_key(&mut self) -> Option<&mut OpenMapping> {
        match self.open.last_mut().map(|collection| &mut collection.content) {
            Some(Content::Mapping(mapping)) if mapping.key.is_none() => Some(mapping),
            _ => None,
        }
    }

    fn remember(&mut self, anchor: usize, node: &Node, at: Position) -> Result<(), Problem> {
        if anchor == 0 {
            return Ok(());
        }
        let extent = measure(&node.value);
        // Nested anchors copy the same text again and again, so a copy counts like a value.
        self.alias_bytes += extent.bytes;
        self.spend(extent.values, at)?;
        self.anchors.insert(anchor, Anchored { node: node.clone(), extent });
        Ok(())
    }

    fn spend(&mut self, values: usize, at: Position) -> Result<(), Problem> {
        self.values += values;
        if self.is_exhausted() {
            let message = format!(
                "the document is too large to check: more than {MAX_VALUES} values, or {} MiB repeated through \
                 aliases; the rest of the file is not checked",
                MAX_ALIAS_BYTES >> 20
            );
            return Err(self.problem(at, message));
        }
        Ok(())
    }

    fn problem(&self, at: Position, message: String) -> Problem {
        Problem { at, path: self.path(), message }
    }

    /// The path of what is being read.
    fn path(&self) -> FieldPath {
        self.open.iter().fold(FieldPath::root(), |path, collection| match &collection.content {
            Content::List { items, .. } => path.index(items.len()),
            Content::Mapping(OpenMapping { key: Some(Key::Field { name, .. }), .. }) => path.field(name),
            Content::Mapping(_) => path,
        })
    }
}

fn notation(style: ScalarStyle, tag: Option<&Tag>) -> Notation<'_> {
    match (tag, style) {
        (Some(tag), _) => tag.core_suffix().map_or(Notation::ForeignTag, Notation::Tagged),
        (None, ScalarStyle::Plain) => Notation::Plain,
        (None, _) => Notation::Quoted,
    }
}

/// Measures a value. It recurses as deep as the document, which the parser has bounded.
fn measure(value: &Value) -> Extent {
    let (children, own_bytes): (Vec<Extent>, usize) = match value {
        Value::String(text) => (Vec::new(), text.len()),
        Value::Array(items) => (items.iter().map(measure).collect(), 0),
        Value::Object(fields) => {
            (fields.values().map(measure).collect(), fields.keys().map(String::len).sum())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => (Vec::new(), 0),
    };
    let is_collection = usize::from(value.is_array() || value.is_object());
    Extent {
        values: 1 + children.iter().map(|child| child.values).sum::<usize>(),
        bytes: own_bytes + children.iter().map(|child| child.bytes).sum::<usize>(),
        depth: is_collection + children.iter().map(|child| child.depth).max().unwrap_or(0),
    }
}
