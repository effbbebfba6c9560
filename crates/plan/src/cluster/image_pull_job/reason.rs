//! Why a job is where it is: one type for each of its conditions, with the word and the sentence for people.

use super::Hold;
use super::status::{MOST_FAILED_NODES, MOST_UNKNOWN_NAMES};
use crate::cluster::demands::UnknownNodes;
use crate::condition::{ConditionStatus, Finding, Reason};
use prewarm_api::names::condition::{COMPLETE, FAILED, NODES_FOUND, PROGRESSING};

/// Whether a job makes progress, and why (or why not).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress<'a> {
    /// Every node has ended.
    Finished,
    /// The job took too long.
    Late,
    /// Something keeps it from granting.
    Held(&'a Hold, &'a str),
    /// Its parallelism is zero, and nodes wait.
    Paused,
    /// It selects no node.
    NoNodes,
    /// Every node has ended, and more may join.
    Watching,
    /// Nodes are pulling.
    Pulling,
    /// Some nodes have no room for it.
    Crowded {
        /// On so many, the job's namespace has its share.
        by_own: usize,
        /// On so many, everything is taken.
        by_all: usize,
        /// Whether others are pulling.
        is_pulling: bool,
    },
}

impl Progress<'_> {
    /// In one word.
    pub fn reason(&self) -> Reason {
        match self {
            Self::Finished => Reason::Finished,
            Self::Late => Reason::DeadlineExceeded,
            Self::Held(hold, _) => hold.reason(),
            Self::Paused => Reason::Paused,
            Self::NoNodes => Reason::NoNodes,
            Self::Watching => Reason::Watching,
            Self::Pulling => Reason::Pulling,
            Self::Crowded { .. } => Reason::WaitingForRoom,
        }
    }

    /// In a sentence.
    pub fn message(&self) -> String {
        let words = match self {
            Self::Finished => "every node has ended",
            Self::Late => "the job took longer than activeDeadlineSeconds",
            Self::Held(hold, image) => return hold.message(image),
            Self::Paused => "parallelism is 0; raise it to go on",
            Self::NoNodes => "no node matches the selector yet",
            Self::Watching => "every node has ended; nodes that join are warmed too",
            Self::Pulling => "nodes are pulling",
            Self::Crowded { by_own, by_all, .. } => return no_room(*by_own, *by_all),
        };
        words.to_owned()
    }

    /// As a condition.
    pub fn finding(&self) -> Finding {
        let holds = match self {
            Self::Crowded { is_pulling, .. } => *is_pulling,
            Self::Held(Hold::Siblings, _) | Self::NoNodes | Self::Watching | Self::Pulling => true,
            Self::Finished | Self::Late | Self::Held(..) | Self::Paused => false,
        };
        Finding { type_: PROGRESSING, status: holds.into(), reason: self.reason(), message: self.message() }
    }
}

fn no_room(by_own: usize, by_all: usize) -> String {
    let on = |count: usize| format!("on {count} node{}", if count == 1 { "" } else { "s" });
    let own = (by_own > 0)
        .then(|| format!("{} the jobs of this namespace have their share of the NodeImage", on(by_own)));
    let all = (by_all > 0).then(|| format!("{} the NodeImage is full", on(by_all)));
    let where_: Vec<String> = own.into_iter().chain(all).collect();
    format!("{}; the job goes on there when entries leave", where_.join(", "))
}

impl Hold {
    /// In one word.
    pub fn reason(&self) -> Reason {
        match self {
            Self::Image => Reason::InvalidImage,
            Self::NotAllowed(_) => Reason::ImageNotAllowed,
            Self::Secrets(_) => Reason::WaitingForSecrets,
            Self::Siblings => Reason::WaitingForSiblings,
        }
    }

    /// In a sentence, for a job with this image.
    pub fn message(&self, image: &str) -> String {
        match self {
            Self::Image => format!("{image:?} is no image reference; correct spec.image"),
            Self::NotAllowed(why) | Self::Secrets(why) => why.clone(),
            Self::Siblings => "the other jobs of the list are being made".to_owned(),
        }
    }
}

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Whether it took too long.
    pub is_late: bool,
    /// How many nodes it selected.
    pub desired: usize,
    /// How many of them do not have the image.
    pub failed: usize,
}

impl End {
    /// As a condition.
    pub fn finding(self) -> Finding {
        let Self { is_late, desired, failed } = self;
        let (type_, message) = if failed == 0 && !is_late {
            (COMPLETE, format!("the image is on all {desired} nodes"))
        } else {
            let where_ = format!("failedNodes names the first {MOST_FAILED_NODES}");
            (FAILED, format!("{failed} of {desired} nodes do not have the image; {where_}"))
        };
        let reason = if is_late { Reason::DeadlineExceeded } else { Reason::Finished };
        Finding { type_, status: ConditionStatus::True, reason, message }
    }
}

impl UnknownNodes {
    /// In one word.
    pub fn reason(&self) -> Reason {
        match (self.absent.is_empty(), self.agentless.is_empty()) {
            (true, true) => Reason::AllFound,
            (true, false) => Reason::NodesWithoutAgent,
            (false, _) => Reason::UnknownNodes,
        }
    }

    /// In a sentence.
    pub fn message(&self) -> String {
        let absent = (!self.absent.is_empty()).then(|| {
            let names = listed(&self.absent);
            format!("no NodeImage has these names: {names}; they do not count until their node is ready")
        });
        let agentless = (!self.agentless.is_empty()).then(|| {
            let names = listed(&self.agentless);
            format!("no agent runs on these nodes, by their labels: {names}; they do not count")
        });
        let sentences: Vec<String> = absent.into_iter().chain(agentless).collect();
        if sentences.is_empty() { "every named node exists".to_owned() } else { sentences.join("; ") }
    }

    /// As a condition.
    pub fn finding(&self) -> Finding {
        let reason = self.reason();
        let status = (reason == Reason::AllFound).into();
        Finding { type_: NODES_FOUND, status, reason, message: self.message() }
    }
}

fn listed(names: &[String]) -> String {
    let some = names.iter().take(MOST_UNKNOWN_NAMES).cloned().collect::<Vec<_>>().join(", ");
    let more = names.len().saturating_sub(MOST_UNKNOWN_NAMES);
    if more > 0 { format!("{some} and {more} more") } else { some }
}
