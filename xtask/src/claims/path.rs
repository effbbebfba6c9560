//! The path of one ImagePullJob: the functions that ARCHITECTURE.md lists, compared with the code. The comparison is textual: a
//! function calls another one if its body names it.

use std::collections::BTreeSet;
use std::path::Path;

use super::arrows::PAGE;
use super::{Source, sizes};

/// The beginning of the section.
const HEADING: &str = "The path of one ImagePullJob\n";
/// How much deeper a function stands than its caller.
const INDENT: usize = 2;
/// Where the files of the list are.
const CRATES: &str = "crates";

/// How long the path is.
#[derive(Debug, PartialEq, Eq)]
pub struct Length {
    /// Files on it.
    pub files: usize,
    /// The lines of these files, without tests.
    pub lines: usize,
}

/// One line of the list.
enum Line<'a> {
    /// The work passes to another task: nobody calls what follows.
    Break,
    Step(Step<'a>),
    /// Neither.
    Odd(&'a str),
}

/// One function of the path.
struct Step<'a> {
    /// How many callers are above it.
    depth: usize,
    function: &'a str,
    file: &'a str,
}

/// A line for everything that the list says and the code does not.
pub fn judge(page: &str, sources: &[Source]) -> Vec<String> {
    let lines = read(page);
    let mut wrong = Vec::new();
    let mut callers: Vec<&Step> = Vec::new();
    for line in &lines {
        match line {
            Line::Break => callers.clear(),
            Line::Odd(text) => wrong.push(format!("{PAGE}: “{text}” is no function with its file")),
            Line::Step(step) => {
                callers.truncate(step.depth);
                wrong.extend(complaint(step, &callers, sources));
                callers.push(step);
            }
        }
    }
    if !lines.iter().any(|line| matches!(line, Line::Step(_))) {
        wrong.push(format!("{PAGE} has no section “{}” with a list of functions", HEADING.trim_end()));
    }
    wrong
}

/// How long the path is. Files that do not exist have no lines.
pub fn measure(page: &str, sources: &[Source]) -> Length {
    let lines = read(page);
    let files: BTreeSet<&str> = lines.iter().filter_map(Line::file).collect();
    let found = files.iter().filter_map(|file| source(file, sources));
    Length { files: files.len(), lines: found.map(|source| sizes::own(&source.text).len()).sum() }
}

/// Reads the list: the blocks of code of its section.
fn read(page: &str) -> Vec<Line<'_>> {
    let section = page.split("\n## ").find(|section| section.starts_with(HEADING)).unwrap_or_default();
    let blocks = section.split("\n```").skip(1).step_by(2);
    let lines = blocks.flat_map(str::lines).filter(|line| !line.is_empty());
    lines.map(Line::read).collect()
}

impl<'a> Line<'a> {
    fn read(text: &'a str) -> Self {
        if text.starts_with('#') {
            return Self::Break;
        }
        let indent = text.len() - text.trim_start().len();
        let mut words = text.split_whitespace();
        match (words.next(), words.next(), words.next()) {
            (Some(function), Some(file), None) if indent.is_multiple_of(INDENT) => {
                Self::Step(Step { depth: indent / INDENT, function, file })
            }
            _ => Self::Odd(text.trim()),
        }
    }

    fn file(&self) -> Option<&'a str> {
        if let Self::Step(step) = self { Some(step.file) } else { None }
    }
}

/// What is wrong with a function of the list, if anything.
fn complaint(step: &Step, callers: &[&Step], sources: &[Source]) -> Option<String> {
    let Step { depth, function, file } = step;
    let Some(found) = source(file, sources) else {
        return Some(format!("{PAGE}: there is no file {CRATES}/{file}"));
    };
    if bodies(&found.text, function).is_empty() {
        return Some(format!("{PAGE}: {file} has no function {function}"));
    }
    if callers.len() < *depth {
        return Some(format!("{PAGE}: {function} of {file} stands deeper than below its caller"));
    }
    let caller = callers.last()?;
    let bodies = bodies(&source(caller.file, sources)?.text, caller.function);
    let is_called = bodies.iter().any(|body| names(body, function));
    let (by, of) = (caller.function, caller.file);
    (!is_called).then(|| format!("{PAGE}: {by} of {of} does not call {function} of {file}"))
}

