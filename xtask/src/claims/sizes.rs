//! How long files and functions are. Rustfmt aligns the end of a function with its beginning, so no parser is needed.

use super::Source;

/// Above these, a reason has to be given.
const FILE_LINES: usize = 400;
const FUNCTION_LINES: usize = 70;
/// The beginning of a reason, at the top of the file or above the function.
const REASON: &str = "Long because ";
/// A reason for a long file has to be within this many lines of its top.
const TOP_LINES: usize = 12;

/// A line for every file and function that is too long without a reason.
pub fn judge(source: &Source) -> Vec<String> {
    let path = source.path.display();
    let lines: Vec<&str> = source.text.lines().collect();
    let mut wrong = Vec::new();
    let own = own(&source.text).len();
    if own > FILE_LINES && !lines.iter().take(TOP_LINES).any(|line| line.contains(REASON)) {
        wrong.push(format!(
            "{path}: {own} lines, above {FILE_LINES}; split it, or say why at its top: “{REASON}…”"
        ));
    }
    for (start, name) in functions(&lines) {
        let length = length(&lines[start..]);
        if length > FUNCTION_LINES && !has_reason(&lines[..start]) {
            wrong.push(format!(
                "{path}:{}: {name} has {length} lines, above {FUNCTION_LINES}; split it, or say why above it: “{REASON}…”",
                start + 1
            ));
        }
    }
    wrong
}

/// The lines of a file before its tests.
pub fn own(text: &str) -> Vec<&str> {
    text.lines().take_while(|line| *line != "mod tests {").collect()
}

/// Where functions begin, and their names.
pub fn functions<'a>(lines: &[&'a str]) -> Vec<(usize, &'a str)> {
    let name = |line: &&'a str| {
        let (before, after) = line.split_once("fn ")?;
        let is_declaration = before
            .split_whitespace()
            .all(|word| word.starts_with("pub") || word.ends_with(')') || ["async", "const"].contains(&word));
        is_declaration.then(|| after.split(['(', '<']).next()).flatten()
    };
    lines.iter().enumerate().filter_map(|(place, line)| Some((place, name(line)?))).collect()
}

/// How many lines a function has; one that is only declared has none.
pub fn length(lines: &[&str]) -> usize {
    let indent = lines[0].len() - lines[0].trim_start().len();
    let is_at_indent =
        |line: &&str| line.len() - line.trim_start().len() == indent && !line.trim().is_empty();
    for (place, line) in lines.iter().enumerate() {
        let is_end = is_at_indent(line) && line.trim_start().starts_with('}');
        let is_declared = line.ends_with(';') && (place == 0 || is_at_indent(line));
        if is_end || is_declared {
            return if is_end { place + 1 } else { 0 };
        }
    }
    0
}

/// Whether the comment or the attributes right above have a reason.
fn has_reason(above: &[&str]) -> bool {
    let is_about_it = |line: &&&str| ["//", "#["].iter().any(|start| line.trim_start().starts_with(start));
    above.iter().rev().take_while(is_about_it).any(|line| line.contains(REASON))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(text: String) -> Vec<String> {
        judge(&Source { path: "crates/plan/src/grant.rs".into(), text })
    }

    fn function(lines: usize) -> String {
        format!("fn grant() {{\n{}}}\n", "    work();\n".repeat(lines - 2))
    }

    #[test]
    fn a_long_function_needs_a_reason() {
        assert_eq!(judged(function(FUNCTION_LINES)), Vec::<String>::new());
        let wrong = judged(function(FUNCTION_LINES + 1));
        assert!(wrong[0].starts_with("crates/plan/src/grant.rs:1: grant has 71 lines"), "{wrong:?}");
        let explained = format!("/// Long because it is a table.\n#[test]\n{}", function(90));
        assert_eq!(judged(explained), Vec::<String>::new());
    }

    #[test]
    fn a_function_of_any_visibility_is_found() {
        let lines = ["pub(in crate::plan) async fn grant(", "fn want<T>() {", "    let granted = do_fn (a);"];
        assert_eq!(functions(&lines), [(0, "grant"), (1, "want")]);
    }

    #[test]
    fn a_long_file_needs_a_reason_and_its_tests_do_not_count() {
        let lines = |count: usize| "use one::thing;\n".repeat(count);
        assert_eq!(judged(lines(FILE_LINES)), Vec::<String>::new());
        assert!(judged(lines(FILE_LINES + 1))[0].contains("401 lines"));
        let with_tests = format!("{}mod tests {{\n{}}}\n", lines(300), lines(200));
        assert_eq!(judged(with_tests), Vec::<String>::new());
        assert_eq!(judged(format!("//! Long because of history.\n{}", lines(500))), Vec::<String>::new());
    }

    #[test]
    fn a_function_of_a_trait_that_is_only_declared_has_no_length() {
        let declared =
            "trait Runtime {\n    fn pull(&self);\n    fn list(\n        &self,\n    ) -> usize;\n";
        assert_eq!(judged(format!("{declared}{}}}\n", "    // more\n".repeat(90))), Vec::<String>::new());
    }
}
