//! A job's pod, as the controller remembers it.

use std::sync::Arc;

use crate::object::{NodeName, Uid};

/// One pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// Its name.
    pub name: Arc<str>,
    /// Its UID.
    pub uid: Uid,
    /// The UID of the job that it belongs to; empty if it belongs to none.
    pub owner: Uid,
    /// Its resourceVersion.
    pub resource_version: String,
    /// The node that it is on, or that it is led to (kruise T110); empty if there is none.
    pub node: NodeName,
    /// How far it is.
    pub phase: Phase,
    /// Whether it is being deleted.
    pub is_terminating: bool,
    /// How often its containers were started again, if that is for the job to count.
    pub restarts: i32,
    /// Why the scheduler finds no place for it, in its own words.
    pub unschedulable: Option<Arc<str>>,
}

/// How far a pod is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It waits, runs, or nobody knows.
    Unfinished,
    /// It ended well.
    Succeeded,
    /// It failed.
    Failed,
}

/// What a pod counts as (kruise R113).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It waits or runs.
    Active,
    /// It ended well.
    Succeeded,
    /// It failed.
    Failed,
    /// It was started again too often, so that it counts as failed although it goes on.
    Exhausted,
    /// It is being deleted, and counts nowhere.
    Leaving,
}

impl Pod {
    /// What the pod counts as, if it may be started again so often.
    pub fn standing(&self, restart_limit: i32) -> Standing {
        match self.phase {
            Phase::Succeeded => Standing::Succeeded,
            Phase::Failed => Standing::Failed,
            Phase::Unfinished if self.is_terminating => Standing::Leaving,
            Phase::Unfinished if self.restarts > restart_limit => Standing::Exhausted,
            Phase::Unfinished => Standing::Active,
        }
    }
}
