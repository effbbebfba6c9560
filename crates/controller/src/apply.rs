//! Carries commands out. It chooses nothing: every command is one write (with a read where the write needs what is there
//! at that moment), and every answer becomes an input of the kernel.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use kube::api::{Patch, PatchParams};
use kube::{Api, Client, Resource};
use prewarm_clock::Clock;
use prewarm_plan::cluster::command::{Event, Outcome, Read, Ticket, Verb, Write};
use prewarm_plan::cluster::{Command, Input, Kind, Object};
use prewarm_process::event::{self, Reason, Recorder};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

use crate::budget::Budget;
use crate::lead::Controller;
use crate::lease::Term;
use crate::metrics::{Metrics, Written};
use crate::watch::Watched;

use answer::outcome;
use api::with_api;

pub mod answer;
mod api;
mod judge;
mod read;
mod secret;
mod whole;

/// A request that takes longer has failed: what became of it shows when the object is read again.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Writes to other objects than NodeImages that run at once. They have places of their own, so that a job's status does
/// not wait behind a thousand nodes.
const OTHER_WRITES: usize = 16;
/// Writes to NodeImageSets that run at once: neither a grant nor the status of their ImagePrefetch waits behind a thousand of them.
const SET_WRITES: usize = 16;
/// Who writes, as managedFields have it.
pub const FIELD_MANAGER: &str = "prewarm-controller";

/// Carries commands out, a bounded number at a time.
pub struct Applier {
    writer: Writer,
    events: Recorder,
    nodes: Arc<Semaphore>,
    sets: Arc<Semaphore>,
    others: Arc<Semaphore>,
    running: JoinSet<()>,
    sender: mpsc::UnboundedSender<Input>,
}

/// What carrying out a command needs.
#[derive(Clone)]
struct Writer {
    client: Client,
    term: Term,
    clock: Arc<dyn Clock>,
    metrics: Metrics,
    budget: Budget,
    config_namespace: Arc<str>,
}

impl Applier {
    /// What became of commands is sent to `sender`. It is unbounded, but the kernel has one command under way for each object.
    pub fn new(controller: &Controller, term: Term, sender: mpsc::UnboundedSender<Input>) -> Self {
        let Controller { config, client, clock, metrics, events, .. } = controller;
        let writer = Writer {
            client: client.clone(),
            term,
            clock: clock.clone(),
            metrics: metrics.clone(),
            budget: Budget::new(config.requests_per_second, config.burst),
            config_namespace: config.settings.config_namespace.as_str().into(),
        };
        Self {
            writer,
            events: events.clone(),
            nodes: Arc::new(Semaphore::new(config.concurrent_writes)),
            sets: Arc::new(Semaphore::new(SET_WRITES)),
            others: Arc::new(Semaphore::new(OTHER_WRITES)),
            running: JoinSet::new(),
            sender,
        }
    }

    /// Begins a command.
    pub fn begin(&mut self, command: Command) {
        // Those that have ended are forgotten here, so that the set stays as small as what is under way.
        while self.running.try_join_next().is_some() {}
        let places = match &command {
            Command::Record(event) => return self.record(event.clone()),
            Command::Read(Read::Object { .. }) => None,
            Command::Write(write) if is_per_node(write) => Some(self.nodes.clone()),
            Command::Write(write) if write.ticket.kind == Kind::NodeImageSet => Some(self.sets.clone()),
            Command::Write(_) | Command::Read(Read::Source(_)) => Some(self.others.clone()),
        };
        let (writer, sender) = (self.writer.clone(), self.sender.clone());
        self.running.spawn(async move {
            let _place = match places {
                Some(places) => Some(places.acquire_owned().await),
                None => None,
            };
            // Nobody listens any more when the controller has stopped.
            if let Some(input) = writer.carry_out(command).await {
                let _ = sender.send(input);
            }
        });
    }

