//! A controller that leads: what it needs from outside, and its loop from the beginning to the end of a term.

use std::sync::Arc;

use kube::Client;
use prewarm_clock::{Clock, TokioClock};
use prewarm_plan::cluster::journal::Entry;
use prewarm_process::client::limited;
use prewarm_process::event::{Bounds, Recorder, Source, Writer, recorder};
use prewarm_process::watch::Crowd;
use tokio::sync::mpsc;

use crate::config::Config;
use crate::health::Health;
use crate::lease::Term;
use crate::metrics::Metrics;
use crate::run::Loop;

/// At most this many inputs of watches wait for the loop; watches wait when there are more.
const MAX_INPUTS: usize = 4096;

/// Everything a controller needs from outside.
pub struct Controller {
    /// Its settings.
    pub config: Config,
    /// The Kubernetes API.
    pub client: Client,
    /// The time of day.
    pub clock: Arc<dyn Clock>,
    /// What is counted.
    pub metrics: Metrics,
    /// The events that it records.
    pub events: Recorder,
    /// Whether it is of use, for the probes.
    pub health: Health,
    /// Where everything that the kernel observes and decides is written down, if anybody wants to know.
    pub journal: Option<mpsc::UnboundedSender<Entry>>,
}

impl Controller {
    /// A controller of this name that has counted and told nothing yet, and the writer of its events: [`Writer::run`] has to
    /// run beside it, and ends after it.
    pub fn new(name: &str, config: Config, client: Client, clock: Arc<dyn Clock>) -> (Self, Writer) {
        let (metrics, health) = (Metrics::new(), Health::default());
        let (events, writer) =
            recorder(client.clone(), source(name), clock.clone(), Arc::new(metrics.clone()));
        (Self { config, client, clock, metrics, events, health, journal: None }, writer)
    }

    /// Writes an entry into the journal, if there is one.
    pub(crate) fn note(&self, entry: impl FnOnce() -> Entry) {
        if let Some(journal) = &self.journal {
            // Whoever no longer reads it has seen enough.
            let _ = journal.send(entry());
        }
    }
}

/// How a controller reports events.
fn source(name: &str) -> Source {
    Source {
        controller: "prewarm-controller",
        instance: name.to_owned(),
        action: "PullImage",
        noun: "thing",
        // Only the leader reports.
        is_shared: |_| false,
        bounds: Bounds::ALONE,
    }
}

/// Leads until `stop` ends: then what is under way may end for a while. Nothing is written outside the term.
pub async fn lead(controller: Controller, term: Term, stop: impl Future<Output = ()>) {
    let (sender, watched) = mpsc::channel(MAX_INPUTS);
    let (settled_sender, settled) = mpsc::unbounded_channel();
    let time_of_day = controller.clock.clone();
    let steady = Arc::new(TokioClock::starting_at(time_of_day.now()));
    let client = limited(controller.client, Crowd::Few);
    let controller = Controller { client, clock: steady, ..controller };
    let mut life = Loop::new(controller, time_of_day, term, sender, settled_sender);
    life.run(watched, settled, stop).await;
    life.leave().await;
}
