//! The result of `prewarm lint`: findings, and the counts that decide its exit code.

use prewarm_api::path::FieldPath;
use serde::Serialize;
use serde_json::Value;

use crate::yaml::Position;

/// The most findings that are kept of one file. The others are counted, so that the output for a broken file stays
/// readable.
pub const MAX_FINDINGS_PER_FILE: usize = 500;

/// One remark on a place in a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The file as the user named it.
    pub file: String,
    pub at: Position,
    /// The path in the object; the root if it is about the whole object.
    pub path: FieldPath,
    pub severity: Severity,
    pub message: String,
    /// The object that it is about, if that is known.
    pub object: Option<ObjectName>,
}

/// Whether a finding is a mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The cluster would refuse it, or do something other than the file says.
    Error,
    /// Worth knowing; the file is fine.
    Note,
}

/// The kind and name of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectName {
    pub api_version: Option<String>,
    pub kind: Option<String>,
    pub namespace: Option<String>,
    pub name: Option<String>,
}

impl ObjectName {
    /// Reads kind and names from an object; what is missing or not a string is left out.
    pub fn of(object: &Value) -> Self {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Self {
            api_version: text(&object["apiVersion"]),
            kind: text(&object["kind"]),
            namespace: text(&object["metadata"]["namespace"]),
            name: text(&object["metadata"]["name"]),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct FileReport {
    /// In the order of the file.
    pub findings: Vec<Finding>,
    /// How many objects of our kinds were checked.
    pub objects: usize,
    /// How many objects of other kinds were passed over.
    pub passed_over: usize,
    /// The number of errors, including those that are not kept.
    pub errors: usize,
}

impl FileReport {
    /// Adds a finding, or only counts it if there are too many.
    pub fn push(&mut self, finding: Finding) {
        self.errors += usize::from(finding.severity == Severity::Error);
        if self.findings.len() < MAX_FINDINGS_PER_FILE {
            self.findings.push(finding);
        }
    }

    /// Sorts the findings by position and reports how many errors were left out.
    pub fn close(&mut self, file: &str) {
        // The order is stable, so findings at one position stay in the order in which they were found.
        self.findings.sort_by_key(|finding| finding.at);
        let kept = self.findings.iter().filter(|finding| finding.severity == Severity::Error).count();
        if let Some(last) = self.findings.last()
            && self.errors > kept
        {
            self.findings.push(Finding {
                file: file.to_owned(),
                at: last.at,
                path: FieldPath::root(),
                severity: Severity::Note,
                message: format!("{} further errors in this file are not shown", self.errors - kept),
                object: None,
            });
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// By file, in the order the files were named.
    pub findings: Vec<Finding>,
    /// How many objects of our kinds were checked.
    pub objects: usize,
    /// How many objects of other kinds were passed over.
    pub passed_over: usize,
    pub errors: usize,
    /// How many files have errors.
    pub files_with_errors: usize,
}

impl Report {
    pub fn add(&mut self, file: FileReport) {
        self.findings.extend(file.findings);
        self.objects += file.objects;
        self.passed_over += file.passed_over;
        self.errors += file.errors;
        self.files_with_errors += usize::from(file.errors > 0);
    }
}