    fn record(&self, event: Event) {
        let Event { about, notice } = event;
        let reason =
            if notice.is_warning { Reason::warning(notice.reason) } else { Reason::normal(notice.reason) };
        self.events.record(event::Event { about: about.into(), reason, note: notice.note });
    }

    /// Waits until everything that was begun has ended.
    pub async fn finish(&mut self) {
        while self.running.join_next().await.is_some() {}
    }
}

impl Writer {
    /// Carries a command out, and says what the kernel has to observe.
    async fn carry_out(&self, command: Command) -> Option<Input> {
        match command {
            Command::Write(write) => {
                let ticket = write.ticket.clone();
                let outcome = self.write(write).await;
                Some(Input::Settled { ticket, outcome, jitter: rand::random() })
            }
            Command::Read(Read::Source(excerpt)) => {
                let state = self.read_source(&excerpt).await;
                Some(Input::SourceRead { source: excerpt.source, state, jitter: rand::random() })
            }
            Command::Read(Read::Object { kind, key, uid }) => self.read_object(kind, key, uid).await,
            Command::Record(_) => None,
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

/// Whether there may be one such write for each node, so that they may be a thousand.
fn is_per_node(write: &Write) -> bool {
    matches!(write.ticket.kind, Kind::NodeImage | Kind::BroadcastPod)
}

/// What can be written like any other object.
trait Writable: Watched + Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned {}

impl<K> Writable for K where K: Watched + Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned {}

impl Writer {
    /// Carries a write out.
    async fn write(&self, write: Write) -> Outcome<Object> {
        let Write { ticket, verb } = write;
        let verb = match verb {
            Verb::Copy(excerpt, action) => {
                return self.write_copy(&excerpt, &ticket.key.name, action).await;
            }
            Verb::Judge(verdicts) => return self.judge(&ticket, &verdicts).await,
            verb => verb,
        };
        with_api!(
            self.client.clone(), ticket.kind, &ticket.key.namespace,
            api => self.send_to(&api, &ticket, verb).await,
            else unreachable!("nobody asks for a write to a {}", ticket.kind.as_str())
        )
    }

    async fn send_to<K: Writable>(&self, api: &Api<K>, ticket: &Ticket, verb: Verb) -> Outcome<Object> {
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let (name, counted) = (&ticket.key.name, Written::of(ticket, &verb));
        let (answer, grants) = match verb {
            Verb::Create(object) => {
                let answer = self.send(self.post::<K>(ticket, &object)).await;
                self.count(counted, answer.as_ref());
                return self.created(api, ticket, answer).await.map(K::into_object);
            }
            Verb::Patch(operations, grants) => {
                (self.send(api.patch(name, &params, &json_patch(operations))).await, grants)
            }
            Verb::PatchStatus(operations) => {
                (self.send(api.patch_status(name, &params, &json_patch(operations))).await, 0)
            }
            Verb::Delete => return self.delete(api, ticket, counted).await.map(K::into_object),
            Verb::Judge(_) | Verb::Copy(..) => unreachable!("they are carried out elsewhere"),
        };
        self.count(counted, answer.as_ref());
        if matches!(answer, Some(Ok(_))) {
            self.metrics.granted(grants);
        }
        self.outcome_of(api, ticket, answer).await.map(K::into_object)
    }

    /// What became of a write, by the answer to it.
    async fn outcome_of<K: Writable>(
        &self,
        api: &Api<K>,
        ticket: &Ticket,
        answer: Option<Result<K, kube::Error>>,
    ) -> Outcome<K> {
        let what = format!("{} {}", K::kind(&()), ticket.key);
        outcome(&what, answer, async || self.send(api.get_opt(&ticket.key.name)).await).await
    }
}

/// The operations as a patch.
fn json_patch(operations: Vec<Value>) -> Patch<()> {
    let patch =
        serde_json::from_value(Value::Array(operations)).expect("the kernel makes well-formed operations");
    Patch::Json(patch)
}
