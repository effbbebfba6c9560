//! Which words are used: private ones that a reader of Kubernetes code would have to look up are refused, with the word to use
//! instead, and the glossary stays short.

use super::Source;

/// Words that are refused wherever they appear, in names and in text, and what to write instead.
const BANNED: &[(&str, &str)] = &[
    ("hear", "observe"),
    ("hears", "observes"),
    ("heard", "observed"),
    ("ears", "inputs, watches"),
    ("forlorn", "gone, without an owner"),
    ("luck", "seed, choice"),
    ("news", "changes, events, inputs"),
    ("regards", "concerns"),
    ("restand", "update"),
    ("soil", "mark"),
    ("soils", "marks"),
    ("told", "reported, granted, set"),
    ("unmake", "remove"),
    ("unserve", "stop serving"),
];

/// Words that are plain English in text, but are refused as a part of the name of an item.
const BANNED_NAMES: &[(&str, &str)] = &[
    ("hands", "writer"),
    ("happening", "event"),
    ("intent", "demand"),
    ("lose", "forget"),
    ("people", "kubectl, user"),
    ("roll", "demand, counts"),
    ("standing", "state"),
    ("telling", "event"),
    ("turn", "cycle, pass"),
];

/// Beginnings of sentences that are refused.
const BANNED_STARTS: &[(&str, &str)] = &[
    ("So long ", "How long …, At most …"),
    ("So many ", "How many …, At most …"),
    ("So much ", "How much …, At most …"),
];

/// The word before the name of an item.
const KEYWORDS: [&str; 8] = ["fn", "struct", "enum", "trait", "mod", "type", "const", "static"];

/// Where the words are not checked yet. A folder leaves this list when its last banned word is gone; none is ever added.
const TO_DO: &[&str] = &[
    "crates/agent",
    "crates/controller",
    "crates/plan",
    "crates/prewarm/src/crons/state.rs",
    "crates/sim",
    "docs/compatibility.md",
];

/// This file has to name what it refuses.
const EXEMPT: [&str; 1] = ["xtask/src/claims/words.rs"];

/// The page with the glossary.
pub const PAGE: &str = "ARCHITECTURE.md";
/// The most rows of the glossary: more words than this nobody keeps in mind.
pub const GLOSSARY_ROWS: usize = 22;

/// A line for every banned word of a file that is checked.
pub fn judge(source: &Source) -> Vec<String> {
    let is_open = TO_DO.iter().any(|folder| source.path.starts_with(folder));
    let is_exempt = EXEMPT.iter().any(|path| source.path.ends_with(path));
    if is_open || is_exempt { Vec::new() } else { find(source) }
}

/// The entries of [`TO_DO`] that have no banned word any more.
pub fn clean_folders(sources: &[Source]) -> Vec<&'static str> {
    let is_dirty = |folder: &&str| {
        sources.iter().any(|source| source.path.starts_with(folder) && !find(source).is_empty())
    };
    TO_DO.iter().copied().filter(|folder| !is_dirty(folder)).collect()
}

fn find(source: &Source) -> Vec<String> {
    let mut wrong = Vec::new();
    for (number, line) in source.text.lines().enumerate() {
        let place = format!("{}:{}", source.path.display(), number + 1);
        let found = words(line).into_iter().filter_map(|word| lookup(BANNED, &word));
        let names = item_name(line).map(words).unwrap_or_default();
        let in_names = names.into_iter().filter_map(|word| lookup(BANNED_NAMES, &word));
        let starts = BANNED_STARTS.iter().filter(|(start, _)| line.contains(start)).copied();
        wrong.extend(
            found
                .chain(in_names)
                .chain(starts)
                .map(|(word, instead)| format!("{place}: “{}” is banned; write: {instead}", word.trim_end())),
        );
    }
    wrong
}

fn lookup(table: &[(&'static str, &'static str)], word: &str) -> Option<(&'static str, &'static str)> {
    table.iter().find(|(banned, _)| *banned == word).copied()
}

