//! The copies of Secrets that jobs name, kept where agents may read them (kruise R60–R62).
//!
//! A source is a Secret in a job's namespace; all jobs that name it share one copy in the config namespace. Each source is
//! settled as a whole, from the jobs that name it at present:
//!
//! ```text
//! claimants     usable copy   source    what happens
//! some          none          present   a copy is made
//! some          none          other     nothing; the jobs are told
//! some          there         present   the copy lists exactly them and has the source's entries for their registries
//! some          there         missing   the copy lists exactly them and keeps its data
//! some          there         gone      the copy is deleted; the jobs are told
//! some          there         unusable  the copy is deleted; the jobs are told
//! none          there         any       the copy is deleted
//! ```
//!
//! An unknown source is like a missing one, but the jobs wait for it instead of being told. A source is gone when it has
//! been missing for [`GONE_AFTER`]: who replaces a Secret deletes it for a moment. Jobs that one copy cannot list, because
//! an annotation has a bound, get another copy.

mod copy;
mod pass;
mod sources;

use std::collections::{BTreeMap, BTreeSet};

use prewarm_api::kruise::SecretReference;

use crate::object::{ObjectKey, SourceKey};

pub use copy::{Content, Copy, annotations, is_called_like_one_of, references_text};
pub use sources::{GONE_AFTER, Secrets};

/// What is known about a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceState {
    /// It has not been read yet.
    Unknown,
    /// There is no such Secret.
    Missing,
    /// There has been none for so long that nothing may be left of it.
    Gone,
    /// There is one that holds no registry credentials, as this sentence says.
    Unusable(String),
    /// There is one, whose part for the registries of its jobs has this content.
    Present(Content),
}

/// The part of a source that its copies hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// Which Secret.
    pub source: SourceKey,
    /// The registries whose entries are taken: those of the images of the jobs that name it.
    pub registries: BTreeSet<String>,
}

/// One source, the jobs that name it, and its copies.
pub struct Observed<'a> {
    /// Which Secret is copied.
    pub source: &'a SourceKey,
    /// What is known about it.
    pub state: &'a SourceState,
    /// The jobs that name it and are neither finished nor terminating nor in the config namespace. A job that is missing
    /// here loses its copy, so this must come from a complete view.
    pub claimants: &'a BTreeSet<ObjectKey>,
    /// Those of them for whose registry the source was not read yet.
    pub unread: &'a BTreeSet<ObjectKey>,
    /// Its copies. Copies of other sources are passed over.
    pub copies: &'a [&'a Copy],
    /// Whether the config namespace has a Secret of this name, whatever it is.
    pub is_taken: &'a dyn Fn(&str) -> bool,
    /// The namespace of the copies.
    pub config_namespace: &'a str,
}

/// One write in the config namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Makes a copy. Its name follows from the source, so after a lost answer the same one is asked for again.
    Create {
        /// Name of the copy.
        name: String,
        /// The jobs it lists.
        references: BTreeSet<ObjectKey>,
    },
    /// Brings a copy up to date.
    Update {
        /// Name of the copy.
        name: String,
        /// UID of the copy.
        uid: String,
        /// The jobs it lists.
        references: BTreeSet<ObjectKey>,
        /// Whether its data must become the source's.
        has_new_data: bool,
    },
    /// Deletes a copy.
    Delete {
        /// Name of the copy.
        name: String,
        /// UID of the copy.
        uid: String,
    },
}

/// What happens to the copies of one source, and what its jobs get.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settlement {
    /// What is to be written; nothing when all is as it should be (kruise T76). Copies are made before others go.
    pub actions: Vec<Action>,
    /// The copy that each job uses, as far as there is one.
    pub serves: BTreeMap<ObjectKey, SecretReference>,
    /// The jobs that must not be granted nodes yet, because something has to be read or written for them first.
    pub pending: BTreeSet<ObjectKey>,
    /// Whether jobs name a source that does not exist.
    pub is_missing: bool,
    /// Why the source that jobs name holds no registry credentials.
    pub unusable: Option<String>,
}

