//! What the agent counts, in the text form that Prometheus reads. `docs/observe.md` says what each metric means.
//!
//! Every label's values come from an enum, so that no image, job or registry can make the number of series grow.

use std::sync::Arc;
use std::time::Duration;

use prewarm_api::kruise::FailureClass;
use prewarm_plan::agent::wait::Waits;
use prewarm_plan::agent::worklist::{Ended, Ending};
use prewarm_process::metrics::{No, One, Own, Two, set, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

/// What comes before the name of every metric.
const PREFIX: &str = "prewarm_agent";
/// Durations are distinguished from a tenth of a second to the ten minutes after which an attempt ends by default.
const DURATION_BUCKETS: [f64; 12] = [0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0];

/// All counters of one agent. Clones count together.
#[derive(Clone)]
pub struct Metrics {
    inner: Arc<Inner>,
}

struct Inner {
    registry: Registry,
    own: Own,
    pulls: Family<Two, Counter>,
    bytes: Counter,
    durations: Family<One, Histogram, fn() -> Histogram>,
    waits: Histogram,
    failed_attempts: Family<One, Counter>,
    queue: Family<Two, Gauge>,
    lost_images: Counter,
    runtime: Gauge,
    /// Absent until it is known: a zero would look like a full disk.
    free: Family<No, Gauge>,
    capacity: Family<No, Gauge>,
    reconnects: Family<One, Counter>,
}

/// How a task ended, as labels have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Result {
    Pulled,
    Present,
    Failed(FailureClass),
    Cancelled,
}

/// What the agent connects to again when it is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The watch on the Kubernetes API.
    Api,
    /// The container runtime.
    Runtime,
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
            own: Own::default(),
            pulls: Family::default(),
            bytes: Counter::default(),
            durations: Family::new_with_constructor(|| Histogram::new(DURATION_BUCKETS)),
            waits: Histogram::new(DURATION_BUCKETS),
            failed_attempts: Family::default(),
            queue: Family::default(),
            lost_images: Counter::default(),
            runtime: Gauge::default(),
            free: Family::default(),
            capacity: Family::default(),
            reconnects: Family::default(),
        };
        let metrics = Self { inner: Arc::new(inner.registered()) };
        metrics.begin_at_zero();
        metrics
    }

    fn begin_at_zero(&self) {
        let failures = FailureClass::ALL.map(Result::Failed);
        for result in [Result::Pulled, Result::Present, Result::Cancelled].iter().chain(&failures) {
            drop(self.inner.pulls.get_or_create(&result.labels()));
        }
        for kind in ["status", "event"] {
            for is_written in [true, false] {
                self.inner.own.begin_at_zero(kind, result(is_written));
            }
        }
        for target in [Target::Api, Target::Runtime] {
            drop(self.inner.reconnects.get_or_create(&target.labels()));
        }
        for class in FailureClass::ALL {
            drop(self.inner.failed_attempts.get_or_create(&[("class", class.name())]));
        }
        self.queue(Waits::default(), 0);
    }

    /// A task ended, well or badly.
    pub fn ended(&self, ending: &Ending) {
        let (result, bytes) = match &ending.result {
            Ended::Pulled { bytes, .. } => (Result::Pulled, bytes.unwrap_or(0)),
            Ended::Present => (Result::Present, 0),
            Ended::Failed { class, .. } => (Result::Failed(*class), 0),
        };
        self.inner.pulls.get_or_create(&result.labels()).inc();
        self.inner.bytes.inc_by(bytes);
        if result != Result::Present {
            let labels = [("result", result.name())];
            self.inner.durations.get_or_create(&labels).observe(ending.took.as_secs_f64());
        }
    }

    /// A running attempt was stopped because nobody wants it any more.
    pub fn cancelled(&self) {
        self.inner.pulls.get_or_create(&Result::Cancelled.labels()).inc();
    }

    /// How many tasks wait, by what for, and how many are pulled.
    pub fn queue(&self, waits: Waits, pulling: usize) {
        let waiting = waits.by_reason().map(|(reason, count)| ("waiting", reason, count));
        for (state, reason, count) in waiting.into_iter().chain([("pulling", "", pulling)]) {
            set(&self.inner.queue.get_or_create(&[("state", state), ("reason", reason)]), count);
        }
    }

    /// An attempt begins. `waited` is how long its task had waited, if this is its first.
    pub fn began(&self, waited: Option<Duration>) {
        if let Some(waited) = waited {
            self.inner.waits.observe(waited.as_secs_f64());
        }
    }

    /// An attempt failed, whether or not another one follows.
    pub fn attempt_failed(&self, class: FailureClass) {
        self.inner.failed_attempts.get_or_create(&[("class", class.name())]).inc();
    }

    /// Images that were pulled are gone from the node.
    pub fn lost_images(&self, losses: usize) {
        self.inner.lost_images.inc_by(losses as u64);
    }

    /// Whether the container runtime answers.
    pub fn has_runtime(&self, has_runtime: bool) {
        self.inner.runtime.set(i64::from(has_runtime));
    }

    /// How many bytes are free on the images' filesystem, and how many it has.
    pub fn room(&self, free: u64, capacity: u64) {
        self.inner.free.get_or_create(&[]).set(i64::try_from(free).unwrap_or(i64::MAX));
        self.inner.capacity.get_or_create(&[]).set(i64::try_from(capacity).unwrap_or(i64::MAX));
    }

    /// A status was written, or could not be.
    pub fn wrote_status(&self, is_written: bool) {
        self.inner.own.wrote("status", result(is_written));
    }

    /// An event was written, or could not be.
    pub fn wrote_event(&self, is_written: bool) {
        self.inner.own.wrote("event", result(is_written));
    }

    /// An event was not recorded, because too much happened or the API server was away.
    pub fn dropped_event(&self) {
        self.inner.own.dropped_events.inc();
    }

    /// A connection was lost and is sought again.
    pub fn reconnected(&self, target: Target) {
        self.inner.reconnects.get_or_create(&target.labels()).inc();
    }

    /// Everything as text (`application/openmetrics-text`).
    pub fn encode(&self) -> String {
        text(&self.inner.registry)
    }
}

