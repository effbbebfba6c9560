//! The agent's loop: one task that observes everything, decides with the worklist, and carries the decision out. Nothing
//! in here waits for a pull, a write or the disk: those are workers, and they answer by message.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt as _};
use kube::Client;
use kube::api::DynamicObject;
use prewarm_api::reference::ImageRef;
use prewarm_clock::Clock;
use prewarm_credentials::CredentialSource;
use prewarm_plan::agent::Moment;
use prewarm_plan::agent::assignment::Assignment;
use prewarm_plan::agent::conditions::{Conditions, Gate, RuntimeSearch, Surroundings};
use prewarm_plan::agent::runtime::Patience;
use prewarm_plan::agent::worklist::Outcome;
use prewarm_process::client::limited;
use prewarm_process::event::Writer;
use prewarm_process::wake::sleep_until;
use prewarm_process::watch::Crowd;
use prewarm_runtime::{CallError, Runtime};
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tracing::info;

use crate::check;
use crate::config::Config;
use crate::connection::{Found, NoRuntime};
use crate::event::{Events, events};
use crate::health::Health;
use crate::look;
use crate::metrics::Metrics;
use crate::pull::{MirrorOnly, Update};
use crate::reporter::{Reporter, Trouble};
use crate::room::RoomGuard;

mod apply;
mod begun;
mod observe;

use observe::{Seen, follow};

/// At most this many messages of workers wait for the loop. There are never many more workers than parallel pulls.
const MAX_MESSAGES: usize = 256;
/// How often a low disk is looked at again.
const ROOM_INTERVAL: Duration = Duration::from_secs(10);
/// How long the last report of a stopping agent may take.
const LAST_REPORT: Duration = Duration::from_secs(5);

/// Everything an agent needs from outside.
pub struct Agent {
    pub config: Config,
    pub client: Client,
    /// Where credentials come from.
    pub credentials: Arc<dyn CredentialSource>,
    /// The time of day.
    pub clock: Arc<dyn Clock>,
    /// What is counted.
    pub metrics: Metrics,
    /// Where events are recorded.
    pub events: Events,
    /// Whether it is of use, for the probes.
    pub health: Health,
}

impl Agent {
    /// An agent that has counted and recorded nothing yet, and the writer of its events: [`Writer::run`] has to run beside it,
    /// and ends after it.
    pub fn new(
        config: Config,
        client: Client,
        credentials: Arc<dyn CredentialSource>,
        clock: Arc<dyn Clock>,
    ) -> (Self, Writer) {
        let (metrics, health) = (Metrics::new(), Health::default());
        let (events, writer) = events(client.clone(), &config.node, clock.clone(), metrics.clone());
        (Self { config, client, credentials, clock, metrics, events, health }, writer)
    }
}

/// What the loop observes.
enum Message {
    Seen(Seen),
    Found(Found, Option<RoomGuard>),
    /// There is no runtime for this reason.
    NotFound(NoRuntime),
    /// The disk of the runtime was found later than the runtime.
    Guarded(RoomGuard),
    Updated(u64, Update),
    Ended(u64, Outcome),
    Looked(look::Findings),
    /// A write to the object with this UID ended.
    Written(String, Result<Box<DynamicObject>, Trouble>),
    Removed,
    Checked(Result<check::Findings, CallError>),
    Stop,
    Due,
}

/// Runs until `stop` ends: then no task begins, running pulls may end for a while, and the last state is reported.
pub async fn run(agent: Agent, stop: impl Future<Output = ()>) {
    let agent = Agent { client: limited(agent.client, Crowd::Thousands), ..agent };
    let seen = follow(agent.client.clone(), &agent.config.node, agent.metrics.clone());
    let (sender, messages) = mpsc::channel(MAX_MESSAGES);
    let mut state = Loop::new(agent, sender);
    state.find_runtime(Duration::ZERO);
    state.run(Box::pin(seen), messages, stop).await;
}

struct Loop {
    agent: Agent,
    start: Instant,
    assignment: Assignment,
    gate: Gate,
    reporter: Reporter,
    runtime: Option<(Runtime, Option<RoomGuard>)>,
    /// Keeps `MirrorOnly` with the present runtime.
    mirrors: Arc<MirrorOnly>,
    /// Images that were begun from mirrors: something of them may be kept for the next attempt.
    begun: BTreeSet<ImageRef>,
    /// How far the search for it is while there is none.
    search: RuntimeSearch,
    /// The runtime that the node's kubelet reports, as the NodeImage says it.
    reported: watch::Sender<Option<String>>,
    /// The socket on which the node's runtime answered last.
    used: Option<String>,
    workers: BTreeMap<u64, Worker>,
    /// Looks ahead for the present worklist.
    look_ahead: Option<Worker>,
    watcher: Option<Worker>,
    /// Looks for the disk of the present runtime.
    disk_search: Option<Worker>,
    /// How long a runtime that went away is left alone.
    patience: Patience,
    /// The runtime removed an image.
    removed: Arc<Notify>,
    sender: mpsc::Sender<Message>,
    /// Until when a stopping agent waits for its pulls.
    stop_at: Option<Duration>,
    /// When to look at what is finished; never before there is a runtime.
    check_at: Option<Duration>,
    is_checking: bool,
    /// Another agent that was seen to report for this node.
    rival: Option<String>,
}