/// Settles one source.
pub fn settle(observed: &Observed<'_>) -> Settlement {
    let mut settlement = Settlement::default();
    let copies = live_copies(observed);
    let Choices { of_copies, without } = choose(observed, &copies);
    if let (SourceState::Present(_), false) = (observed.state, without.is_empty()) {
        let name = copy::candidate_names(observed.source).find(|name| !(observed.is_taken)(name));
        let references = copy::within_limit(&without);
        settlement.actions.extend(name.map(|name| Action::Create { name, references }));
        settlement.pending.extend(without);
    }
    for copy in copies {
        match of_copies.get(copy.name.as_str()) {
            Some(jobs) => settle_copy(copy, jobs, observed, &mut settlement),
            None => {
                settlement.actions.push(Action::Delete { name: copy.name.clone(), uid: copy.uid.clone() });
            }
        }
    }
    let has_claimants = !observed.claimants.is_empty();
    match observed.state {
        SourceState::Unknown => settlement.pending.clone_from(observed.claimants),
        SourceState::Missing | SourceState::Gone => settlement.is_missing = has_claimants,
        SourceState::Unusable(why) => settlement.unusable = has_claimants.then(|| why.clone()),
        SourceState::Present(_) => settlement.pending.extend(observed.unread.iter().cloned()),
    }
    settlement
}

/// What a job of the config namespace uses: the Secret itself, because agents may read it there (kruise T69).
pub fn plain_reference(config_namespace: &str, name: &str) -> SecretReference {
    SecretReference { namespace: Some(config_namespace.to_owned()), name: Some(name.to_owned()), mode: None }
}

/// The source's copies in order of their names, without those that are on their way out (kruise T62).
fn live_copies<'a>(observed: &Observed<'a>) -> Vec<&'a Copy> {
    let of_source = |copy: &&Copy| copy.source.as_ref() == Some(observed.source) && !copy.is_terminating;
    let mut copies: Vec<&Copy> = observed.copies.iter().copied().filter(of_source).collect();
    copies.sort_by(|one, other| one.name.cmp(&other.name));
    copies
}

/// Which jobs use which copy.
struct Choices<'a> {
    of_copies: BTreeMap<&'a str, BTreeSet<ObjectKey>>,
    /// The jobs for which there is no copy, or none that can list them.
    without: BTreeSet<ObjectKey>,
}

/// A job takes the last of the copies that list it already, so that nothing moves while it runs, or else the first that
/// can list it (kruise T64, T65).
fn choose<'a>(observed: &Observed<'a>, copies: &[&'a Copy]) -> Choices<'a> {
    let usable: Vec<&Copy> = copies.iter().copied().filter(|copy| is_usable(copy, observed.state)).collect();
    let mut choices = Choices { of_copies: BTreeMap::new(), without: BTreeSet::new() };
    let mut lengths = vec![0; usable.len()];
    let mut unlisted = Vec::new();
    for job in observed.claimants {
        let Some(place) = usable.iter().rposition(|copy| copy.references.contains(job)) else {
            unlisted.push(job);
            continue;
        };
        lengths[place] += copy::length(job);
        choices.of_copies.entry(&usable[place].name).or_default().insert(job.clone());
    }
    for job in unlisted {
        let length = copy::length(job);
        match lengths.iter().position(|listed| listed + length <= copy::LONGEST_REFERENCES) {
            Some(place) => {
                lengths[place] += length;
                choices.of_copies.entry(&usable[place].name).or_default().insert(job.clone());
            }
            None => drop(choices.without.insert(job.clone())),
        }
    }
    choices
}

/// The type of a Secret cannot be changed, so a copy of another type than its source's has to be replaced. What is gone,
/// or was never meant for registries, stays nowhere.
fn is_usable(copy: &Copy, state: &SourceState) -> bool {
    match state {
        SourceState::Present(content) => content.type_ == copy.content.type_,
        SourceState::Unknown | SourceState::Missing => true,
        SourceState::Gone | SourceState::Unusable(_) => false,
    }
}

/// Brings one copy up to date for the jobs that use it.
fn settle_copy(
    copy: &Copy,
    jobs: &BTreeSet<ObjectKey>,
    observed: &Observed<'_>,
    settlement: &mut Settlement,
) {
    let has_new_data = matches!(observed.state, SourceState::Present(content) if *content != copy.content);
    if has_new_data {
        settlement.pending.extend(jobs.iter().cloned());
    } else {
        settlement.pending.extend(jobs.difference(&copy.references).cloned());
    }
    let reference = SecretReference {
        namespace: Some(observed.config_namespace.to_owned()),
        name: Some(copy.name.clone()),
        mode: copy.mode.clone(),
    };
    settlement.serves.extend(jobs.iter().map(|job| (job.clone(), reference.clone())));
    if has_new_data || *jobs != copy.references {
        let (name, uid, references) = (copy.name.clone(), copy.uid.clone(), jobs.clone());
        settlement.actions.push(Action::Update { name, uid, references, has_new_data });
    }
}

#[cfg(test)]
mod tests;
