//! How much the kernel holds, by the states that people ask for. It is counted as a whole a while after something has
//! changed; no decision depends on it.

use jiff::Timestamp;
use prewarm_api::kruise::{ImageListPullJob, PullPhase};

use super::Kernel;
use super::demands::{DemandRecord, roll};
use super::image_pull_job::record::Job;
use super::node_image::node::{Facts, Node};
use super::node_image::record::TagRecord;
use super::node_image_set::size::SetImage;
use crate::cluster::advanced_cron_job::child::{State, by_completion};
use crate::cluster::image_prefetch::status::PrefetchSize;
use crate::cluster::image_pull_job::Hold;
use crate::cluster::image_pull_job::explain::reported_hold;
use crate::demand::selection::parallelism;
use crate::time::after;
use crate::time::earliest;

/// How much there is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Nodes.
    pub nodes: Nodes,
    /// Tags in their NodeImages.
    pub tags: Tags,
    /// Jobs of all kinds.
    pub jobs: Jobs,
    /// The nodes of unfinished ImagePullJobs, each counted for every job that selects it.
    pub job_nodes: JobNodes,
    /// The pods of unfinished BroadcastJobs.
    pub broadcast_pods: BroadcastPods,
    /// ImagePrefetches, each by itself.
    pub prefetches: Vec<PrefetchSize>,
    /// Images of NodeImageSets, each by itself.
    pub sets: Vec<SetImage>,
    /// Things that wait for the next cycle.
    pub queue: usize,
    /// When the grant was written that has gone on for longest without an end.
    pub oldest_grant: Option<Timestamp>,
    /// When a node begins to count as silent by time alone.
    pub recount_at: Option<Timestamp>,
}

/// Nodes by whether they are served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nodes {
    /// They have a NodeImage, and their agents have answered all that they were asked.
    pub served: usize,
    /// They are ready, and their agent has not answered in time.
    pub silent: usize,
    /// They are not ready, or only their NodeImage is there.
    pub unready: usize,
    /// They are ready and have no NodeImage yet.
    pub pending: usize,
    /// No agent runs there, by what their labels say.
    pub excluded: usize,
}

/// Tags by how far they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tags {
    /// The agent has not answered.
    pub unanswered: usize,
    /// They wait on their node.
    pub waiting: usize,
    /// They are being pulled.
    pub pulling: usize,
    /// They are on their node.
    pub succeeded: usize,
    /// They could not be pulled.
    pub failed: usize,
}

/// Jobs by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Jobs {
    /// ImagePullJobs.
    pub pulls: JobStates,
    /// ImageListPullJobs.
    pub lists: JobStates,
    /// BroadcastJobs.
    pub broadcasts: JobStates,
    /// AdvancedCronJobs; they never end.
    pub crons: JobStates,
}

/// Jobs by where they are in their life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobStates {
    /// They are at work.
    pub running: usize,
    /// They are to begin nothing.
    pub paused: usize,
    /// They ended well.
    pub succeeded: usize,
    /// They ended badly.
    pub failed: usize,
    /// They are being deleted.
    pub terminating: usize,
}

/// Nodes of jobs by what they wait for, or how far they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobNodes {
    /// They wait for one of the places that the parallelism allows.
    pub place: usize,
    /// They wait because the job is paused.
    pub paused: usize,
    /// They wait for the job's Secrets.
    pub secrets: usize,
    /// They wait for the other jobs of the list.
    pub siblings: usize,
    /// They wait because the job's image cannot be read, or its namespace may not have it.
    pub image: usize,
    /// They were granted and are not done.
    pub active: usize,
    /// They have the image.
    pub succeeded: usize,
    /// They could not pull.
    pub failed: usize,
}

/// Pods of BroadcastJobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BroadcastPods {
    /// Nodes that have no pod yet.
    pub waiting: usize,
    /// They are there, and the scheduler finds no place for them.
    pub unscheduled: usize,
    /// They wait or run.
    pub active: usize,
    /// They ended well.
    pub succeeded: usize,
    /// They failed.
    pub failed: usize,
}