/// A task that ends with whoever holds this.
struct Worker(AbortHandle);

impl Drop for Worker {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Loop {
    fn new(agent: Agent, sender: mpsc::Sender<Message>) -> Self {
        Self {
            mirrors: Arc::new(MirrorOnly::new(agent.config.mirrors.clone())),
            agent,
            start: Instant::now(),
            assignment: Assignment::default(),
            gate: Gate::default(),
            reporter: Reporter::default(),
            runtime: None,
            begun: BTreeSet::new(),
            search: RuntimeSearch::Unanswered,
            reported: watch::Sender::new(None),
            used: None,
            workers: BTreeMap::new(),
            look_ahead: None,
            watcher: None,
            disk_search: None,
            patience: Patience::default(),
            removed: Arc::default(),
            sender,
            stop_at: None,
            check_at: None,
            is_checking: false,
            rival: None,
        }
    }

    async fn run(
        &mut self,
        mut seen: impl Stream<Item = Seen> + Unpin,
        mut messages: mpsc::Receiver<Message>,
        stop: impl Future<Output = ()>,
    ) {
        tokio::pin!(stop);
        let (removed, pulse) = (self.removed.clone(), self.agent.health.pulse.clone());
        let mut wake_at: Option<Duration> = None;
        loop {
            let is_stopping = self.stop_at.is_some();
            let message = tokio::select! {
                Some(message) = messages.recv() => message,
                Some(seen) = seen.next() => Message::Seen(seen),
                () = removed.notified() => Message::Removed,
                () = &mut stop, if !is_stopping => Message::Stop,
                () = sleep_until(self.start, wake_at) => Message::Due,
                () = pulse.asked() => Message::Due,
            };
            pulse.beat();
            self.observe(message);
            // What has arrived meanwhile belongs to the same decision.
            while let Ok(message) = messages.try_recv() {
                self.observe(message);
            }
            wake_at = self.cycle();
            if self.is_over() {
                return self.leave(&mut messages).await;
            }
        }
    }

    /// One cycle: decide, begin what is to begin, report what is worth it. Returns when to look again.
    fn cycle(&mut self) -> Option<Duration> {
        let now = self.now();
        self.check(now);
        let conditions = self.conditions();
        let decision = self.assignment.worklist.decide(&conditions, now);
        self.assignment.note_first_sync(now);
        let report_at = self.report_if_due(now);
        self.agent
            .metrics
            .queue(self.assignment.worklist.waits(&conditions, now), self.assignment.worklist.running());
        let room_at = conditions.no_room.is_some().then(|| now.elapsed + ROOM_INTERVAL);
        let check_at = self.check_at.filter(|_| self.runtime.is_some() && !self.is_checking);
        let wake_at = [decision.wake_at, report_at, room_at, check_at, self.stop_at];
        self.apply(decision);
        self.discard_unwanted();
        wake_at.into_iter().flatten().min()
    }

    fn conditions(&mut self) -> Conditions {
        // The disk is only asked when there is something to start.
        let guard = self.guard().filter(|_| self.assignment.worklist.queued() > 0);
        let surroundings = Surroundings {
            parallel: self.agent.config.parallel,
            is_stopping: self.stop_at.is_some(),
            runtime: if self.runtime.is_some() { RuntimeSearch::Found } else { self.search },
            disk: guard.and_then(RoomGuard::read),
        };
        self.gate.judge(surroundings)
    }

    /// What watches the disk, if there is anything to watch.
    fn guard(&self) -> Option<&RoomGuard> {
        self.runtime.as_ref()?.1.as_ref()
    }

    fn now(&self) -> Moment {
        Moment { elapsed: self.start.elapsed(), wall: self.agent.clock.now() }
    }

    fn is_over(&self) -> bool {
        self.stop_at.is_some_and(|at| self.assignment.worklist.running() == 0 || at <= self.start.elapsed())
    }

    /// Cancels what still runs and reports once more. A pull that is cut off here is no failure: it stays `Pulling`,
    /// and the next agent goes on with it.
    async fn leave(&mut self, messages: &mut mpsc::Receiver<Message>) {
        self.cancel_all();
        let last = async {
            loop {
                let now = self.now();
                let status = self.status();
                if self.reporter.is_settled(&status) {
                    return;
                }
                let at = self.report(&status, now);
                tokio::select! {
                    Some(message) = messages.recv() => self.observe(message),
                    () = sleep_until(self.start, at) => {}
                }
            }
        };
        if tokio::time::timeout(LAST_REPORT, last).await.is_err() {
            info!("the last state could not be reported; the next agent will");
        }
    }
}
