//! Which parts of kubectl's output must be the same: everything except what differs between any two runs.

use std::process::Output;
use std::sync::LazyLock;

use regex::Regex;

/// What is replaced, in this order.
const VARYING: [(&str, &str); 7] = [
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
    (r"(resourceVersion\x22?: |Resource Version: +)\x22?\d+\x22?", "${1}VERSION"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
    (r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d \+0000", "TIME"),
    (r"\b(\d+[smhdy])+\b", "AGE"),
    (r"https://[\d.]+:\d+", "SERVER"),
    // Columns are as wide as their widest cell, and ages differ in width.
    (r"  +", "  "),
];

static PATTERNS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let compiled = |(pattern, word)| (Regex::new(pattern).expect("the pattern is a constant"), word);
    VARYING.into_iter().map(compiled).collect()
});

/// A text without the parts that vary.
pub fn text(text: &str) -> String {
    let mut text = text.to_owned();
    for (pattern, word) in PATTERNS.iter() {
        text = pattern.replace_all(&text, *word).into_owned();
    }
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n")
}

/// Everything that a command shows.
pub fn output(output: &Output) -> String {
    let out = text(&String::from_utf8_lossy(&output.stdout));
    let complaints = text(&String::from_utf8_lossy(&output.stderr));
    format!("{out}\n{complaints}\nexit code {:?}", output.status.code())
}

/// The lines that only one of two texts has.
pub fn difference(wanted: &str, got: &str) -> String {
    let only = |sign: &str, these: &str, those: &str| {
        let those: Vec<&str> = those.lines().collect();
        let lines = these.lines().filter(|line| !those.contains(line));
        lines.map(|line| format!("{sign} {line}")).collect::<Vec<_>>()
    };
    let lines = [only("-", wanted, got), only("+", got, wanted)].concat();
    if lines.is_empty() { "the same lines in another order or number".to_owned() } else { lines.join("\n") }
}
