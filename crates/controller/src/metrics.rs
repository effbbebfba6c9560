//! What the controller counts, in the text form that Prometheus reads.
//!
//! Every label's values come from an enum, so that no image, job or node can make the number of series grow.

use std::sync::Arc;
use std::time::Duration;

use prewarm_plan::ledger::{Passes, Size};
use prewarm_process::event::Tally;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use crate::watch::Kind;

/// What comes before the name of every metric.
const PREFIX: &str = "prewarm_controller";
/// Turns are told apart from a tenth of a millisecond to ten seconds.
const TURN_BUCKETS: [f64; 10] = [0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 10.0];

/// All counters of one controller. Clones count together.
#[derive(Clone)]
pub struct Metrics {
    inner: Arc<Inner>,
}

/// One label, or two.
type One = [(&'static str, &'static str); 1];
type Two = [(&'static str, &'static str); 2];

struct Inner {
    registry: Registry,
    passes: Family<One, Counter>,
    turns: Histogram,
    queue: Gauge,
    grants: Counter,
    writes: Family<Two, Counter>,
    nodes: Gauge,
    tags: Gauge,
    jobs: Family<One, Gauge>,
    leads: Gauge,
    reconnects: Family<One, Counter>,
    dropped_events: Counter,
}

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// A NodeImage's metadata or spec.
    NodeImage,
    /// A verdict in a NodeImage's status.
    NodeImageStatus,
    /// An ImagePullJob's finalizer, or its end.
    ImagePullJob,
    /// An ImagePullJob's status.
    ImagePullJobStatus,
    /// An ImageListPullJob's label, or its end.
    ImageListPullJob,
    /// An ImageListPullJob's status.
    ImageListPullJobStatus,
    /// A child of an ImageListPullJob.
    Child,
    /// A BroadcastJob's pause, or its end.
    BroadcastJob,
    /// A BroadcastJob's status.
    BroadcastJobStatus,
    /// A pod of a BroadcastJob.
    Pod,
    /// An AdvancedCronJob's status.
    AdvancedCronJobStatus,
    /// A run of an AdvancedCronJob.
    Run,
    /// The copy of a Secret.
    Secret,
    /// An event.
    Event,
    /// The Lease.
    Lease,
}

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteResult {
    /// It was taken.
    Ok,
    /// The object was another one than thought.
    Conflict,
    /// It will never be taken.
    Refused,
    /// It failed for reasons outside.
    Failed,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Counters at zero. Those that can be known beforehand are there from the start, so that rates have a beginning.
    pub fn new() -> Self {
        let inner = Inner {
            registry: Registry::with_prefix(PREFIX),
            passes: Family::default(),
            turns: Histogram::new(TURN_BUCKETS),
            queue: Gauge::default(),
            grants: Counter::default(),
            writes: Family::default(),
            nodes: Gauge::default(),
            tags: Gauge::default(),
            jobs: Family::default(),
            leads: Gauge::default(),
            reconnects: Family::default(),
            dropped_events: Counter::default(),
        };
        let metrics = Self { inner: Arc::new(inner.registered()) };
        metrics.begin_at_zero();
        metrics
    }

    fn begin_at_zero(&self) {
        for what in Written::ALL {
            for result in WriteResult::ALL {
                drop(self.inner.writes.get_or_create(&labels(what, result)));
            }
        }
        for kind in Kind::ALL {
            drop(self.inner.reconnects.get_or_create(&[("kind", kind.as_str())]));
        }
        self.passed(Passes::default(), Passes::default(), None);
        self.holds(Size::default());
    }

    /// The ledger took a turn.
    pub fn passed(&self, before: Passes, after: Passes, took: Option<Duration>) {
        let counts = [
            ("source", before.sources, after.sources),
            ("image_pull_job", before.jobs, after.jobs),
            ("image_list_pull_job", before.lists, after.lists),
            ("node_image", before.nodes, after.nodes),
            ("broadcast_job", before.broadcasts, after.broadcasts),
            ("advanced_cron_job", before.crons, after.crons),
        ];
        for (kind, before, after) in counts {
            self.inner.passes.get_or_create(&[("kind", kind)]).inc_by(after - before);
        }
        if let Some(took) = took {
            self.inner.turns.observe(took.as_secs_f64());
        }
    }

    /// How much the ledger holds.
    pub fn holds(&self, size: Size) {
        set(&self.inner.nodes, size.nodes);
        set(&self.inner.tags, size.tags);
        set(&self.inner.queue, size.queue);
        let states = [
            ("running", size.running),
            ("paused", size.paused),
            ("finished", size.finished),
            ("terminating", size.terminating),
        ];
        for (state, count) in states {
            set(&self.inner.jobs.get_or_create(&[("state", state)]), count);
        }
    }

    /// So many pulls were granted.
    pub fn granted(&self, grants: usize) {
        self.inner.grants.inc_by(u64::try_from(grants).unwrap_or(u64::MAX));
    }

    /// Something was written, or not.
    pub fn wrote(&self, what: Written, result: WriteResult) {
        self.inner.writes.get_or_create(&labels(what, result)).inc();
    }

    /// Whether it leads.
    pub fn leads(&self, leads: bool) {
        self.inner.leads.set(i64::from(leads));
    }

    /// A watch was lost and is opened again.
    pub fn reconnected(&self, kind: Kind) {
        self.inner.reconnects.get_or_create(&[("kind", kind.as_str())]).inc();
    }

    /// Everything as text (`application/openmetrics-text`).
    pub fn encode(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        if encode(&mut text, &self.inner.registry).is_err() {
            text.clear();
        }
        text
    }
}

