//! What goes wrong between a client and the server, and only here: the server itself never pretends.
//!
//! [`Faults`] is a `tower::Layer`. A [`FaultPlan`] says what may happen and how often, and a seed settles what does
//! happen; [`ScriptedFault`]s happen to one chosen request. The fate of a request depends on the seed, its verb, its
//! resource and how many of those came before, so requests of other kinds that come earlier or later change nothing.
//! Time is tokio's. A journal says what was asked and what became of it.
//!
//! ```text
//! request ─▶ fate ─▶ wait ─▶ 429, 500 or refused ─────────────────────────────▶ wait ─▶ client
//!                      └───▶ server (as of now, or of an earlier revision) ─▶ lost ┘
//!                                └─▶ watch: delayed, without bookmarks, cut, silent
//! ```

mod asked;
mod choice;
mod fate;
mod journal;
mod layer;
mod network;
mod plan;
mod script;
mod stale;
mod stall;
mod watch;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kube::client::retry::RetryPolicy;
use tokio::time::Instant;
use tower::Layer as _;
use tower::retry::RetryLayer;

use crate::server::Server;
use asked::Asked;
use choice::Choice;
use fate::{Fate, Ordinals};
use journal::Journal;
use network::{Connection, Network};

pub use crate::body::PassedBody;
pub use asked::Verb;
pub use journal::{Entry, Happened};
pub use layer::Faulty;
pub use plan::{Chance, FaultPlan, Filter, Rates, Rule};
pub use script::{Action, Cut, ScriptedFault};

/// The faults of one client. Clones share the journal and the count of requests.
#[derive(Clone, Debug)]
pub struct Faults {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    plan: FaultPlan,
    seed: u64,
    start: Instant,
    progress: Mutex<Progress>,
    halted: tokio::sync::watch::Sender<bool>,
    network: Network,
    writes: tokio::sync::watch::Sender<u64>,
}

/// What changes while requests pass through.
#[derive(Debug)]
struct Progress {
    script: Vec<ScriptedFault>,
    ordinals: Ordinals,
    journal: Journal,
    is_stopped: bool,
    last_write: Option<Choice>,
}

impl Faults {
    /// Random faults, the same for the same seed.
    pub fn new(plan: FaultPlan, seed: u64) -> Self {
        let progress = Progress {
            script: Vec::new(),
            ordinals: Ordinals::default(),
            journal: Journal::default(),
            is_stopped: false,
            last_write: None,
        };
        let shared = Shared {
            plan,
            seed,
            start: Instant::now(),
            progress: Mutex::new(progress),
            halted: tokio::sync::watch::Sender::new(false),
            network: Network::default(),
            writes: tokio::sync::watch::Sender::new(0),
        };
        Self { shared: Arc::new(shared) }
    }

    /// No faults at all: requests are only counted and recorded in the journal.
    pub fn none() -> Self {
        Self::new(FaultPlan::default(), 0)
    }

    /// Faults at chosen requests, and no others.
    pub fn scripted(script: Vec<ScriptedFault>) -> Self {
        Self::none().with_script(script)
    }

    /// Adds faults at chosen requests. They take precedence over random ones.
    #[must_use]
    pub fn with_script(self, script: Vec<ScriptedFault>) -> Self {
        self.progress().script.extend(script);
        self
    }

    /// Adds a fault at a chosen request, counted from this call on.
    pub fn add(&self, fault: ScriptedFault) {
        self.progress().script.push(fault);
    }

    /// Removes all faults at chosen requests.
    pub fn clear_script(&self) {
        self.progress().script.clear();
    }

    /// A client of the server with these faults in between. Like every in-process client, it does not retry.
    pub fn client(&self, server: &Server) -> kube::Client {
        kube::Client::new(self.layer(server.clone()), "default")
    }

    /// A client that also retries as `kube::Client::try_from(config)` does: after 429, 503 and 504, and no earlier than
    /// `Retry-After` says. Without `Retry-After`, its backoff is truly random, so its journal may differ from run to
    /// run.
    pub fn retrying_client(&self, server: &Server) -> kube::Client {
        let retry = RetryLayer::new(RetryPolicy::server_retry());
        kube::Client::new(retry.layer(self.layer(server.clone())), "default")
    }

