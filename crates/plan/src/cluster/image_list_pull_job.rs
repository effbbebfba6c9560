//! The decision about an ImageListPullJob: one ImagePullJob for each image, and a status rolled up from them
//! (kruise R70–R80).
//!
//! ```text
//! image in the list   its child                          what happens
//! yes                 none                               made
//! yes                 made from the present template     kept; of two, the older one
//! yes                 made from another template         deleted, and another made
//! no                  any                                deleted
//! ```
//!
//! A child is judged by its spec and not by its hash label, so that the children of another implementation are kept.

mod child;
mod observe;
mod pass;
mod progress;
mod record;
mod settle;
mod status;

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use prewarm_api::kruise::{ImageListPullJob, ImageListPullJobStatus, ImagePullJob};

pub use observe::Lists;
pub use progress::{Child, Progress};

use crate::object::Uid;

/// A list, its children, and what stands in the way of more.
pub struct Observed<'a> {
    /// The list.
    pub list: &'a ImageListPullJob,
    /// The ImagePullJobs that name it as an owner. Those that it does not control are passed over.
    pub children: Vec<Child<'a>>,
    /// Why the API server took no child for an image when last asked. They are decided to be made again all the same;
    /// how often that is tried is the caller's choice.
    pub refused: &'a BTreeMap<String, String>,
    /// Whether the list's namespace has an ImagePullJob of this name, whosever it is.
    pub is_taken: &'a dyn Fn(&str) -> bool,
}

/// What happens to a list and its children.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// The children to make. Their names follow from list and image, so after a lost answer the same ones are asked for.
    pub create: Vec<ImagePullJob>,
    /// The children to delete.
    pub delete: Vec<Doomed>,
    /// The value that the list's hash label must get.
    pub label: Option<String>,
    /// The status to report; none if it is reported already.
    pub status: Option<ImageListPullJobStatus>,
    /// Whether the list has outlived its end for as long as it should, and is to be deleted.
    pub is_expired: bool,
    /// When to decide again, if nothing else happens.
    pub wake_at: Option<Timestamp>,
    /// Whether no further child is to come: each image has its own or was refused one.
    pub has_all_children: bool,
}

/// A child to delete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doomed {
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: Uid,
}

/// Settles what happens to a list. A terminating one is left to the garbage collector (kruise R79), and a finished one
/// only waits for its end (kruise R72).
pub fn decide(observed: &Observed<'_>, now: Timestamp) -> Decision {
    let list = observed.list;
    if list.metadata.deletion_timestamp.is_some() {
        return Decision::default();
    }
    match list.status.as_ref().and_then(|status| status.completion_time.as_ref()) {
        Some(finished) => await_removal(list, finished.0, now),
        None => work(observed, now),
    }
}

fn await_removal(list: &ImageListPullJob, finished: Timestamp, now: Timestamp) -> Decision {
    let removal = removal(list, finished);
    let is_expired = removal.is_some_and(|removal| removal <= now);
    let wake_at = if is_expired { None } else { removal };
    Decision { is_expired, wake_at, has_all_children: true, ..Decision::default() }
}

/// When a list that finished at this time is deleted, if ever.
fn removal(list: &ImageListPullJob, finished: Timestamp) -> Option<Timestamp> {
    let seconds = list.spec.completion_policy.ttl_seconds_after_finished?;
    finished.checked_add(SignedDuration::from_secs(seconds.into())).ok()
}

fn work(observed: &Observed<'_>, now: Timestamp) -> Decision {
    let list = observed.list;
    let (kept, delete) = sort_out(observed);
    let label = child::revision_of(&list.metadata);
    let hash = child::template_hash(&list.spec);
    let revision = revision(label, &hash, &kept);
    let create = missing_children(observed, &kept, &hash, revision);
    let is_awaited = |child: &ImagePullJob| !observed.refused.contains_key(&child.spec.image);
    let has_all_children = !create.iter().any(is_awaited);
    let status = status::status(list, &kept, observed.refused, !delete.is_empty(), now);
    let finished = status.completion_time.as_ref();
    Decision {
        create,
        delete,
        label: (label != Some(revision)).then(|| revision.to_owned()),
        wake_at: finished.and_then(|finished| removal(list, finished.0)),
        status: (list.status.as_ref() != Some(&status)).then_some(status),
        is_expired: false,
        has_all_children,
    }
}

/// The children by image.
type Kept<'a> = BTreeMap<&'a str, Child<'a>>;

/// Parts the children into those that stay, one for each image, and those that go. Terminating ones are neither.
fn sort_out<'a>(observed: &Observed<'a>) -> (Kept<'a>, Vec<Doomed>) {
    let list = observed.list;
    let images: BTreeSet<&str> = list.spec.images.iter().map(String::as_str).collect();
    let is_live = |child: &Child<'_>| {
        child::is_controlled(child.job, list) && child.job.metadata.deletion_timestamp.is_none()
    };
    let mut children: Vec<Child<'_>> = observed.children.iter().copied().filter(is_live).collect();
    children.sort_by_key(|child| (&child.job.metadata.creation_timestamp, &child.job.metadata.name));
    let mut kept = Kept::new();
    let mut delete = Vec::new();
    for child in children {
        let job = child.job;
        let image = job.spec.image.as_str();
        let is_current = images.contains(image) && child::has_template(&job.spec, &list.spec);
        if is_current && !kept.contains_key(image) {
            kept.insert(image, child);
        } else {
            delete.push(Doomed {
                name: job.metadata.name.clone().unwrap_or_default(),
                uid: job.metadata.uid.as_deref().unwrap_or_default().into(),
            });
        }
    }
    (kept, delete)
}

/// The hash that list and children carry: the list's label as long as a present child has it too, whoever computed it
/// (kruise R71).
fn revision<'a>(label: Option<&'a str>, hash: &'a str, kept: &Kept<'_>) -> &'a str {
    let is_carried = || kept.values().any(|child| child::revision_of(&child.job.metadata) == label);
    label.filter(|_| is_carried()).unwrap_or(hash)
}

/// A child for each image that has none.
fn missing_children(
    observed: &Observed<'_>,
    kept: &Kept<'_>,
    hash: &str,
    revision: &str,
) -> Vec<ImagePullJob> {
    let list = observed.list;
    let images: BTreeSet<&str> = list.spec.images.iter().map(String::as_str).collect();
    let missing = images.into_iter().filter(|image| !kept.contains_key(image));
    let mut names = BTreeSet::new();
    let children = missing.filter_map(|image| {
        let is_free = |name: &String| !(observed.is_taken)(name) && !names.contains(name);
        let name = child::candidate_names(list, image, hash).find(is_free)?;
        names.insert(name.clone());
        Some(child::make(list, image, name, revision))
    });
    children.collect()
}

#[cfg(test)]
mod tests;
