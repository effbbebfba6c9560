//! All metrics of the controller, with their names and help.

use prewarm_process::metrics::{No, One, Own, Two};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use super::ofen::Ofen;

/// What comes before the name of every metric.
const PREFIX: &str = "prewarm_controller";
/// Turns are told apart from a tenth of a millisecond to ten seconds.
const TURN_BUCKETS: [f64; 10] = [0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 10.0];
/// What nodes take is told apart from a second, which is as fine as times in objects are, to an hour.
const GRANT_BUCKETS: [f64; 11] = [1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0];

pub struct Families {
    pub registry: Registry,
    pub ofen: Ofen,
    pub own: Own,
    pub passes: Family<One, Counter>,
    pub turns: Histogram,
    pub queue: Gauge,
    pub grants: Counter,
    pub grants_ended: Family<Two, Counter>,
    pub grant_durations: Family<One, Histogram, fn() -> Histogram>,
    /// Absent if there is none.
    pub oldest_grant: Family<No, Gauge>,
    pub bytes: Counter,
    pub nodes: Family<One, Gauge>,
    pub tags: Family<One, Gauge>,
    pub jobs: Family<Two, Gauge>,
    pub job_nodes: Family<One, Gauge>,
    pub broadcast_pods: Family<One, Gauge>,
    pub runs_started: Family<One, Counter>,
    pub runs_ended: Family<One, Counter>,
    pub runs_skipped: Family<One, Counter>,
    pub leads: Gauge,
    pub reconnects: Family<One, Counter>,
    pub unreadable: Family<One, Gauge>,
}

impl Families {
    pub fn new() -> Self {
        let families = Self {
            registry: Registry::with_prefix(PREFIX),
            ofen: Ofen::new(),
            own: Own::default(),
            passes: Family::default(),
            turns: Histogram::new(TURN_BUCKETS),
            queue: Gauge::default(),
            grants: Counter::default(),
            grants_ended: Family::default(),
            grant_durations: Family::new_with_constructor(|| Histogram::new(GRANT_BUCKETS)),
            oldest_grant: Family::default(),
            bytes: Counter::default(),
            nodes: Family::default(),
            tags: Family::default(),
            jobs: Family::default(),
            job_nodes: Family::default(),
            broadcast_pods: Family::default(),
            runs_started: Family::default(),
            runs_ended: Family::default(),
            runs_skipped: Family::default(),
            leads: Gauge::default(),
            reconnects: Family::default(),
            unreadable: Family::default(),
        };
        families.with_work().with_cluster().with_process()
    }

    /// What nodes were asked and how that went.
    fn with_work(mut self) -> Self {
        let registry = &mut self.registry;
        registry.register("grants", "Pulls that nodes were told to begin", self.grants.clone());
        let help = "Grants that came to their end, by how and why";
        registry.register("grants_ended", help, self.grants_ended.clone());
        let help = "Time that nodes take from a job to its image, by the part of the way";
        registry.register_with_unit("grant_duration", help, Unit::Seconds, self.grant_durations.clone());
        let help = "When the oldest grant that has not ended was written";
        let oldest = self.oldest_grant.clone();
        registry.register_with_unit("oldest_unfinished_grant_timestamp", help, Unit::Seconds, oldest);
        let help = "Size of the images that grants brought";
        registry.register_with_unit("pulled", help, Unit::Bytes, self.bytes.clone());
        let help = "Runs of cron jobs that were made, by whether in time";
        registry.register("cron_runs_started", help, self.runs_started.clone());
        let help = "Runs of cron jobs that are over, by how";
        registry.register("cron_runs_ended", help, self.runs_ended.clone());
        let help = "Runs of cron jobs that were due and not made, by why";
        registry.register("cron_runs_skipped", help, self.runs_skipped.clone());
        self
    }

    /// What there is in the cluster.
    fn with_cluster(mut self) -> Self {
        let registry = &mut self.registry;
        registry.register("nodes", "Nodes, by whether they are served", self.nodes.clone());
        registry.register("tags", "Tags in all NodeImages, by how far they are", self.tags.clone());
        registry.register("jobs", "Jobs, by kind and where they are in their life", self.jobs.clone());
        let help = "Nodes of unfinished ImagePullJobs, by what they wait for or how far they are";
        registry.register("job_nodes", help, self.job_nodes.clone());
        let help = "Pods of unfinished BroadcastJobs, by state";
        registry.register("broadcast_pods", help, self.broadcast_pods.clone());
        let help = "Objects that this version cannot read and leaves as they are, by kind";
        registry.register("unreadable_objects", help, self.unreadable.clone());
        self
    }

    /// How the process itself is.
    fn with_process(mut self) -> Self {
        let registry = &mut self.registry;
        registry.register("passes", "Looks at an object, by its kind", self.passes.clone());
        let help = "Time that deciding takes";
        registry.register_with_unit("turn_duration", help, Unit::Seconds, self.turns.clone());
        registry.register("queue", "Objects that wait to be looked at", self.queue.clone());
        registry.register("leader", "1 if this process leads", self.leads.clone());
        registry.register("watch_reconnects", "Watches that were lost, by kind", self.reconnects.clone());
        self.own.register(registry, "controller");
        self
    }
}