impl Kernel {
    /// How much there is. It counts everything, so it is for those who ask, not for every cycle.
    pub fn size(&self, now: Timestamp) -> Size {
        let mut size = Size { queue: self.agenda.len(), ..Size::default() };
        for node in self.nodes.all.values() {
            size.count_node(node, now);
        }
        for (uid, job) in self.jobs.all.iter() {
            let Some(record) = self.demands.get(uid) else { continue };
            size.jobs.pulls.add(pull_state(job, record));
            size.job_nodes.add(job, record);
        }
        for list in self.lists.values() {
            size.jobs.lists.add(list_state(&list.object));
        }
        (size.jobs.broadcasts, size.broadcast_pods) = self.broadcasts.size();
        size.jobs.crons = self.crons.size();
        size.prefetches = self.prefetches.size();
        size.sets = self.set_images();
        size
    }
}

impl Size {
    fn count_node(&mut self, node: &Node, now: Timestamp) {
        let is_ready = node.facts.as_ref().is_some_and(|facts| facts.is_ready);
        let mut is_silent = false;
        for tag in node.tags() {
            self.tags.add(tag);
            if tag.is_finished() {
                is_silent |= tag.current().is_some_and(|status| status.is_verdict_on_silence);
                continue;
            }
            let Some(granted) = tag.created_at.filter(|_| !tag.owners.is_empty()) else { continue };
            self.oldest_grant = earliest(self.oldest_grant, Some(granted));
            let overdue_at = after(granted, roll::ACKNOWLEDGE_WITHIN);
            if tag.current().is_some() || !is_ready {
                continue;
            }
            if overdue_at <= now {
                is_silent = true;
            } else {
                self.recount_at = earliest(self.recount_at, Some(overdue_at));
            }
        }
        let Nodes { served, silent, unready, pending, excluded } = &mut self.nodes;
        let count = match () {
            () if node.is_agentless() || node.facts.as_ref().is_some_and(Facts::is_virtual) => excluded,
            () if !is_ready => unready,
            () if node.live_image().is_none() => pending,
            () if is_silent => silent,
            () => served,
        };
        *count += 1;
    }
}

impl Tags {
    fn add(&mut self, tag: &TagRecord) {
        let count = match tag.current().map(|status| status.phase) {
            None => &mut self.unanswered,
            Some(PullPhase::Waiting) => &mut self.waiting,
            Some(PullPhase::Pulling) => &mut self.pulling,
            Some(PullPhase::Succeeded) => &mut self.succeeded,
            Some(PullPhase::Failed) => &mut self.failed,
        };
        *count += 1;
    }
}

/// Where a job is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JobState {
    Running,
    Paused,
    Succeeded,
    Failed,
    Terminating,
}

impl JobStates {
    pub(super) fn add(&mut self, state: JobState) {
        let count = match state {
            JobState::Running => &mut self.running,
            JobState::Paused => &mut self.paused,
            JobState::Succeeded => &mut self.succeeded,
            JobState::Failed => &mut self.failed,
            JobState::Terminating => &mut self.terminating,
        };
        *count += 1;
    }
}

fn pull_state(job: &Job, record: &DemandRecord) -> JobState {
    let has_failed = job.object.status.as_ref().is_some_and(|status| status.failed > 0);
    match () {
        () if job.is_terminating() => JobState::Terminating,
        () if !job.is_active() && has_failed => JobState::Failed,
        () if !job.is_active() => JobState::Succeeded,
        () if record.demand.at_once == 0 => JobState::Paused,
        () => JobState::Running,
    }
}

fn list_state(list: &ImageListPullJob) -> JobState {
    let state = list.status.as_ref().map_or(State::Active, by_completion);
    match state {
        _ if list.metadata.deletion_timestamp.is_some() => JobState::Terminating,
        State::Active if parallelism(list.spec.parallelism.as_ref()) == 0 => JobState::Paused,
        State::Active => JobState::Running,
        State::Complete => JobState::Succeeded,
        State::Failed(_) => JobState::Failed,
    }
}

impl JobNodes {
    fn add(&mut self, job: &Job, record: &DemandRecord) {
        let Some(roll) = record.roll.as_ref().filter(|_| job.is_active()) else { return };
        let counts = roll.counts();
        self.active += counts.active;
        self.succeeded += counts.succeeded;
        self.failed += counts.failed;
        let waiting = match reported_hold(&job.object) {
            Some(Hold::Image | Hold::NotAllowed(_)) => &mut self.image,
            Some(Hold::Secrets(_)) => &mut self.secrets,
            Some(Hold::Siblings) => &mut self.siblings,
            None if record.demand.at_once == 0 => &mut self.paused,
            None => &mut self.place,
        };
        *waiting += roll.waiting().len();
    }
}
