//! The copies of Secrets that jobs name, kept where agents may read them (kruise R60–R62).
//!
//! A source is a Secret in a job's namespace; all jobs that name it share one copy in the config namespace. Each source is
//! settled as a whole, from the jobs that name it at present:
//!
//! ```text
//! claimants     usable copy   source    what happens
//! some          none          present   a copy is made
//! some          none          missing   nothing; the jobs are told
//! some          there         present   the copy lists exactly them and has the source's data
//! some          there         missing   the copy lists exactly them and keeps its data
//! none          there         any       the copy is deleted
//! ```
//!
//! An unknown source is like a missing one, but the jobs wait for it instead of being told.

mod copy;
mod sources;

use std::collections::{BTreeMap, BTreeSet};

use prewarm_api::kruise::SecretReference;

use crate::object::{ObjectKey, SourceKey};

pub use copy::{Content, Copy, annotations, references_text};
pub use sources::Secrets;

/// What is known about a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceState {
    /// It has not been read yet.
    Unknown,
    /// There is no such Secret.
    Missing,
    /// There is one with this content.
    Present(Content),
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
}

/// Settles one source.
pub fn settle(observed: &Observed<'_>) -> Settlement {
    let mut settlement = Settlement::default();
    let copies = live_copies(observed);
    let choices = choose(observed, &copies);
    if choices.is_empty() && !observed.claimants.is_empty() {
        settle_absence(observed, &mut settlement);
    }
    for copy in copies {
        match choices.get(copy.name.as_str()) {
            Some(jobs) => settle_copy(copy, jobs, observed, &mut settlement),
            None => {
                settlement.actions.push(Action::Delete { name: copy.name.clone(), uid: copy.uid.clone() });
            }
        }
    }
    match observed.state {
        SourceState::Unknown => settlement.pending.clone_from(observed.claimants),
        SourceState::Missing => settlement.is_missing = !observed.claimants.is_empty(),
        SourceState::Present(_) => {}
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

/// The jobs of each copy. A job takes the first copy, or the last of those that list it already, so that nothing moves
/// while it runs (kruise T64, T65).
fn choose<'a>(observed: &Observed<'a>, copies: &[&'a Copy]) -> BTreeMap<&'a str, BTreeSet<ObjectKey>> {
    let usable: Vec<&Copy> = copies.iter().copied().filter(|copy| is_usable(copy, observed.state)).collect();
    let mut choices: BTreeMap<&str, BTreeSet<ObjectKey>> = BTreeMap::new();
    for job in observed.claimants {
        let listing = usable.iter().rfind(|copy| copy.references.contains(job));
        if let Some(copy) = listing.or(usable.first()) {
            choices.entry(&copy.name).or_default().insert(job.clone());
        }
    }
    choices
}

/// The type of a Secret cannot be changed, so a copy of another type than its source's has to be replaced.
fn is_usable(copy: &Copy, state: &SourceState) -> bool {
    match state {
        SourceState::Present(content) => content.type_ == copy.content.type_,
        SourceState::Unknown | SourceState::Missing => true,
    }
}

/// Makes a copy for jobs that have none, if there is something to copy.
fn settle_absence(observed: &Observed<'_>, settlement: &mut Settlement) {
    if let SourceState::Present(_) = observed.state {
        settlement.pending.clone_from(observed.claimants);
        let name = copy::candidate_names(observed.source).find(|name| !(observed.is_taken)(name));
        let references = copy::within_limit(observed.claimants);
        settlement.actions.extend(name.map(|name| Action::Create { name, references }));
    }
}

/// Brings one copy up to date for the jobs that use it.
fn settle_copy(
    copy: &Copy,
    jobs: &BTreeSet<ObjectKey>,
    observed: &Observed<'_>,
    settlement: &mut Settlement,
) {
    let references = copy::within_limit(jobs);
    let has_new_data = match observed.state {
        SourceState::Present(content) => *content != copy.content,
        SourceState::Unknown | SourceState::Missing => false,
    };
    if has_new_data {
        settlement.pending.extend(jobs.iter().cloned());
    } else {
        settlement.pending.extend(references.difference(&copy.references).cloned());
    }
    let reference = SecretReference {
        namespace: Some(observed.config_namespace.to_owned()),
        name: Some(copy.name.clone()),
        mode: copy.mode.clone(),
    };
    settlement.serves.extend(jobs.iter().map(|job| (job.clone(), reference.clone())));
    if has_new_data || references != copy.references {
        let (name, uid) = (copy.name.clone(), copy.uid.clone());
        settlement.actions.push(Action::Update { name, uid, references, has_new_data });
    }
}

#[cfg(test)]
mod tests;
