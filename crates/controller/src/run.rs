//! The controller's loop: one task that observes everything, lets the kernel decide, and hands out what is to be done. It
//! waits for nothing but inputs and the time.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use prewarm_api::kruise::{AdvancedCronJob, BroadcastJob, ImageListPullJob, ImagePullJob, NodeImage};
use prewarm_api::names::BROADCAST_JOB_UID_LABEL;
use prewarm_clock::{Clock, TokioClock};
use prewarm_plan::cluster::journal::Entry;
use prewarm_plan::cluster::unkept::Unkept;
use prewarm_plan::cluster::{Input, Kernel, Kind, Subject};
use prewarm_process::client::limited;
use prewarm_process::event::{Bounds, Recorder, Source, Writer, recorder};
use prewarm_process::slim::{SlimNode, SlimPod};
use prewarm_process::watch::Crowd;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::{info, warn};

use crate::apply::Applier;
use crate::config::Config;
use crate::health::Health;
use crate::lease::Term;
use crate::metrics::Metrics;
use crate::watch::{BroadcastPod, Local, SlimJob, Watch, follow, follow_labelled};

/// At most this many inputs of watches wait for the loop; watches wait when there are more.
const MAX_INPUTS: usize = 4096;
/// At most this many inputs of watches, and as many answers, belong to one cycle.
const MAX_INPUTS_PER_CYCLE: usize = 4096;
/// After so many inputs the other tasks of the process have a turn.
const INPUTS_PER_TURN: usize = 128;
/// How often everything in the kernel is counted: with ten thousand nodes of fifty images it takes forty milliseconds.
const SIZE_INTERVAL: Duration = Duration::from_secs(10);
/// The loop looks at the clock at least this often: the time of day may be set while it sleeps.
const LONGEST_SLEEP: Duration = Duration::from_mins(1);
/// Smaller corrections of the time of day make no difference to any schedule.
const CLOCK_TOLERANCE: SignedDuration = SignedDuration::from_millis(250);
/// How long a stopping controller waits for what it has begun.
const LAST_WRITES: Duration = Duration::from_secs(5);

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
}

