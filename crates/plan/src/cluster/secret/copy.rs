//! One copy: how its annotations are read and written, and what it is called.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use prewarm_api::names;

use crate::hash::fnv1a;
use crate::object::{ObjectKey, SourceKey};

/// All annotations of an object together may have 256 KiB; half of it lists jobs. Further jobs are listed by another copy.
pub(super) const LONGEST_REFERENCES: usize = 128 * 1024;
/// The longest name of a Secret.
const LONGEST_NAME: usize = 253;
/// `-` and six hexadecimal digits.
const SUFFIX_LENGTH: usize = 7;
/// How many names are tried for a copy. The first is free unless two sources of one name meet in 24 bits.
const MOST_NAMES: u32 = 64;
/// So many of them are recognized by agents; a source whose jobs fill more copies is not to be expected.
const USUAL_NAMES: u32 = 4;

/// What a Secret holds, without telling it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// Type of the Secret, for example `kubernetes.io/dockerconfigjson`.
    pub type_: String,
    /// A keyed hash of its data.
    pub fingerprint: u64,
}

/// A Secret in the config namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copy {
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// What it is a copy of; none if it is no copy.
    pub source: Option<SourceKey>,
    /// The jobs that it lists.
    pub references: BTreeSet<ObjectKey>,
    /// How it was made: `batch`, or nothing under the old scheme.
    pub mode: Option<String>,
    /// What it holds.
    pub content: Content,
    /// Whether it is on its way out.
    pub is_terminating: bool,
}

impl Copy {
    /// Reads a Secret of the config namespace. What cannot be read in its annotations counts as absent (kruise T77).
    pub fn read(metadata: &ObjectMeta, content: Content) -> Self {
        let annotation = |name: &str| metadata.annotations.as_ref()?.get(name);
        let references = annotation(names::SECRET_REFERENCES_ANNOTATION).map_or("", String::as_str);
        Self {
            name: metadata.name.clone().unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
            source: annotation(names::SECRET_SOURCE_ANNOTATION).and_then(|text| SourceKey::parse(text)),
            references: references.split(',').filter_map(ObjectKey::parse).collect(),
            mode: annotation(names::SECRET_MODE_ANNOTATION).filter(|mode| !mode.is_empty()).cloned(),
            content,
            is_terminating: metadata.deletion_timestamp.is_some(),
        }
    }
}

/// The annotations of a copy that is made: the three that make it a copy (kruise R61). Those of the source may hold its
/// data in clear (kubectl) or claim the object for a deployment tool, which would then delete it as not its own.
pub fn annotations(source: &SourceKey, references: &BTreeSet<ObjectKey>) -> BTreeMap<String, String> {
    let annotations = [
        (names::SECRET_SOURCE_ANNOTATION, source.to_string()),
        (names::SECRET_REFERENCES_ANNOTATION, references_text(references)),
        (names::SECRET_MODE_ANNOTATION, names::SECRET_MODE_BATCH.to_owned()),
    ];
    annotations.map(|(name, value)| (name.to_owned(), value)).into()
}

/// The jobs as the annotation lists them.
pub fn references_text(references: &BTreeSet<ObjectKey>) -> String {
    references.iter().map(ObjectKey::to_string).collect::<Vec<_>>().join(",")
}

/// As many of the jobs as a copy may list.
pub(super) fn within_limit(jobs: &BTreeSet<ObjectKey>) -> BTreeSet<ObjectKey> {
    let mut listed = 0;
    let fitting = jobs.iter().take_while(|job| {
        listed += length(job);
        listed <= LONGEST_REFERENCES
    });
    fitting.cloned().collect()
}

/// How much of the annotation a job takes.
pub(super) fn length(job: &ObjectKey) -> usize {
    job.namespace.len() + job.name.len() + "/,".len()
}

/// The names that a copy may have, best first: the source's name, cut if need be, and six digits.
pub(super) fn candidate_names(source: &SourceKey) -> impl Iterator<Item = String> {
    let stem: String = source.name.chars().take(LONGEST_NAME - SUFFIX_LENGTH).collect();
    // A name may not have `.` before `-`, which only a cut can lead to.
    let stem = stem.trim_end_matches(['.', '-']).to_owned();
    (0..MOST_NAMES).map(move |attempt| format!("{stem}-{}", digits(source, attempt)))
}

fn digits(source: &SourceKey, attempt: u32) -> String {
    let hash = fnv1a(&format!("{source}/{attempt}"));
    let digits = (hash >> 24) ^ (hash & 0x00ff_ffff);
    format!("{digits:06x}")
}

/// Whether a copy is called like one of a source in this namespace. Agents look at those first: what a copy is for stands
/// in it, and reading all of a shared image would take as many requests as it has tenants. A long name, or one that
/// another program chose, does not tell.
pub fn is_called_like_one_of(namespace: &str, name: &str) -> bool {
    let Some((stem, end)) = name.rsplit_once('-') else { return false };
    let source = SourceKey { namespace: namespace.to_owned(), name: stem.to_owned() };
    (0..USUAL_NAMES).any(|attempt| digits(&source, attempt) == end)
}
