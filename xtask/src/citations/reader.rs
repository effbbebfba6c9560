//! Finds citations in texts: a page's name and a list of numbers, such as `kruise R45, R46` or `design 4 and 5`, that may go
//! on in the next line.
//!
//! A rule without a name is one of the usual page; in code it counts in comments only. A section always needs a name.

use super::number::Number;
use super::page::Pages;

/// Words that do not end a list of numbers.
const LINKS: [&str; 5] = ["and", "or", "to", "section", "sections"];

/// How the numbers of a file are to be understood.
pub struct Source<'a> {
    /// The page of a rule without a name.
    pub usual_page: &'a str,
    /// Whether rules without a name count in comments only.
    pub is_code: bool,
}

/// One number that is cited.
#[derive(Debug, PartialEq, Eq)]
pub struct Citation {
    /// Its line, from 1 on.
    pub line: usize,
    pub page: String,
    pub number: Number,
}

/// Everything that a text cites.
pub fn read(text: &str, source: &Source, pages: &Pages) -> Vec<Citation> {
    let mut reader = Reader { source, pages, list: None, found: Vec::new() };
    for (index, line) in text.lines().enumerate() {
        reader.read_line(index + 1, line);
    }
    reader.found
}

struct Reader<'a> {
    source: &'a Source<'a>,
    pages: &'a Pages,
    list: Option<List<'a>>,
    found: Vec<Citation>,
}

/// The list of numbers in whose middle the reader is.
#[derive(Clone, Copy)]
struct List<'a> {
    page: &'a str,
    /// Whether a section may come next. After a rule, digits are something else: "kruise R3, 30 s".
    takes_sections: bool,
    /// Whether the list may go on in the next line.
    is_open: bool,
}

impl<'a> Reader<'a> {
    fn read_line(&mut self, line: usize, text: &str) {
        let (code, prose) = text.split_at(if self.source.is_code { comment(text) } else { 0 });
        for (part, is_prose) in [(code, false), (prose, true)] {
            for word in part.split_whitespace().filter(|word| !is_marker(word)) {
                self.list = self.read_word(line, word, is_prose && !word.starts_with('`'));
            }
        }
        self.list = self.list.filter(|list| list.is_open);
    }

    /// Reads a word and returns the list that goes on behind it.
    fn read_word(&mut self, line: usize, word: &str, is_prose: bool) -> Option<List<'a>> {
        let core = word.trim_matches(|letter: char| !letter.is_alphanumeric());
        let tail = &word[word.rfind(core).unwrap_or_default() + core.len()..];
        if let Some(page) = self.pages.named(&core.to_lowercase()).filter(|_| tail.is_empty()) {
            return Some(List { page, takes_sections: true, is_open: true });
        }
        let Some(numbers) = Number::parse_range(core) else {
            let list = self.list.filter(|_| LINKS.contains(&word))?;
            return Some(List { takes_sections: list.takes_sections || word.starts_with("section"), ..list });
        };
        let is_section = matches!(numbers[0], Number::Section(_));
        let list = self.list.filter(|list| list.takes_sections || !is_section);
        let page = match list {
            Some(list) => list.page,
            None if is_prose && self.is_usual(&numbers[0]) => self.source.usual_page,
            None => return None,
        };
        let cite = |number| Citation { line, page: page.to_owned(), number };
        self.found.extend(numbers.into_iter().map(cite));
        let list = list.filter(|_| tail.is_empty() || tail == "," || tail == ";")?;
        Some(List { takes_sections: is_section, is_open: !tail.is_empty(), ..list })
    }

    /// Whether a number without a name is a rule of the usual page.
    fn is_usual(&self, number: &Number) -> bool {
        matches!(number, Number::Rule(letter, _) if self.pages.has_letter(self.source.usual_page, *letter))
    }
}

/// Where the comment of a line of code begins.
fn comment(line: &str) -> usize {
    if line.trim_start().starts_with("//") { 0 } else { line.find(" // ").unwrap_or(line.len()) }
}

/// Whether a word is only the beginning of a line of comment.
fn is_marker(word: &str) -> bool {
    ["//", "///", "//!"].contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a text as one of code, with a usual page `songs` and another one `books`, and tells what is cited with its line.
    fn cited(text: &str) -> Vec<String> {
        let mut pages = Pages::default();
        pages.add("songs", "## 2 Two\n### 2.8 Three\n- **R1** one\n- **W1** two\n").unwrap();
        pages.add("books", "**4** four\n- **S1** five\n").unwrap();
        let source = Source { usual_page: "songs", is_code: true };
        let tell = |Citation { line, page, number }: &Citation| {
            let end = if pages.has(page, number) { "" } else { " is missing" };
            format!("{line}: {page} {number}{end}")
        };
        read(text, &source, &pages).iter().map(tell).collect()
    }

    #[test]
    fn a_number_that_no_page_has_is_found() {
        assert_eq!(cited("/// songs R1, R99"), ["1: songs R1", "1: songs R99 is missing"]);
        assert_eq!(cited("id: \"songs R99\","), ["1: songs R99 is missing"]);
        assert_eq!(cited("\n// (books 5)"), ["2: books 5 is missing"]);
    }

    #[test]
    fn lists_have_one_name_and_go_on_in_the_next_line() {
        let wanted = ["1: songs R1", "1: songs W1", "1: books S1", "1: books 4"];
        assert_eq!(cited("/// Why (songs R1, W1; books S1 and section 4)."), wanted);
        assert_eq!(cited("//! Why (books S1,\n//! S1)."), ["1: books S1", "2: books S1"]);
        assert_eq!(cited("//! Why (books S1).\n//! W1."), ["1: books S1", "2: songs W1"]);
    }

    #[test]
    fn of_ranges_both_ends_are_cited() {
        assert_eq!(cited("/// songs R1–R9"), ["1: songs R1", "1: songs R9 is missing"]);
        assert_eq!(cited("/// songs R1-9"), ["1: songs R1", "1: songs R9 is missing"]);
        assert_eq!(cited("/// songs 2–2.8"), ["1: songs 2", "1: songs 2.8"]);
    }

    #[test]
    fn a_rule_without_a_name_counts_in_comments_and_is_of_the_usual_page() {
        assert_eq!(cited("let x = R7; // W1, R9"), ["1: songs W1", "1: songs R9 is missing"]);
        assert_eq!(cited("// `R9` and S9 are no songs"), Vec::<String>::new());
    }

    #[test]
    fn other_numbers_are_not_cited() {
        assert_eq!(cited("/// songs R1, 30 s later; 2.9 times (rows 7–9)"), ["1: songs R1"]);
        assert_eq!(cited("/// songs 2, rows 3-7"), ["1: songs 2"]);
        assert_eq!(cited("/// Two songs, 5 books: 9"), Vec::<String>::new());
    }
}