impl Controller {
    /// Writes an entry into the journal, if there is one.
    fn note(&self, entry: impl FnOnce() -> Entry) {
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

struct Loop {
    /// Its clock is the time of day at the beginning and never jumps; everything but schedules is counted on it.
    controller: Controller,
    /// The time of day, which may be set.
    time_of_day: Arc<dyn Clock>,
    /// How far that is ahead, as the kernel knows it.
    ahead: SignedDuration,
    kernel: Kernel,
    applier: Applier,
    sender: mpsc::Sender<Input>,
    _watches: Vec<Watch>,
    pods: Local,
    jobs: Local,
    /// When to count what the kernel holds, after it has changed.
    size_at: Option<Instant>,
    /// What the API server does not keep, as far as it was told.
    unkept: Unkept,
}

impl Loop {
    fn new(
        controller: Controller,
        time_of_day: Arc<dyn Clock>,
        term: Term,
        sender: mpsc::Sender<Input>,
        settled: mpsc::UnboundedSender<Input>,
    ) -> Self {
        let Controller { config, client, metrics, .. } = &controller;
        let applier = Applier::new(&controller, term, settled);
        let secrets = Api::namespaced(client.clone(), &config.settings.config_namespace);
        let watches = vec![
            follow::<SlimNode>(Api::all(client.clone()), None, sender.clone(), metrics.clone()),
            follow::<NodeImage>(Api::all(client.clone()), None, sender.clone(), metrics.clone()),
            follow::<ImagePullJob>(Api::all(client.clone()), None, sender.clone(), metrics.clone()),
            follow::<ImageListPullJob>(Api::all(client.clone()), None, sender.clone(), metrics.clone()),
            follow::<Secret>(secrets, None, sender.clone(), metrics.clone()),
            follow::<BroadcastJob>(Api::all(client.clone()), None, sender.clone(), metrics.clone()),
            follow::<AdvancedCronJob>(Api::all(client.clone()), None, sender.clone(), metrics.clone()),
            follow_labelled::<BroadcastPod>(
                Api::all(client.clone()),
                BROADCAST_JOB_UID_LABEL,
                None,
                sender.clone(),
                metrics.clone(),
            ),
        ];
        let kernel = Kernel::new(config.settings.clone());
        controller.note(|| Entry::Began);
        Self {
            controller,
            time_of_day,
            ahead: SignedDuration::ZERO,
            kernel,
            applier,
            sender,
            _watches: watches,
            pods: Local::default(),
            jobs: Local::default(),
            size_at: None,
            unkept: Unkept::default(),
        }
    }

    async fn run(
        &mut self,
        mut watched: mpsc::Receiver<Input>,
        mut settled: mpsc::UnboundedReceiver<Input>,
        stop: impl Future<Output = ()>,
    ) {
        tokio::pin!(stop);
        let pulse = self.controller.health.pulse.clone();
        loop {
            tokio::select! {
                biased;
                () = &mut stop => return info!("stopping"),
                Some(input) = settled.recv() => self.observe(input),
                Some(input) = watched.recv() => self.observe(input),
                () = self.wake() => {}
                () = pulse.asked() => {}
            }
            pulse.beat();
            // What has arrived meanwhile belongs to the same cycle.
            for number in 1..=MAX_INPUTS_PER_CYCLE {
                let Ok(input) = settled.try_recv() else { break };
                self.observe(input);
                take_turns(number).await;
            }
            for number in 1..=MAX_INPUTS_PER_CYCLE {
                let Ok(input) = watched.try_recv() else { break };
                self.observe(input);
                take_turns(number).await;
            }
            self.decide();
        }
    }

    /// Sleeps until the kernel wants to look at something again.
    async fn wake(&self) {
        if !self.kernel.is_synced() {
            return std::future::pending().await;
        }
        let look_at = self.kernel.wake_at().map(|at| self.instant(at));
        match look_at.into_iter().chain(self.size_at).min() {
            Some(at) => tokio::time::sleep_until(at.min(Instant::now() + LONGEST_SLEEP)).await,
            None => std::future::pending().await,
        }
    }

    fn observe(&mut self, input: Input) {
        let now = self.controller.clock.now();
        self.controller.note(|| Entry::Observed(now, Box::new(input.clone())));
        match &input {
            Input::Undefined(kind) => self.controller.health.lacks(*kind),
            Input::Listed { kind, .. } => self.controller.health.has(*kind),
            _ => {}
        }
        self.kernel.observe(input, now);
        if self.kernel.is_synced() {
            self.controller.health.synced();
        }
    }

    /// Says once, and to the probes as long as it is so, that the API server does not keep what is written.
    fn tell_unkept(&mut self) {
        if self.unkept != *self.kernel.trouble().unkept {
            self.unkept = self.kernel.trouble().unkept.clone();
            let words = self.unkept.in_words();
            if let Some(words) = &words {
                warn!("{words}");
            } else {
                info!("the API server keeps all that is written");
            }
            self.controller.health.set_remark(words);
        }
    }

    /// Tells the kernel when the time of day was set.
    fn look_at_clock(&mut self) {
        let ahead = self.time_of_day.now().duration_since(self.controller.clock.now());
        if (ahead - self.ahead).abs() >= CLOCK_TOLERANCE {
            self.ahead = ahead;
            self.observe(Input::Clock { ahead });
        }
    }

    fn decide(&mut self) {
        self.look_at_clock();
        self.count(Instant::now());
        let (begin, now) = (Instant::now(), self.controller.clock.now());
        let commands = self.kernel.cycle(now);
        self.controller.note(|| Entry::Cycled(now, commands.clone()));
        let measures = self.kernel.take_measures();
        if self.kernel.is_synced() {
            self.controller.metrics.passed(measures.passes, Some(begin.elapsed()));
        }
        self.tell_unkept();
        self.controller.metrics.measured(measures.grants);
        self.controller.metrics.ran(&measures.runs);
        for command in commands {
            self.applier.begin(command);
        }
        if measures.passes.of(Subject::Job) > 0 || measures.passes.of(Subject::Cron) > 0 {
            self.watch_locally();
        }
    }

    /// Counts what the kernel holds, a while after it has changed, and again when a node becomes silent by time alone.
    fn count(&mut self, now: Instant) {
        if self.size_at.is_some_and(|at| at <= now) {
            let size = self.kernel.size(self.controller.clock.now());
            self.controller.metrics.holds(&size);
            self.controller.metrics.cannot_read(&self.kernel.trouble().unreadable.counts());
            self.size_at = size.recount_at.map(|at| self.instant(at).max(now + SIZE_INTERVAL));
        }
        if self.kernel.is_synced() && self.kernel.backlog() > 0 {
            let soon = now + SIZE_INTERVAL;
            self.size_at = Some(self.size_at.map_or(soon, |at| at.min(soon)));
        }
    }

    /// A time of day in the time that never jumps.
    fn instant(&self, at: Timestamp) -> Instant {
        let left = at.duration_since(self.controller.clock.now());
        Instant::now() + Duration::try_from(left).unwrap_or_default()
    }

    /// Watches pods and Jobs in those namespaces in which something depends on them.
    fn watch_locally(&mut self) {
        let Controller { client, metrics, .. } = &self.controller;
        let (by_pods, by_jobs) =
            (self.kernel.watched_namespaces(Kind::Pod), self.kernel.watched_namespaces(Kind::Job));
        let pods = self.pods.keep::<SlimPod>(&by_pods, client, &self.sender, metrics);
        let jobs = self.jobs.keep::<SlimJob>(&by_jobs, client, &self.sender, metrics);
        let left = pods.into_iter().map(|namespace| Input::Unwatched { kind: Kind::Pod, namespace });
        let left =
            left.chain(jobs.into_iter().map(|namespace| Input::Unwatched { kind: Kind::Job, namespace }));
        for input in left.collect::<Vec<_>>() {
            self.observe(input);
        }
    }

    async fn leave(&mut self) {
        if tokio::time::timeout(LAST_WRITES, self.applier.finish()).await.is_err() {
            info!("some writes are still under way; whoever leads next looks at what became of them");
        }
    }
}

/// Lets the other tasks of the process have their turn after every few inputs.
async fn take_turns(number: usize) {
    if number.is_multiple_of(INPUTS_PER_TURN) {
        tokio::task::yield_now().await;
    }
}
