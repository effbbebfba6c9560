//! The pages of rules, and which numbers each of them has.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context as _, ensure};

use super::number::Number;

/// The numbers of each page, by the page's name.
#[derive(Debug, Default)]
pub struct Pages(BTreeMap<String, BTreeSet<Number>>);

impl Pages {
    /// Reads every page of a folder.
    pub fn read(folder: &Path) -> anyhow::Result<Self> {
        let mut pages = Self::default();
        for entry in fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
            let path = entry?.path();
            let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            let text =
                fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            pages.add(name, &text)?;
        }
        Ok(pages)
    }

    /// Adds a page. A number that stands there twice is an error, because nobody would know which one is meant.
    pub fn add(&mut self, name: &str, text: &str) -> anyhow::Result<()> {
        let mut numbers = BTreeSet::new();
        for number in text.lines().filter_map(defined) {
            ensure!(numbers.insert(number.clone()), "{name}.md has {number} twice");
        }
        ensure!(!numbers.is_empty(), "{name}.md has no rules");
        self.0.insert(name.to_owned(), numbers);
        Ok(())
    }

    /// The page of this name.
    pub fn named(&self, name: &str) -> Option<&str> {
        self.0.get_key_value(name).map(|(name, _)| name.as_str())
    }

    pub fn has(&self, page: &str, number: &Number) -> bool {
        self.0.get(page).is_some_and(|numbers| numbers.contains(number))
    }

    /// Whether the rules of a page have this letter.
    pub fn has_letter(&self, page: &str, wanted: char) -> bool {
        let is_wanted = |number: &Number| matches!(number, Number::Rule(letter, _) if *letter == wanted);
        self.0.get(page).is_some_and(|numbers| numbers.iter().any(is_wanted))
    }

    /// How many numbers there are.
    pub fn len(&self) -> usize {
        self.0.values().map(BTreeSet::len).sum()
    }
}

/// The number that a line gives to a rule (`- **R45** …`, `| **T1** | …`, `**4** …`) or to a section (`### 7.6 …`).
fn defined(line: &str) -> Option<Number> {
    if line.starts_with('#') {
        return Number::parse(line.split_whitespace().nth(1)?);
    }
    let (number, _) = line.trim_start_matches(['-', '|', ' ']).strip_prefix("**")?.split_once("**")?;
    Number::parse(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(text: &str, number: &str) -> bool {
        let mut pages = Pages::default();
        pages.add("songs", text).unwrap();
        pages.has("songs", &Number::parse(number).unwrap())
    }

    #[test]
    fn rules_stand_in_lists_tables_and_paragraphs_and_sections_in_headings() {
        let page = "# Songs\n## 7 All\n### 7.6 Some\n- **R4** one, as **R5** says\n| **T1** | two |\n**9** *Three.*\n";
        for number in ["7", "7.6", "R4", "T1", "9"] {
            assert!(has(page, number), "{number}");
        }
        assert!(!has(page, "R5"));
    }

    #[test]
    fn a_number_that_stands_twice_is_an_error() {
        let error = Pages::default().add("songs", "- **R4** one\n- **R4** two\n").unwrap_err();
        assert_eq!(error.to_string(), "songs.md has R4 twice");
    }
}
