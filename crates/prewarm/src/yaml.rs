//! Reads manifests: YAML or JSON text becomes JSON values that remember their positions.
//!
//! Each document is read on its own, so a broken one does not hide the others, and only one is held at a time. Text
//! is read as kubectl reads it. What the values mean is left to others.

mod build;
mod mapping;
mod position;
mod scalar;
mod syntax;
#[cfg(test)]
mod tests;

use granit_parser::{ErrorKind, Event, Marker, Parser, ScanError, StrInput};
use prewarm_api::path::FieldPath;
use serde_json::Value;

pub use self::position::{Below, Marks, Position};

use self::build::Builder;
use self::position::count;

/// The deepest nesting of lists and mappings. Our deepest kind has about twenty levels.
pub const MAX_DEPTH: usize = 100;

/// The most documents in one text.
pub const MAX_DOCUMENTS: usize = 10_000;

/// The most values in a document with its aliases expanded; each takes a few hundred bytes.
pub const MAX_VALUES: usize = 250_000;

/// The most bytes of text that a document may repeat through anchors and aliases.
pub const MAX_ALIAS_BYTES: usize = 8 << 20;

/// The most problems that are kept of a document that can still be read.
pub const MAX_PROBLEMS: usize = 100;

/// One document with content.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    pub value: Value,
    pub marks: Marks,
    /// What is wrong with the text although it can be read, such as a key that is set twice.
    pub problems: Vec<Problem>,
}

/// A mistake in the text itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    pub at: Position,
    /// What was being read there; the root if that is not known.
    pub path: FieldPath,
    /// A sentence a person can act on.
    pub message: String,
}

/// Reads the documents of a text one after the other. Empty ones are left out; a broken one is returned as its
/// problem.
pub fn documents(text: &str) -> Documents<'_> {
    // Windows editors put a byte order mark in front, which is not part of the text.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    Documents { text, rest: text, parser: parse(text), origin: Position::START, seen: 0, is_at_end: false }
}

fn parse(text: &str) -> Parser<'_, StrInput<'_>> {
    let options = granit_parser::options! {
        emit_comments: false,
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
    };
    Parser::new_from_str_with_options(text, options)
}

/// The documents of a text.
pub struct Documents<'text> {
    text: &'text str,
    parser: Parser<'text, StrInput<'text>>,
    /// What the parser was given, and where that starts in the text: if a JSON object follows another without a
    /// separator, a new parser reads the rest.
    rest: &'text str,
    origin: Position,
    seen: usize,
    is_at_end: bool,
}

impl Iterator for Documents<'_> {
    type Item = Result<Document, Problem>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_at_end {
            return None;
        }
        let document = self.read_next()?;
        self.seen += 1;
        if self.seen > MAX_DOCUMENTS {
            self.is_at_end = true;
            let message = format!("the text has more than {MAX_DOCUMENTS} documents; split it");
            let at = document.map_or_else(|problem| problem.at, |document| document.marks.at);
            return Some(Err(Problem { at, path: FieldPath::root(), message }));
        }
        Some(document)
    }
}

impl<'text> Documents<'text> {
    fn read_next(&mut self) -> Option<Result<Document, Problem>> {
        let mut builder = Builder::default();
        loop {
            match self.parser.next_event()? {
                Ok((Event::DocumentStart(..), _)) => builder = Builder::default(),
                Ok((Event::DocumentEnd, _)) => {
                    if let Some(document) = std::mem::take(&mut builder).finish() {
                        return Some(Ok(document));
                    }
                }
                Ok((event, span)) => {
                    if let Err(problem) = builder.take(event, self.place_of(span.start)) {
                        self.is_at_end = builder.is_exhausted() || self.skip_document();
                        return Some(Err(self.hint_at_templates(problem, span.start)));
                    }
                }
                Err(error) if self.is_json_without_separator(&error) => self.restart_at(*error.marker()),
                Err(error) => {
                    self.is_at_end = self.skip_document();
                    return Some(Err(self.syntax_problem(&error)));
                }
            }
        }
    }

    /// Skips the rest of a document and returns whether it was the last one.
    fn skip_document(&mut self) -> bool {
        !matches!(self.parser.proceed_next_document(), Ok(true))
    }

    fn syntax_problem(&self, error: &ScanError) -> Problem {
        let at = self.place_of(*error.marker());
        let (at, message) = syntax::explain(self.text, error.kind(), at);
        self.hint_at_templates(Problem { at, path: FieldPath::root(), message }, *error.marker())
    }

    /// Templates break the text in many ways, and none of the usual sentences would help.
    fn hint_at_templates(&self, problem: Problem, marker: Marker) -> Problem {
        match syntax::template_hint(self.rest, marker.byte_offset().unwrap_or_default()) {
            Some(message) => Problem { message, ..problem },
            None => problem,
        }
    }

    /// JSON tools print one object after the other, and kubectl reads them; YAML requires a `---` in between.
    fn is_json_without_separator(&self, error: &ScanError) -> bool {
        let (before, after) = self.split_at(*error.marker());
        // On one line, the parser would look for a `:` far behind each object, which takes very long.
        let starts_a_line = before.trim_end_matches([' ', '\t']).ends_with(['\n', '\r']);
        *error.kind() == ErrorKind::ExpectedDocumentStart
            && starts_a_line
            && self.rest.trim_start().starts_with('{')
            && after.starts_with('{')
    }

    fn restart_at(&mut self, marker: Marker) {
        let origin = self.place_of(marker);
        self.rest = self.split_at(marker).1;
        self.parser = parse(self.rest);
        self.origin = origin;
    }

    /// What the parser was given, before and after a place in it.
    fn split_at(&self, marker: Marker) -> (&'text str, &'text str) {
        let offset = marker.byte_offset().unwrap_or_default();
        self.rest.split_at_checked(offset).unwrap_or((self.rest, ""))
    }

    fn place_of(&self, marker: Marker) -> Position {
        let line = count(marker.line()).saturating_sub(1);
        let indent = if line == 0 { self.origin.column - 1 } else { 0 };
        Position { line: self.origin.line + line, column: indent + count(marker.col()) + 1 }
    }
}