impl Tally for Metrics {
    fn wrote(&self, is_written: bool) {
        let result = if is_written { WriteResult::Ok } else { WriteResult::Failed };
        Self::wrote(self, Written::Event, result);
    }

    fn dropped(&self) {
        self.inner.dropped_events.inc();
    }
}

impl Inner {
    fn registered(mut self) -> Self {
        let registry = &mut self.registry;
        registry.register("passes", "Looks at an object, by its kind", self.passes.clone());
        registry.register_with_unit(
            "turn_duration",
            "Time that deciding takes",
            Unit::Seconds,
            self.turns.clone(),
        );
        registry.register("queue", "Objects that wait to be looked at", self.queue.clone());
        registry.register("grants", "Pulls that nodes were told to begin", self.grants.clone());
        registry.register(
            "api_writes",
            "Writes to the Kubernetes API, by kind and result",
            self.writes.clone(),
        );
        registry.register("nodes", "Nodes that are known", self.nodes.clone());
        registry.register("tags", "Tags in all NodeImages", self.tags.clone());
        registry.register("jobs", "ImagePullJobs, by where they are in their life", self.jobs.clone());
        registry.register("leader", "1 if this process leads", self.leads.clone());
        registry.register("watch_reconnects", "Watches that were lost, by kind", self.reconnects.clone());
        registry.register(
            "events_dropped",
            "Things that were not told as an event",
            self.dropped_events.clone(),
        );
        let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "The version of this controller", version);
        self
    }
}

impl Written {
    const ALL: [Self; 15] = [
        Self::NodeImage,
        Self::NodeImageStatus,
        Self::ImagePullJob,
        Self::ImagePullJobStatus,
        Self::ImageListPullJob,
        Self::ImageListPullJobStatus,
        Self::Child,
        Self::BroadcastJob,
        Self::BroadcastJobStatus,
        Self::Pod,
        Self::AdvancedCronJobStatus,
        Self::Run,
        Self::Secret,
        Self::Event,
        Self::Lease,
    ];

    const fn as_str(self) -> &'static str {
        match self {
            Self::NodeImage => "node_image",
            Self::NodeImageStatus => "node_image_status",
            Self::ImagePullJob => "image_pull_job",
            Self::ImagePullJobStatus => "image_pull_job_status",
            Self::ImageListPullJob => "image_list_pull_job",
            Self::ImageListPullJobStatus => "image_list_pull_job_status",
            Self::Child => "child",
            Self::BroadcastJob => "broadcast_job",
            Self::BroadcastJobStatus => "broadcast_job_status",
            Self::Pod => "pod",
            Self::AdvancedCronJobStatus => "advanced_cron_job_status",
            Self::Run => "run",
            Self::Secret => "secret",
            Self::Event => "event",
            Self::Lease => "lease",
        }
    }
}

impl WriteResult {
    const ALL: [Self; 4] = [Self::Ok, Self::Conflict, Self::Refused, Self::Failed];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Conflict => "conflict",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }
}

fn labels(what: Written, result: WriteResult) -> Two {
    [("kind", what.as_str()), ("result", result.as_str())]
}

fn set(gauge: &Gauge, count: usize) {
    gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
}

#[cfg(test)]
mod tests;
