//! Tells people what happened, as events on the NodeImage and on the jobs that wanted it (kruise D24).
//!
//! Telling never holds up the work: what happened goes into a bounded queue, one task writes, and what does not fit is
//! counted and dropped, since the status has it all anyway. How often is written is decided in `ledger`.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use prewarm_api::kruise::PullPhase;
use prewarm_clock::Clock;
use prewarm_plan::node::worklist::Ending;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::warn;

use crate::metrics::Metrics;
use crate::wake::sleep_until;

mod ledger;
mod object;

use ledger::{Happening, Ledger, Line, Reason};
use object::Maker;

/// So many happenings wait to be told.
pub const MOST_WAITING: usize = 1024;
/// A write that takes longer has failed.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// So long a stopping agent tells what it has left to tell.
const LAST_WORDS: Duration = Duration::from_secs(3);
/// The pause after a write that failed for reasons outside.
const FAILURE_PAUSE: Duration = Duration::from_secs(10);

/// Takes what happened. Clones share the queue.
#[derive(Clone)]
pub struct Events {
    node: Arc<str>,
    /// The NodeImage's UID, as far as it is known.
    uid: Arc<Mutex<Option<String>>>,
    queue: mpsc::Sender<Happening>,
    metrics: Metrics,
}

/// Writes what is in the queue, until every [`Events`] is gone.
pub struct Writer {
    client: Client,
    clock: Arc<dyn Clock>,
    metrics: Metrics,
    queue: mpsc::Receiver<Happening>,
    start: Instant,
    ledger: Ledger,
    maker: Maker,
}

/// The two ends of the queue for one node's events. The writer's [`Writer::run`] has to be spawned.
pub fn events(client: Client, node: &str, clock: Arc<dyn Clock>, metrics: Metrics) -> (Events, Writer) {
    let (sender, queue) = mpsc::channel(MOST_WAITING);
    let events = Events { node: node.into(), uid: Arc::default(), queue: sender, metrics: metrics.clone() };
    let (ledger, maker) = (Ledger::default(), Maker::new(node));
    (events, Writer { client, clock, metrics, queue, start: Instant::now(), ledger, maker })
}

impl Events {
    /// Which NodeImage the node has: `kubectl describe` finds its events by this.
    pub fn regard(&self, uid: Option<String>) {
        *self.uid.lock().unwrap_or_else(PoisonError::into_inner) = uid;
    }

    /// Tells that a task has ended: the NodeImage always, its jobs only of failures.
    pub fn ended(&self, ending: &Ending) {
        let uid = self.uid.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let node_image = object::node_image(&self.node, uid);
        let (status, image) = (&ending.status, &ending.task.reference);
        if status.phase != PullPhase::Failed {
            let how = if ending.was_present {
                "was on the node already".to_owned()
            } else {
                format!("pulled in {:.1} s", ending.took.as_secs_f64())
            };
            return self.tell(Happening {
                about: node_image,
                reason: Reason::Succeeded,
                note: format!("{image} {how}"),
            });
        }
        let reason = Reason::Failed(status.failure_class.unwrap_or_default());
        let message = status.message.clone().unwrap_or_else(|| format!("cannot pull {image}"));
        for owner in &ending.task.owners {
            let note = format!("on node {}: {message}", self.node);
            self.tell(Happening { about: object::owner(owner), reason, note });
        }
        self.tell(Happening { about: node_image, reason, note: message });
    }

    fn tell(&self, happening: Happening) {
        if self.queue.try_send(happening).is_err() {
            self.metrics.dropped_event();
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
            self.metrics.dropped_event();
        }
    }

    async fn write_next(&mut self) {
        let Some(line) = self.ledger.take(self.start.elapsed()) else { return };
        // What other nodes tell too is told once; counting up together would be a write from each of them.
        if line.repeats.is_some() && object::is_shared(&line.about) {
            return self.ledger.wrote(&line, line.repeats.clone(), self.start.elapsed());
        }
        let event = self.maker.make(&line, self.clock.now());
        let answer = tokio::time::timeout(WRITE_TIMEOUT, write(&self.client, &line, &event)).await;
        let verdict = answer.map_or(Verdict::Later, |answer| judge(answer, &event));
        self.metrics.wrote_event(verdict == Verdict::Written);
        match verdict {
            Verdict::Written => self.ledger.wrote(&line, event.metadata.name, self.start.elapsed()),
            Verdict::Anew => self.ledger.give_back(&line, None, self.start.elapsed()),
            Verdict::Later => self.ledger.give_back(&line, Some(FAILURE_PAUSE), self.start.elapsed()),
            Verdict::Never => {
                self.metrics.dropped_event();
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
    /// The server refuses it, for example because the job's namespace is being deleted.
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

fn judge(answer: Result<Event, kube::Error>, event: &Event) -> Verdict {
    let Err(error) = answer else { return Verdict::Written };
    let is_shared = event.regarding.as_ref().is_some_and(object::is_shared);
    let verdict = match &error {
        // Another node told it, or this one before it was restarted.
        kube::Error::Api(status) if status.code == 409 && is_shared => return Verdict::Written,
        kube::Error::Api(status) if status.code == 404 && event.series.is_some() => return Verdict::Anew,
        kube::Error::Api(status) if (400..500).contains(&status.code) && status.code != 429 => Verdict::Never,
        _ => Verdict::Later,
    };
    let regarding = event.regarding.as_ref().map(describe).unwrap_or_default();
    warn!(regarding, reason = event.reason, %error, "an event could not be written");
    verdict
}

fn describe(object: &ObjectReference) -> String {
    let part = |part: &Option<String>| part.clone().unwrap_or_default();
    format!("{} {}/{}", part(&object.kind), part(&object.namespace), part(&object.name))
}

#[cfg(test)]
mod tests;
