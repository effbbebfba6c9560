//! Records what happened to objects, as Kubernetes events that people read (kruise D24).
//!
//! Recording never holds up the work: events go into a bounded queue and one task writes them. What does not fit is dropped
//! and counted, since the status has it anyway. `correlator` decides what is written and when.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use prewarm_clock::Clock;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::warn;

use crate::log::chain;
use crate::wake::sleep_until;

mod correlator;
mod object;
mod record;

pub use correlator::Bounds;
pub use object::Source;
pub use record::{Event, Reason, Severity};

use correlator::{Batch, Correlator};
use object::Maker;

/// At most this many events wait in the queue.
pub const MOST_WAITING: usize = 1024;
/// A write that takes longer has failed.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a stopping process goes on writing the events that are left.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(3);
/// The pause after a write that failed for a reason that may pass.
const FAILURE_PAUSE: Duration = Duration::from_secs(10);

/// Accepts events. Clones share the queue.
#[derive(Clone)]
pub struct Recorder {
    queue: mpsc::Sender<Event>,
    tally: Arc<dyn Tally>,
}

/// Counts what becomes of events.
pub trait Tally: Send + Sync {
    /// An event was written, or could not be.
    fn wrote(&self, is_written: bool);
    /// An event was not written, because there were too many or the API server refused it.
    fn dropped(&self);
}

/// Writes what is in the queue, until every [`Recorder`] is dropped.
pub struct Writer {
    client: Client,
    clock: Arc<dyn Clock>,
    tally: Arc<dyn Tally>,
    queue: mpsc::Receiver<Event>,
    start: Instant,
    correlator: Correlator,
    maker: Maker,
}

/// The two ends of the queue for one process's events. The caller has to spawn [`Writer::run`].
pub fn recorder(
    client: Client,
    source: Source,
    clock: Arc<dyn Clock>,
    tally: Arc<dyn Tally>,
) -> (Recorder, Writer) {
    let (sender, queue) = mpsc::channel(MOST_WAITING);
    let recorder = Recorder { queue: sender, tally: tally.clone() };
    let (correlator, maker) = (Correlator::new(source.bounds), Maker::new(source));
    (recorder, Writer { client, clock, tally, queue, start: Instant::now(), correlator, maker })
}

impl Recorder {
    /// Queues an event and returns at once. A full queue drops it.
    pub fn record(&self, event: Event) {
        if self.queue.try_send(event).is_err() {
            self.tally.dropped();
        }
    }
}

impl Writer {
    /// Writes events until every [`Recorder`] is dropped, and after that what is left, for a short while.
    pub async fn run(mut self) {
        loop {
            let due = self.correlator.due();
            tokio::select! {
                // An event that is queued already belongs to the batch that is about to be written.
                biased;
                event = self.queue.recv() => match event {
                    Some(event) => self.add(event),
                    None => break,
                },
                () = sleep_until(self.start, due) => self.write_next().await,
            }
        }
        self.correlator.hurry();
        let rest = async {
            while self.correlator.due().is_some_and(|due| due <= self.start.elapsed()) {
                self.write_next().await;
            }
        };
        // What is not written by then is in the status.
        drop(tokio::time::timeout(DRAIN_TIMEOUT, rest).await);
    }

    fn add(&mut self, event: Event) {
        if !self.correlator.add(event, self.start.elapsed()) {
            self.tally.dropped();
        }
    }

    async fn write_next(&mut self) {
        let Some(batch) = self.correlator.take(self.start.elapsed()) else { return };
        // An event on a shared object is written once: counting it up would be a write from each process.
        let is_shared = self.maker.is_shared(&batch.about);
        if batch.repeats.is_some() && is_shared {
            return self.correlator.wrote(&batch, batch.repeats.clone(), self.start.elapsed());
        }
        let event = self.maker.make(&batch, self.clock.now());
        let answer = tokio::time::timeout(WRITE_TIMEOUT, write(&self.client, &batch, &event)).await;
        let verdict = answer.map_or(Verdict::Later, |answer| judge(answer, &event, is_shared));
        self.tally.wrote(verdict == Verdict::Written);
        match verdict {
            Verdict::Written => self.correlator.wrote(&batch, event.metadata.name, self.start.elapsed()),
            Verdict::Anew => self.correlator.give_back(&batch, None, self.start.elapsed()),
            Verdict::Later => self.correlator.give_back(&batch, Some(FAILURE_PAUSE), self.start.elapsed()),
            Verdict::Never => {
                self.tally.dropped();
                self.correlator.wrote(&batch, None, self.start.elapsed());
            }
        }
    }
}

/// What becomes of a batch after its write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Written,
    /// The event that should be counted up is gone, so another one is made.
    Anew,
    /// The failure may pass.
    Later,
    /// The server refuses the event, for example because the object's namespace is being deleted.
    Never,
}

async fn write(client: &Client, batch: &Batch, event: &v1::Event) -> Result<v1::Event, kube::Error> {
    let namespace = event.metadata.namespace.as_deref().unwrap_or(object::DEFAULT_NAMESPACE);
    let api = Api::<v1::Event>::namespaced(client.clone(), namespace);
    match &batch.repeats {
        Some(name) => {
            let series = serde_json::json!({ "series": event.series });
            api.patch(name, &PatchParams::default(), &Patch::Merge(series)).await
        }
        None => api.create(&PostParams::default(), event).await,
    }
}

fn judge(answer: Result<v1::Event, kube::Error>, event: &v1::Event, is_shared: bool) -> Verdict {
    let Err(error) = answer else { return Verdict::Written };
    let verdict = match &error {
        // Another process wrote it, or this one before a restart.
        kube::Error::Api(status) if status.code == 409 && is_shared => return Verdict::Written,
        kube::Error::Api(status) if status.code == 404 && event.series.is_some() => return Verdict::Anew,
        kube::Error::Api(status) if (400..500).contains(&status.code) && status.code != 429 => Verdict::Never,
        _ => Verdict::Later,
    };
    let regarding = event.regarding.as_ref().map(describe).unwrap_or_default();
    warn!(regarding, reason = event.reason, error = %chain(&error), "an event could not be written");
    verdict
}

fn describe(object: &ObjectReference) -> String {
    let part = |part: &Option<String>| part.clone().unwrap_or_default();
    format!("{} {}/{}", part(&object.kind), part(&object.namespace), part(&object.name))
}

#[cfg(test)]
mod tests;