/// The words of a line in lower case: `NodeImage` and `node_image` are both two words.
fn words(line: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut before = ' ';
    for letter in line.chars() {
        let begins = !before.is_alphabetic() || (letter.is_uppercase() && before.is_lowercase());
        if letter.is_alphabetic() {
            if begins {
                words.push(String::new());
            }
            words.last_mut().into_iter().for_each(|word| word.extend(letter.to_lowercase()));
        }
        before = letter;
    }
    words
}

/// The name of the item that a line declares.
fn item_name(line: &str) -> Option<&str> {
    let code = line.trim_start();
    if code.starts_with("//") {
        return None;
    }
    let mut parts = code.split_whitespace();
    parts.find(|part| KEYWORDS.contains(part))?;
    let name = parts.next()?;
    name.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next()
}

/// What is wrong with the glossary: too many rows, or a word that is explained twice.
pub fn judge_glossary(page: &str) -> Vec<String> {
    let entries = glossary(page);
    let mut wrong = Vec::new();
    if entries.is_empty() || entries.len() > GLOSSARY_ROWS {
        wrong.push(format!(
            "{PAGE}: the glossary has {} rows; 1 to {GLOSSARY_ROWS} are allowed",
            entries.len()
        ));
    }
    let mut known: Vec<&str> = Vec::new();
    for word in entries.iter().flat_map(|entry| entry.split(", ")) {
        if known.contains(&word) {
            wrong.push(format!("{PAGE}: the glossary explains “{word}” twice"));
        }
        known.push(word);
    }
    wrong
}

/// The first cells of the glossary's rows.
pub fn glossary(page: &str) -> Vec<&str> {
    let section = page.split("\n## ").find(|section| section.starts_with("Glossary\n")).unwrap_or_default();
    let rows = section.lines().filter(|line| line.starts_with("| ")).skip(1);
    rows.filter_map(|row| row.split('|').nth(1)).map(str::trim).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let wrong = judge(&Source { path: "crates/new/src/lib.rs".into(), text: text.to_owned() });
        wrong.into_iter().map(|line| line.split('“').nth(1).unwrap_or_default().to_owned()).collect()
    }

    #[test]
    fn a_banned_word_is_found_in_text_and_in_every_kind_of_name() {
        let wrong =
            judge(&Source { path: "crates/new/src/lib.rs".into(), text: "\n/// It is told.\n".to_owned() });
        assert_eq!(wrong, ["crates/new/src/lib.rs:2: “told” is banned; write: reported, granted, set"]);
        assert_eq!(found("ledger.hear_node(node);"), ["hear” is banned; write: observe"]);
        assert_eq!(found("pub struct BigEars;"), ["ears” is banned; write: inputs, watches"]);
        assert_eq!(
            found("/// So many lookups at a time."),
            ["So many” is banned; write: How many …, At most …"]
        );
    }

    #[test]
    fn words_that_only_contain_a_banned_one_are_free() {
        assert_eq!(
            found("// It appears that years of heartbeats were foretold in the heart of it."),
            [""; 0]
        );
    }

    #[test]
    fn some_words_are_only_banned_as_names_of_items() {
        assert_eq!(found("// Each turn of the loop may lose what people want."), [""; 0]);
        assert_eq!(found("    pub fn take_turn(&mut self) {"), ["turn” is banned; write: cycle, pass"]);
        assert_eq!(found("mod people;"), ["people” is banned; write: kubectl, user"]);
    }

    #[test]
    fn a_glossary_is_short_and_explains_a_word_once() {
        let page = |rows: &[&str]| {
            let rows: Vec<String> = rows.iter().map(|row| format!("| {row} | meaning |")).collect();
            let rows = rows.join("\n");
            format!("# Page\n\n## Glossary\n\n| word | meaning |\n|---|---|\n{rows}\n\n## Next\n| a | b |\n")
        };
        assert_eq!(judge_glossary(&page(&["grant", "cycle, pass"])), [""; 0]);
        assert_eq!(judge_glossary(&page(&["pass", "cycle, pass"])).len(), 1);
        let many: Vec<String> = (0..=GLOSSARY_ROWS).map(|number| format!("word{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(judge_glossary(&page(&many)).len(), 1);
        assert_eq!(judge_glossary("# Page\n").len(), 1);
    }
}
