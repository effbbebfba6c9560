//! How long nodes take for what they are asked, read off two states of a NodeImage. What is measured is counted by whoever
//! runs the kernel; no decision depends on it.
//!
//! ```text
//! job and node are there ──▶ granted ──▶ answered ──▶ pull begins ──▶ pull ends
//! └───────── place ─────────┘└─ answer ─┘
//!                            └────────── start ──────┘└──── pull ────┘
//!                            └─────────────── whole ─────────────────┘
//! ```

use std::time::Duration;

use jiff::Timestamp;
use prewarm_api::kruise::{FailureClass, PullPhase};

use super::advanced_cron_job::runs::Runs;
use super::demands::{DemandRecord, Demands};
use super::node_image::record::{NodeImageRecord, TagRecord, TagStatus};
use super::{Kernel, Subject};
use crate::object::ImageKey;
use crate::words;

/// Something that was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measured {
    /// A node took so long for a part of its way.
    Took(Phase, Duration),
    /// A grant came to its end, and brought so many bytes.
    Ended(End, u64),
}

words! {
    /// A part of a node's way from a job to its image.
    pub enum Phase {
        /// From the time that both job and NodeImage exist to the grant. Only jobs that end are measured: others have no time
        /// at which a node begins to wait.
        Place = "place",
        /// From the grant to the first word of the agent.
        Answer = "answer",
        /// From the grant to the beginning of the pull.
        Start = "start",
        /// From the beginning of the pull to its end.
        Pull = "pull",
        /// From the grant to the end of the pull.
        Whole = "whole",
    }
}

/// What was measured since it was last asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measures {
    /// How many passes there were.
    pub passes: Passes,
    /// How long nodes took, and how grants ended.
    pub grants: Vec<Measured>,
    /// What became of runs of cron jobs.
    pub runs: Runs,
}

/// How many passes there were, by what they looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passes([u64; Subject::ALL.len()]);

impl Passes {
    /// How many there were over one of these.
    pub const fn of(&self, subject: Subject) -> u64 {
        self.0[subject as usize]
    }

    /// There was one more.
    pub const fn count(&mut self, subject: Subject) {
        self.0[subject as usize] += 1;
    }
}

/// How a grant ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The node has the image.
    Succeeded,
    /// The node could not pull it.
    Failed(FailureClass),
    /// The node did not answer.
    Silent,
}

/// How much is kept for whoever asks. A kernel that nobody asks keeps no more.
const MOST_MEASURED: usize = 100_000;

impl Kernel {
    /// What was measured since this was last called.
    pub fn take_measures(&mut self) -> Measures {
        let (passes, grants) = (std::mem::take(&mut self.passes), std::mem::take(&mut self.measured));
        Measures { passes, grants, runs: std::mem::take(&mut self.crons.counted) }
    }

    pub(super) fn keep_measured(&mut self, measured: Vec<Measured>) {
        let room = MOST_MEASURED.saturating_sub(self.measured.len());
        self.measured.extend(measured.into_iter().take(room));
    }
}

/// What two states of one NodeImage say about the entries that differ.
pub(super) fn measure(
    old: &NodeImageRecord,
    new: &NodeImageRecord,
    changed: &[ImageKey],
    demands: &Demands,
    now: Timestamp,
) -> Vec<Measured> {
    let mut measured = Vec::new();
    for key in changed {
        let Some((_, tag)) = new.tag(key) else { continue };
        let before = old.tag(key).map(|(_, tag)| tag);
        let owners = tag.owners.iter().filter_map(|owner| owner.uid.as_deref());
        let granted = owners.filter(|uid| before.is_none_or(|before| !before.is_owned_by(uid)));
        let since = granted.filter_map(|uid| waits_since(demands.get(uid)?, new));
        measured.extend(since.map(|since| Measured::Took(Phase::Place, time(since, now))));
        measured.extend(progress(before, tag, now));
    }
    measured
}

/// Since when a node waits for a job, if that can be said.
fn waits_since(record: &DemandRecord, image: &NodeImageRecord) -> Option<Timestamp> {
    let is_measured = !record.demand.is_lasting();
    let made = record.made_at.filter(|_| is_measured)?;
    Some(image.created_at.map_or(made, |image| image.max(made)))
}

/// What the agent's word about a tag says. What a person wrote by hand is no grant.
fn progress(before: Option<&TagRecord>, tag: &TagRecord, now: Timestamp) -> Vec<Measured> {
    let of_this_round = before.filter(|before| before.version == tag.version);
    let (was, is) = (of_this_round.and_then(TagRecord::current), tag.current());
    let (Some(is), Some(granted)) = (is, tag.created_at.filter(|_| !tag.owners.is_empty())) else {
        return Vec::new();
    };
    let mut measured = Vec::new();
    if was.is_none() && !is.is_verdict_on_silence {
        measured.push(Measured::Took(Phase::Answer, time(granted, now)));
    }
    if is.is_finished() && was.is_none_or(|was| !was.is_finished() || was.is_verdict_on_silence) {
        measured.extend(end(granted, is));
    }
    measured
}

fn end(granted: Timestamp, status: &TagStatus) -> Vec<Measured> {
    let bytes = status.bytes.and_then(|(_, total)| u64::try_from(total).ok()).unwrap_or(0);
    let (end, bytes) = match status.phase {
        _ if status.is_verdict_on_silence => return vec![Measured::Ended(End::Silent, 0)],
        PullPhase::Failed => (End::Failed(status.class.unwrap_or_default()), 0),
        _ => (End::Succeeded, bytes),
    };
    let mut measured = vec![Measured::Ended(end, bytes)];
    if let (Some(started), Some(ended)) = (status.started_at, status.completed_at) {
        let ways =
            [(Phase::Start, granted, started), (Phase::Pull, started, ended), (Phase::Whole, granted, ended)];
        measured.extend(ways.map(|(phase, from, to)| Measured::Took(phase, time(from, to))));
    }
    measured
}

/// Clocks of nodes differ; what ends before it begins took no time.
fn time(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}