impl Inner {
    fn registered(mut self) -> Self {
        let registry = &mut self.registry;
        registry.register("pulls", "Tasks that ended, by how and why", self.pulls.clone());
        registry.register_with_unit("pulled", "Size of the images pulled", Unit::Bytes, self.bytes.clone());
        let help = "Time from a task's first attempt to its end";
        registry.register_with_unit("pull_duration", help, Unit::Seconds, self.durations.clone());
        let help = "Time from a task's arrival to its first attempt";
        registry.register_with_unit("wait_duration", help, Unit::Seconds, self.waits.clone());
        let help = "Attempts that failed, by why; a task may have several";
        registry.register("failed_attempts", help, self.failed_attempts.clone());
        let help = "Tasks that have not ended, by whether they wait and what for";
        registry.register("tasks", help, self.queue.clone());
        let help = "Images that were pulled and removed from the node since";
        registry.register("images_lost", help, self.lost_images.clone());
        registry.register("runtime_up", "1 if the container runtime answers", self.runtime.clone());
        let help = "Room left on the filesystem of the images";
        registry.register_with_unit("image_filesystem_free", help, Unit::Bytes, self.free.clone());
        let help = "Size of the filesystem of the images";
        registry.register_with_unit("image_filesystem_capacity", help, Unit::Bytes, self.capacity.clone());
        registry.register("reconnects", "Connections that were lost, by what to", self.reconnects.clone());
        self.own.register(registry, "agent");
        self
    }
}

impl Result {
    const fn name(self) -> &'static str {
        match self {
            Self::Pulled => "succeeded",
            Self::Present => "present",
            Self::Failed(_) => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    fn labels(self) -> Two {
        let class = if let Self::Failed(class) = self { class.name() } else { "" };
        [("result", self.name()), ("class", class)]
    }
}

impl Target {
    fn labels(self) -> One {
        [("target", if self == Self::Api { "api" } else { "runtime" })]
    }
}

const fn result(is_written: bool) -> &'static str {
    if is_written { "written" } else { "failed" }
}

#[cfg(test)]
mod tests;
