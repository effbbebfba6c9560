//! Tells people what happened, as events on objects (kruise D24).
//!
//! Telling never holds up the work: what happened goes into a bounded queue, one task writes, and what does not fit is
//! counted and dropped, since a status has it all anyway. How often is written is decided in `ledger`.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use prewarm_clock::Clock;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::warn;

use crate::log::chain;
use crate::wake::sleep_until;

mod happening;
mod ledger;
mod object;

pub use happening::{Happening, Reason, Severity};
pub use ledger::Bounds;
pub use object::Teller;

use ledger::{Ledger, Line};
use object::Maker;

/// So many happenings wait to be told.
pub const MOST_WAITING: usize = 1024;
/// A write that takes longer has failed.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// So long a stopping process tells what it has left to tell.
const LAST_WORDS: Duration = Duration::from_secs(3);
/// The pause after a write that failed for reasons outside.
const FAILURE_PAUSE: Duration = Duration::from_secs(10);

/// Takes what happened. Clones share the queue.
#[derive(Clone)]
pub struct Events {
    queue: mpsc::Sender<Happening>,
    tally: Arc<dyn Tally>,
}

/// Counts what becomes of events.
pub trait Tally: Send + Sync {
    /// An event was written, or could not be.
    fn wrote(&self, is_written: bool);
    /// Something was not told as an event, because too much happened or the API server was away.
    fn dropped(&self);
}

/// Writes what is in the queue, until every [`Events`] is gone.
pub struct Writer {
    client: Client,
    clock: Arc<dyn Clock>,
    tally: Arc<dyn Tally>,
    queue: mpsc::Receiver<Happening>,
    start: Instant,
    ledger: Ledger,
    maker: Maker,
}

/// The two ends of the queue for one process's events. The writer's [`Writer::run`] has to be spawned.
pub fn events(
    client: Client,
    teller: Teller,
    clock: Arc<dyn Clock>,
    tally: Arc<dyn Tally>,
) -> (Events, Writer) {
    let (sender, queue) = mpsc::channel(MOST_WAITING);
    let events = Events { queue: sender, tally: tally.clone() };
    let (ledger, maker) = (Ledger::new(teller.bounds), Maker::new(teller));
    (events, Writer { client, clock, tally, queue, start: Instant::now(), ledger, maker })
}

impl Events {
    /// Tells of something, at once and without waiting for anybody.
    pub fn tell(&self, happening: Happening) {
        if self.queue.try_send(happening).is_err() {
            self.tally.dropped();
        }
    }
}

impl Writer {
    /// Writes events until every [`Events`] is gone, and then what is left, for a short while.
    pub async fn run(mut self) {
        loop {
            let due = self.ledger.due();
            tokio::select! {
                // What has happened already belongs into the event that is about to be written.
                biased;
                happening = self.queue.recv() => match happening {
                    Some(happening) => self.note(happening),
                    None => break,
                },
                () = sleep_until(self.start, due) => self.write_next().await,
            }
        }
        self.ledger.hurry();
        let last_words = async {
            while self.ledger.due().is_some_and(|due| due <= self.start.elapsed()) {
                self.write_next().await;
            }
        };
        // What is not told by then stands in the status.
        drop(tokio::time::timeout(LAST_WORDS, last_words).await);
    }

    fn note(&mut self, happening: Happening) {
        if !self.ledger.note(happening, self.start.elapsed()) {
            self.tally.dropped();
        }
    }

    async fn write_next(&mut self) {
        let Some(line) = self.ledger.take(self.start.elapsed()) else { return };
        // What other processes tell too is told once; counting up together would be a write from each of them.
        let is_shared = self.maker.is_shared(&line.about);
        if line.repeats.is_some() && is_shared {
            return self.ledger.wrote(&line, line.repeats.clone(), self.start.elapsed());
        }
        let event = self.maker.make(&line, self.clock.now());
        let answer = tokio::time::timeout(WRITE_TIMEOUT, write(&self.client, &line, &event)).await;
        let verdict = answer.map_or(Verdict::Later, |answer| judge(answer, &event, is_shared));
        self.tally.wrote(verdict == Verdict::Written);
        match verdict {
            Verdict::Written => self.ledger.wrote(&line, event.metadata.name, self.start.elapsed()),
            Verdict::Anew => self.ledger.give_back(&line, None, self.start.elapsed()),
            Verdict::Later => self.ledger.give_back(&line, Some(FAILURE_PAUSE), self.start.elapsed()),
            Verdict::Never => {
                self.tally.dropped();
                self.ledger.wrote(&line, None, self.start.elapsed());
            }
        }
    }
}

/// What becomes of a line after its write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Written,
    /// The event that was to be counted up is gone; another one is made.
    Anew,
    /// Trouble outside.
    Later,
    /// The server refuses it, for example because the object's namespace is being deleted.
    Never,
}

async fn write(client: &Client, line: &Line, event: &Event) -> Result<Event, kube::Error> {
    let namespace = event.metadata.namespace.as_deref().unwrap_or(object::DEFAULT_NAMESPACE);
    let api = Api::<Event>::namespaced(client.clone(), namespace);
    match &line.repeats {
        Some(name) => {
            let series = serde_json::json!({ "series": event.series });
            api.patch(name, &PatchParams::default(), &Patch::Merge(series)).await
        }
        None => api.create(&PostParams::default(), event).await,
    }
}

fn judge(answer: Result<Event, kube::Error>, event: &Event, is_shared: bool) -> Verdict {
    let Err(error) = answer else { return Verdict::Written };
    let verdict = match &error {
        // Another process told it, or this one before it was restarted.
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
