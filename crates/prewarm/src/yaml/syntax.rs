//! Sentences for text that is not YAML, and the place to look at.
//!
//! The parser reports the rule that was broken; these sentences name the usual mistake behind it.

use granit_parser::ErrorKind;

use super::MAX_DEPTH;
use super::position::{Position, count};

/// How much of a line is read on both sides: a text without line breaks may have a problem at every byte.
const MAX_LINE_BYTES: usize = 200;

/// The place and the sentence for a syntax error that the parser found at `at`.
pub(super) fn explain(text: &str, kind: &ErrorKind, at: Position) -> (Position, String) {
    if is_about_tabs(kind)
        && let Some(tab) = first_tab_in_indentation(text, at)
    {
        return (tab, "tab characters are not allowed for indentation; use spaces".to_owned());
    }
    (at, sentence(kind))
}

/// A sentence for a line that only makes sense before a template engine has run, if it looks like one.
pub(super) fn template_hint(text: &str, offset: usize) -> Option<String> {
    line_around(text, offset).contains("{{").then(|| {
        "this looks like a template; render it first, for example `helm template . | prewarm lint -`"
            .to_owned()
    })
}

fn is_about_tabs(kind: &ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::TabInIndentation
            | ErrorKind::TabInBlockIndentation
            | ErrorKind::TabNotAllowed
            | ErrorKind::TabInPlainScalar
            | ErrorKind::TabAtBlockScalarStart
            | ErrorKind::InvalidBlockEntryWhitespace
            | ErrorKind::InvalidMappingValueWhitespace
    )
}

/// The first tab before a line's content, from the line of `from` on: the parser may report the line where the text
/// that the tab interrupts began.
fn first_tab_in_indentation(text: &str, from: Position) -> Option<Position> {
    let lines = text.split('\n').zip(1u32..).skip_while(|(_, number)| *number < from.line);
    lines.filter(|(line, _)| !line.trim().is_empty()).find_map(|(line, number)| {
        let indentation = line.chars().take_while(|c| matches!(c, ' ' | '\t'));
        let tab = indentation.clone().position(|c| c == '\t')?;
        Some(Position { line: number, column: count(tab) + 1 })
    })
}

/// The line at an offset, or the part of it nearby.
fn line_around(text: &str, offset: usize) -> &str {
    let offset = text.floor_char_boundary(offset);
    let near = text.floor_char_boundary(offset.saturating_sub(MAX_LINE_BYTES))
        ..text.ceil_char_boundary(offset.saturating_add(MAX_LINE_BYTES));
    let (before, after) = (&text[near.start..offset], &text[offset..near.end]);
    let start = before.rfind('\n').map_or(near.start, |found| near.start + found + 1);
    let end = after.find('\n').map_or(near.end, |found| offset + found);
    &text[start..end]
}

fn sentence(kind: &ErrorKind) -> String {
    let sentence = match kind {
        ErrorKind::RecursionLimitExceeded => {
            return format!("values are nested more than {MAX_DEPTH} levels deep");
        }
        ErrorKind::UnexpectedCharacter { character } => {
            return format!("text cannot start with `{}`; put it in quotes", character.escape_default());
        }
        ErrorKind::UnclosedFlowCollection { open } => return format!("the `{open}` is never closed"),
        ErrorKind::MismatchedFlowCollectionEnd { open, close } => {
            return format!("the `{open}` is closed by `{close}`");
        }
        ErrorKind::UnknownAnchor => {
            "no anchor of this name is defined above; if the `*` is part of the text, put it in quotes"
        }
        ErrorKind::MissingAnchorOrAliasName => {
            "`*` and `&` mark aliases and anchors; if they are part of the text, put it in quotes"
        }
        ErrorKind::MappingValueNotAllowed => {
            "a second `key: value` does not fit here; check the indentation of this line, or put a text with `: ` in quotes"
        }
        ErrorKind::ExpectedBlockMappingKey | ErrorKind::InvalidIndentation => {
            "the indentation of this line matches nothing above it"
        }
        ErrorKind::ExpectedBlockSequenceEntry => {
            "expected another `- ` item; the indentation of this line does not fit the list above it"
        }
        ErrorKind::BlockSequenceEntryNotAllowed => {
            "a `- ` item does not fit here; start it on a line of its own"
        }
        ErrorKind::SimpleKeyExpected | ErrorKind::InvalidSimpleKey => {
            "expected `key: value`; a `:` after the key is missing, or a space after the `-` of an item"
        }
        ErrorKind::UnclosedQuotedScalar => "the quote is never closed",
        ErrorKind::InvalidQuotedScalarIndent | ErrorKind::DocumentIndicatorInQuotedScalar => {
            "a quoted text runs on into this line; is its closing quote missing?"
        }
        ErrorKind::InvalidTrailingDoubleQuotedScalar | ErrorKind::InvalidTrailingSingleQuotedScalar => {
            "nothing may follow the closing quote; write a quote within the text as `\\\"` or, in single quotes, as `''`"
        }
        ErrorKind::UnknownQuotedScalarEscape => {
            "unknown escape after `\\` in double quotes; write `\\\\` for a backslash, or use single quotes"
        }
        ErrorKind::ExpectedFlowMappingSeparator => "expected `,` or `}`",
        ErrorKind::ExpectedFlowSequenceSeparator => "expected `,` or `]`",
        ErrorKind::InvalidColonPlacement => {
            "a `:` does not fit here; is a closing bracket missing in a line above?"
        }
        ErrorKind::ExpectedDocumentStart => {
            "the document is complete before this; a new one starts with `---`"
        }
        ErrorKind::InvalidBlockScalarIndent => {
            "a line of the text block is indented less than its first line"
        }
        ErrorKind::UndeclaredTagHandle => {
            "the tag is not declared; if the `!` is part of the text, put it in quotes"
        }
        other => return format!("not valid YAML: {other}"),
    };
    sentence.to_owned()
}