    /// Ends all faults for good. Open watches go on without them.
    pub fn stop(&self) {
        self.progress().is_stopped = true;
    }

    /// From here on the network swallows every packet: no request reaches the server, no answer arrives, and nothing
    /// fails. Connections that are open now stay silent for ever, also after [`Faults::heal`].
    pub fn swallow(&self) {
        self.shared.network.swallow();
    }

    /// The network swallows nothing more. Only connections that are opened from here on work.
    pub fn heal(&self) {
        self.shared.network.heal();
    }

    /// Halts everything once that many writes were carried out, as if the client's process had died right after the
    /// last of them: neither its answer nor that of any other request arrives, nothing more reaches the server, and
    /// watches fall silent. No request fails; the test waits for [`Faults::halted`], drops the client and starts
    /// another.
    pub fn halt_after_writes(&self, writes: u64) {
        self.halt_when(move |count| count >= writes);
        if self.writes() >= writes {
            self.shared.halted.send_replace(true);
        }
    }

    /// The same, after the write for which this says so. It is asked once for each that was carried out, with its number
    /// counted from 1, before anybody observes it.
    pub fn halt_when(&self, is_last: impl Fn(u64) -> bool + Send + Sync + 'static) {
        self.progress().last_write = Some(Choice::new(is_last));
    }

    /// Waits until everything has stopped.
    pub async fn halted(&self) {
        // The sender lives as long as `self`, so waiting cannot fail.
        let _ = self.shared.halted.subscribe().wait_for(|halted| *halted).await;
    }

    /// Whether everything is halted.
    pub fn is_halted(&self) -> bool {
        *self.shared.halted.borrow()
    }

    /// Whether nothing of this connection arrives any more.
    fn is_silent(&self, connection: Connection) -> bool {
        self.is_halted() || !self.shared.network.carries(connection)
    }

    /// How many writes the server has carried out. Refused writes and dry runs do not count.
    pub fn writes(&self) -> u64 {
        *self.shared.writes.borrow()
    }

    /// Waits until the server has carried out that many writes.
    pub async fn wrote(&self, writes: u64) {
        // The sender lives as long as `self`, so waiting cannot fail.
        let _ = self.shared.writes.subscribe().wait_for(|count| *count >= writes).await;
    }

    /// What was requested and what became of it, oldest first. Only the latest entries are kept.
    pub fn journal(&self) -> Vec<Entry> {
        self.progress().journal.entries()
    }

    /// How often each kind of entry has occurred since the start, by its [`Happened::label`].
    pub fn tally(&self) -> std::collections::BTreeMap<&'static str, u64> {
        self.progress().journal.tally()
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        // After a panic here, the numbers are still good enough to read.
        self.shared.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn elapsed(&self) -> Duration {
        self.shared.start.elapsed()
    }

    /// Whether random faults occur at the moment.
    fn is_active(&self) -> bool {
        self.shared.plan.is_active(self.elapsed()) && !self.progress().is_stopped
    }

    /// Numbers a request and decides its fate.
    fn settle(&self, asked: &Asked) -> (u64, Fate) {
        let is_active = self.is_active();
        let mut progress = self.progress();
        let number = progress.journal.number();
        let ordinal = progress.ordinals.next(asked);
        let mut fate = if is_active {
            Fate::by_chance(&self.shared.plan, self.shared.seed, asked, ordinal)
        } else {
            Fate::good(self.shared.seed, asked, ordinal)
        };
        for fault in &mut progress.script {
            if let Some(action) = fault.meets(asked) {
                fate.take(action);
            }
        }
        (number, fate)
    }

    fn note(&self, number: u64, asked: &Asked, happened: Happened) {
        let at = self.elapsed();
        self.progress().journal.push(Entry {
            number,
            at,
            verb: asked.verb,
            path: asked.path.clone(),
            happened,
        });
    }

    /// Counts a write, and halts everything if it was the last one.
    fn count_write(&self) {
        let progress = self.progress();
        self.shared.writes.send_modify(|writes| *writes += 1);
        if progress.last_write.as_ref().is_some_and(|last| last.is(self.writes())) {
            self.shared.halted.send_replace(true);
        }
    }
}
