//! What the controller writes, and what becomes of it, in the words of its metrics.

use prewarm_plan::cluster::command::{Target, Ticket, Verb};
use prewarm_plan::cluster::{Kind, Writes};
use prewarm_plan::words;

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// An object for its own sake: its metadata, its spec, its end.
    Object(Kind),
    /// The status of one.
    Status(Kind),
    /// A child of an ImageListPullJob.
    Child,
    /// A pod of a BroadcastJob.
    Pod,
    /// A run of an AdvancedCronJob.
    Run,
    /// An event.
    Event,
    /// The Lease.
    Lease,
}

impl Written {
    /// All of them, as far as each kind is written.
    pub fn all() -> Vec<Self> {
        let of = |kind: Kind| match kind.about().writes {
            Writes::Nothing => Vec::new(),
            Writes::Object => vec![Self::Object(kind)],
            Writes::Status => vec![Self::Status(kind)],
            Writes::Both => vec![Self::Object(kind), Self::Status(kind)],
        };
        let others = [Self::Child, Self::Pod, Self::Run, Self::Event, Self::Lease];
        Kind::ALL.into_iter().flat_map(of).chain(others).collect()
    }

    /// How a write of the kernel is counted.
    pub fn of(ticket: &Ticket, verb: &Verb) -> Self {
        let is_status = matches!(verb, Verb::PatchStatus(_) | Verb::Judge(_));
        match (&ticket.asker, ticket.kind) {
            (Target::List(_), Kind::ImagePullJob) => Self::Child,
            (Target::Broadcast(_), Kind::BroadcastPod) => Self::Pod,
            (Target::Cron(_), kind) if kind != Kind::AdvancedCronJob => Self::Run,
            (_, kind) if is_status => Self::Status(kind),
            (_, kind) => Self::Object(kind),
        }
    }

    /// A short fixed word for metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Object(kind) => kind.as_str(),
            Self::Status(kind) => kind.status_word(),
            Self::Child => "child",
            Self::Pod => "pod",
            Self::Run => "run",
            Self::Event => "event",
            Self::Lease => "lease",
        }
    }
}

words! {
    /// What became of a write.
    pub enum WriteResult {
        /// It was taken.
        Ok = "ok",
        /// The object was another one than thought.
        Conflict = "conflict",
        /// It will never be taken.
        Refused = "refused",
        /// It failed for reasons outside.
        Failed = "failed",
    }
}