fn source<'a>(file: &str, sources: &'a [Source]) -> Option<&'a Source> {
    sources.iter().find(|source| source.path.strip_prefix(CRATES).is_ok_and(|path| path == Path::new(file)))
}

/// The bodies of all functions of this name, without comments.
fn bodies<'a>(text: &'a str, function: &str) -> Vec<Vec<&'a str>> {
    let lines = sizes::own(text);
    let body = |start: usize| {
        let whole = &lines[start..start + sizes::length(&lines[start..])];
        let inside = whole.iter().skip_while(|line| !line.ends_with('{')).skip(1);
        inside.filter(|line| !line.trim_start().starts_with("//")).copied().collect()
    };
    let places = sizes::functions(&lines).into_iter().filter(|(_, name)| *name == function);
    places.map(|(start, _)| body(start)).collect()
}

/// Whether a body has this name in it.
fn names(body: &[&str], name: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    body.iter().any(|line| line.split(|letter| !is_part(letter)).any(|word| word == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = "\
pub fn grant(node: &Node) {
    // It could wait.
    let is_free = node.is_free();
    if is_free {
        self::write(
            node,
        );
    }
}

impl Node {
    pub(in crate::cluster) fn is_free(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    fn only_in_tests() {}
}
";

    fn page(list: &str) -> String {
        format!(
            "# Page\n\n## {HEADING}\nSome text.\n\n```\n{list}```\n\nMore text.\n\n## Next\n\n```\nfree text\n```\n"
        )
    }

    fn sources() -> Vec<Source> {
        let write = "async fn write() {\n    send().await;\n}\n";
        [("crates/plan/src/grant.rs", CODE), ("crates/controller/src/write.rs", write)]
            .map(|(path, text)| Source { path: path.into(), text: text.to_owned() })
            .into()
    }

    fn judged(list: &str) -> Vec<String> {
        judge(&page(list), &sources())
    }

    #[test]
    fn a_path_is_true_if_each_function_calls_those_below_it() {
        let list = "\
# first
grant      plan/src/grant.rs
  is_free  plan/src/grant.rs
  write    controller/src/write.rs

# second
write      controller/src/write.rs
";
        assert_eq!(judged(list), [""; 0]);
        assert_eq!(measure(&page(list), &sources()), Length { files: 2, lines: 20 });
    }

    #[test]
    fn a_function_or_file_that_is_not_there_is_found() {
        assert_eq!(
            judged("revoke plan/src/grant.rs\n"),
            ["ARCHITECTURE.md: plan/src/grant.rs has no function revoke"]
        );
        assert_eq!(
            judged("grant plan/src/want.rs\n"),
            ["ARCHITECTURE.md: there is no file crates/plan/src/want.rs"]
        );
        assert_eq!(judged("only_in_tests plan/src/grant.rs\n").len(), 1);
    }

    #[test]
    fn a_function_that_is_not_called_is_found() {
        let list = "write     controller/src/write.rs\n  grant   plan/src/grant.rs\n";
        assert_eq!(
            judged(list),
            ["ARCHITECTURE.md: write of controller/src/write.rs does not call grant of plan/src/grant.rs"]
        );
    }

    #[test]
    fn what_a_comment_names_is_not_called() {
        let body = ["// wait until it is granted", "write(node);"];
        let body: Vec<&str> = body.into_iter().filter(|line| !line.starts_with("//")).collect();
        assert!(names(&body, "write") && !names(&body, "wait") && !names(&body, "rite"));
        assert_eq!(bodies(CODE, "grant")[0].iter().filter(|line| line.contains("wait")).count(), 0);
    }

    #[test]
    fn a_line_of_another_form_and_a_page_without_a_path_are_found() {
        assert_eq!(judged("grant calls write\n").len(), 2, "no function is left then, either");
        assert_eq!(judged(" grant plan/src/grant.rs\n").len(), 2);
        assert_eq!(judged("    grant plan/src/grant.rs\n").len(), 1);
        assert_eq!(judge("# Page\n", &sources()).len(), 1);
    }
}
