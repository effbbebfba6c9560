//! What there is in the cluster, as gauges. They are set when the kernel was counted, and stay until it is counted again.

use std::collections::BTreeMap;

use prewarm_plan::cluster::Kind;
use prewarm_plan::cluster::size::Size;
use prewarm_plan::cluster::size::{BroadcastPods, JobNodes, JobStates, Jobs, Nodes, Tags};
use prewarm_process::metrics::{One, set};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use super::Metrics;

impl Metrics {
    /// How much the kernel holds.
    pub fn holds(&self, size: &Size) {
        let families = &self.families;
        set(&families.queue, size.queue);
        set_states(&families.nodes, nodes(size.nodes));
        set_states(&families.tags, tags(size.tags));
        set_states(&families.job_nodes, job_nodes(size.job_nodes));
        set_states(&families.broadcast_pods, broadcast_pods(size.broadcast_pods));
        let Jobs { pulls, lists, broadcasts, crons } = size.jobs;
        let kinds =
            [("image_pull_job", pulls), ("image_list_pull_job", lists), ("broadcast_job", broadcasts)];
        for (kind, jobs) in kinds {
            self.holds_jobs(kind, job_states(jobs));
        }
        // Cron jobs never end.
        let JobStates { running, paused, terminating, .. } = crons;
        let crons = [("running", running), ("paused", paused), ("terminating", terminating)];
        self.holds_jobs("advanced_cron_job", crons);
        if let Some(at) = size.oldest_grant {
            families.oldest_grant.get_or_create(&[]).set(at.as_second());
        } else {
            families.oldest_grant.clear();
        }
    }

    /// How many objects of each kind cannot be read.
    pub fn cannot_read(&self, counts: &BTreeMap<Kind, usize>) {
        for kind in Kind::ALL {
            let count = counts.get(&kind).copied().unwrap_or(0);
            set(&self.families.unreadable.get_or_create(&[("kind", kind.as_str())]), count);
        }
    }

    fn holds_jobs<const N: usize>(&self, kind: &'static str, states: [(&'static str, usize); N]) {
        for (state, count) in states {
            set(&self.families.jobs.get_or_create(&[("kind", kind), ("state", state)]), count);
        }
    }
}

fn set_states<const N: usize>(family: &Family<One, Gauge>, states: [(&'static str, usize); N]) {
    for (state, count) in states {
        set(&family.get_or_create(&[("state", state)]), count);
    }
}

fn nodes(nodes: Nodes) -> [(&'static str, usize); 5] {
    let Nodes { served, silent, unready, pending, excluded } = nodes;
    [
        ("served", served),
        ("silent", silent),
        ("unready", unready),
        ("pending", pending),
        ("excluded", excluded),
    ]
}

fn tags(tags: Tags) -> [(&'static str, usize); 5] {
    let Tags { unanswered, waiting, pulling, succeeded, failed } = tags;
    [
        ("unanswered", unanswered),
        ("waiting", waiting),
        ("pulling", pulling),
        ("succeeded", succeeded),
        ("failed", failed),
    ]
}

fn job_states(jobs: JobStates) -> [(&'static str, usize); 5] {
    let JobStates { running, paused, succeeded, failed, terminating } = jobs;
    [
        ("running", running),
        ("paused", paused),
        ("succeeded", succeeded),
        ("failed", failed),
        ("terminating", terminating),
    ]
}

fn job_nodes(nodes: JobNodes) -> [(&'static str, usize); 8] {
    let JobNodes { place, paused, secrets, siblings, image, active, succeeded, failed } = nodes;
    [
        ("waiting_for_place", place),
        ("waiting_for_secrets", secrets),
        ("waiting_for_siblings", siblings),
        ("paused", paused),
        ("invalid_image", image),
        ("active", active),
        ("succeeded", succeeded),
        ("failed", failed),
    ]
}

fn broadcast_pods(pods: BroadcastPods) -> [(&'static str, usize); 5] {
    let BroadcastPods { waiting, unscheduled, active, succeeded, failed } = pods;
    [
        ("waiting", waiting),
        ("unscheduled", unscheduled),
        ("active", active),
        ("succeeded", succeeded),
        ("failed", failed),
    ]
}
