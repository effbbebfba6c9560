//! Carries commands out. It chooses nothing: every command is one write (with a read where the write needs what is there
//! at that moment), and every answer becomes an outcome for the ledger.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use prewarm_plan::ledger::{Command, Ledger, Telling};
use prewarm_process::event::{Events, Happening, Reason};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

use crate::budget::Budget;
use crate::lease::Term;
use crate::metrics::{Metrics, Written};
use crate::run::Controller;
use crate::watch::{Held, Kind};
use prewarm_clock::Clock;

mod advanced_cron_job;
pub mod answer;
mod broadcast_job;
mod image_list_pull_job;
mod image_pull_job;
mod node_image;
mod secret;
mod verify;

/// A request that takes longer has failed: what became of it shows when the object is read again.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Writes to other objects than NodeImages that run at once. They have places of their own, so that a job's status does
/// not wait behind a thousand nodes.
const OTHER_WRITES: usize = 16;
/// Who writes, as managedFields have it.
pub const FIELD_MANAGER: &str = "prewarm-controller";

/// What became of a command: this writes it into the ledger.
pub type Settled = Box<dyn FnOnce(&mut Ledger, Timestamp, f64) + Send>;

/// Carries commands out, a bounded number at a time.
pub struct Applier {
    hands: Hands,
    events: Events,
    nodes: Arc<Semaphore>,
    others: Arc<Semaphore>,
    running: JoinSet<()>,
    sender: mpsc::UnboundedSender<Settled>,
}

/// What carrying out a command needs.
#[derive(Clone)]
struct Hands {
    client: Client,
    term: Term,
    clock: Arc<dyn Clock>,
    metrics: Metrics,
    budget: Budget,
    config_namespace: Arc<str>,
}

impl Applier {
    /// What has settled is sent to `sender`. It is unbounded, but the ledger has one command under way for each object.
    pub fn new(controller: &Controller, term: Term, sender: mpsc::UnboundedSender<Settled>) -> Self {
        let Controller { config, client, clock, metrics, events, .. } = controller;
        let hands = Hands {
            client: client.clone(),
            term,
            clock: clock.clone(),
            metrics: metrics.clone(),
            budget: Budget::new(config.requests_per_second, config.burst),
            config_namespace: config.settings.config_namespace.as_str().into(),
        };
        Self {
            hands,
            events: events.clone(),
            nodes: Arc::new(Semaphore::new(config.concurrent_writes)),
            others: Arc::new(Semaphore::new(OTHER_WRITES)),
            running: JoinSet::new(),
            sender,
        }
    }

    /// Begins a command.
    pub fn begin(&mut self, command: Command) {
        // Those that have ended are forgotten here, so that the set stays as small as what is under way.
        while self.running.try_join_next().is_some() {}
        let places = match command {
            Command::Tell(telling) => return self.tell(telling),
            // One for each node, so that they may be a thousand.
            Command::NodeImage { .. } | Command::CreatePod { .. } | Command::DeletePod { .. } => {
                self.nodes.clone()
            }
            _ => self.others.clone(),
        };
        let (hands, sender) = (self.hands.clone(), self.sender.clone());
        self.running.spawn(async move {
            let Ok(_place) = places.acquire().await else { return };
            let settled = hands.carry_out(command).await;
            // Nobody listens any more when the controller has stopped.
            let _ = sender.send(settled);
        });
    }

    /// Asks whether something that a list lacks is really gone: it may be younger than the list.
    pub fn verify(&mut self, kind: Kind, held: Held) {
        let (hands, sender) = (self.hands.clone(), self.sender.clone());
        self.running.spawn(async move {
            if let Some(settled) = hands.verify(kind, held).await {
                // Nobody listens any more when the controller has stopped.
                let _ = sender.send(settled);
            }
        });
    }

    fn tell(&self, telling: Telling) {
        let reason =
            if telling.is_warning { Reason::warning(telling.reason) } else { Reason::normal(telling.reason) };
        self.events.tell(Happening { about: telling.about.into(), reason, note: telling.note });
    }

    /// Waits until everything that was begun has ended.
    pub async fn finish(&mut self) {
        while self.running.join_next().await.is_some() {}
    }
}

impl Hands {
    async fn carry_out(&self, command: Command) -> Settled {
        match command {
            Command::NodeImage { node, action } => self.node_image(node, action).await,
            Command::Job { uid, key, write } => self.job(uid, key, write).await,
            Command::List { uid, key, write } => self.list(uid, key, write).await,
            Command::CreateChild { list, child } => self.create_child(list, *child).await,
            Command::DeleteChild { list, key, uid } => self.delete_child(list, key, uid).await,
            Command::Broadcast { uid, key, write } => self.broadcast(uid, key, write).await,
            Command::CreatePod { job, node, pod } => self.create_pod(job, node, *pod).await,
            Command::DeletePod { job, key, uid } => self.delete_pod(job, key, uid).await,
            Command::Cron { uid, key, write } => self.cron(uid, key, write).await,
            Command::CreateRun { cron, key, run } => self.create_run(cron, key, *run).await,
            Command::DeleteRun { cron, key, uid } => self.delete_run(cron, key, uid).await,
            Command::ReadSource(key) => self.read_source(key).await,
            Command::Copy { source, action } => self.copy(source, action).await,
            Command::Tell(_) => Box::new(|_, _, _| {}),
        }
    }

    /// Sends one request within the budget, the time limit and the term: a process that was frozen wakes up with requests
    /// that another leader's have overtaken. `None` if the time ran out or the term is over.
    async fn send<T>(
        &self,
        request: impl Future<Output = Result<T, kube::Error>>,
    ) -> Option<Result<T, kube::Error>> {
        self.budget.take().await;
        if !self.term.is_running() {
            return None;
        }
        tokio::time::timeout(REQUEST_TIMEOUT, request).await.ok()
    }

    fn count<T>(&self, what: Written, answer: Option<&Result<T, kube::Error>>) {
        self.metrics.wrote(what, answer::result(answer));
    }
}
