//! Positions in a text, and the tree that holds them for every value of a document.
//!
//! The tree has the shape of the document's value. It exists because a JSON value cannot carry positions, and
//! a flat map keyed by whole paths would cost many times the memory of the text.

use std::collections::BTreeMap;

use prewarm_api::path::{FieldPath, Step};

/// A place in a text as editors count it: lines and characters, both from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub line: u32,
    /// The character within the line; a tab is one character.
    pub column: u32,
}

impl Position {
    /// The start of every text.
    pub const START: Self = Self { line: 1, column: 1 };

    /// The position just behind a text that begins at the start of a file.
    pub fn after(text: &str) -> Self {
        let last_line = text.rsplit('\n').next().unwrap_or_default();
        Self {
            line: count(text.matches('\n').count()).saturating_add(1),
            column: count(last_line.chars().count()).saturating_add(1),
        }
    }
}

/// Turns a count into a line or column. Texts are far shorter than this can hold.
pub(super) fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The position of a value and of everything in it. The position of a field is that of its key.
#[derive(Clone, Debug, PartialEq)]
pub struct Marks {
    /// Where this value, or its key, starts.
    pub at: Position,
    pub below: Below,
}

/// The positions of the content of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Below {
    /// A value without content.
    Nothing,
    Items(Vec<Marks>),
    Fields(BTreeMap<String, Marks>),
}

impl Marks {
    /// The position of the value at a path or, if there is none, of the nearest value that would contain it.
    pub fn locate(&self, path: &FieldPath) -> Position {
        let mut here = self;
        for step in path.steps() {
            match here.child(step) {
                Some(child) => here = child,
                None => break,
            }
        }
        here.at
    }

    /// The marks of the value one step down.
    pub fn child(&self, step: &Step) -> Option<&Self> {
        match (step, &self.below) {
            (Step::Field(name), Below::Fields(fields)) => fields.get(name),
            (Step::Index(index), Below::Items(items)) => items.get(*index),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(line: u32, column: u32) -> Marks {
        Marks { at: Position { line, column }, below: Below::Nothing }
    }

    #[test]
    fn a_missing_path_has_the_position_of_its_nearest_parent() {
        let images = Marks { at: Position { line: 3, column: 3 }, below: Below::Items(vec![leaf(4, 5)]) };
        let spec = Marks {
            at: Position { line: 2, column: 1 },
            below: Below::Fields(BTreeMap::from([("images".to_owned(), images)])),
        };
        let root =
            Marks { at: Position::START, below: Below::Fields(BTreeMap::from([("spec".to_owned(), spec)])) };

        let place = |path: FieldPath| {
            let at = root.locate(&path);
            (at.line, at.column)
        };
        assert_eq!(place(FieldPath::root().below("spec.images").index(0)), (4, 5));
        assert_eq!(place(FieldPath::root().below("spec.images").index(7)), (3, 3));
        assert_eq!(place(FieldPath::root().below("spec.selector.names")), (2, 1));
        assert_eq!(place(FieldPath::root().below("metadata")), (1, 1));
    }

    #[test]
    fn a_position_counts_characters_and_not_bytes() {
        assert_eq!(Position::after("a: 1\nä: é"), Position { line: 2, column: 5 });
    }
}
