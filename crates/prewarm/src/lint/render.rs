//! The report as text and as JSON. Pure: it returns strings, and the caller prints them.

use std::fmt::Write;

use serde::Serialize;

use super::report::{Finding, ObjectName, Report, Severity};

/// One line per finding: `file:line:column path: sentence`, which editors and CI systems turn into links.
pub fn text(report: &Report) -> String {
    report.findings.iter().fold(String::new(), |mut lines, finding| {
        let Finding { file, at, path, message, .. } = finding;
        let place = path.to_string();
        let separator = if place.is_empty() { "" } else { " " };
        let note = if finding.severity == Severity::Note { "note: " } else { "" };
        let message = one_line(message);
        // Writing to a string cannot fail.
        let _ = writeln!(lines, "{file}:{}:{}{separator}{place}: {note}{message}", at.line, at.column);
        lines
    })
}

/// One JSON document with every finding and the counts.
pub fn json(report: &Report) -> String {
    let findings = report.findings.iter().map(JsonFinding::from).collect();
    let whole = JsonReport { findings, objects: report.objects, errors: report.errors };
    let mut json = serde_json::to_string_pretty(&whole).expect("a report holds only text and numbers");
    json.push('\n');
    json
}

/// The closing line: `3 objects checked, 1 passed over, 2 errors in 1 file`.
pub fn summary(report: &Report) -> String {
    let mut parts = vec![format!("{} checked", counted(report.objects, "object"))];
    if report.passed_over > 0 {
        parts.push(format!("{} passed over", report.passed_over));
    }
    parts.push(match report.errors {
        0 => "no errors".to_owned(),
        errors => format!("{} in {}", counted(errors, "error"), counted(report.files_with_errors, "file")),
    });
    parts.join(", ") + "\n"
}

#[derive(Serialize)]
struct JsonReport<'a> {
    findings: Vec<JsonFinding<'a>>,
    objects: usize,
    errors: usize,
}

#[derive(Serialize)]
struct JsonFinding<'a> {
    file: &'a str,
    line: u32,
    column: u32,
    path: String,
    severity: Severity,
    message: &'a str,
    object: Option<&'a ObjectName>,
}

impl<'a> From<&'a Finding> for JsonFinding<'a> {
    fn from(finding: &'a Finding) -> Self {
        Self {
            file: &finding.file,
            line: finding.at.line,
            column: finding.at.column,
            path: finding.path.to_string(),
            severity: finding.severity,
            message: &finding.message,
            object: finding.object.as_ref(),
        }
    }
}

/// A sentence may contain values of the file; a line break in one must not look like another finding.
fn one_line(message: &str) -> String {
    message
        .chars()
        .flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] })
        .collect()
}

fn counted(number: usize, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {thing}{plural}")
}
