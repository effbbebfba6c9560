//! The controller's loop: one task that hears everything, lets the ledger decide, and hands out what is to be done. It
//! waits for nothing but news and the time.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use prewarm_api::kruise::{
    AdvancedCronJob, BroadcastJob, ImageListPullJob, ImagePullJob, NodeImage, TemplateKind,
};
use prewarm_api::names::BROADCAST_JOB_UID_LABEL;
use prewarm_clock::Clock;
use prewarm_plan::ledger::{Ledger, Passes};
use prewarm_process::event::{Bounds, Events, Teller, Writer, events};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::info;

use crate::apply::{Applier, Settled};
use crate::config::Config;
use crate::health::Health;
use crate::lease::Term;
use crate::metrics::Metrics;
use crate::watch::{
    BroadcastPod, Heard, Held, Kind, Local, SlimJob, SlimNode, SlimPod, Watch, follow, follow_labelled,
};

/// How many news wait for the loop; watches wait when there are more.
const MAX_NEWS: usize = 4096;
/// How many news belong to one turn at most.
const MAX_NEWS_PER_TURN: usize = 4096;
/// How often is counted what the ledger holds: with ten thousand nodes of fifty images it takes forty milliseconds.
const SIZE_INTERVAL: Duration = Duration::from_secs(10);
/// The time of day may be set while the loop sleeps, so that it looks at it again after a while.
const LONGEST_SLEEP: Duration = Duration::from_mins(1);
/// So long a stopping controller waits for what it has begun.
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
    /// What people are told.
    pub events: Events,
    /// Whether it is of use, for the probes.
    pub health: Health,
}

impl Controller {
    /// A controller of this name that has counted and told nothing yet, and the writer of its events: [`Writer::run`] has to
    /// run beside it, and ends after it.
    pub fn new(name: &str, config: Config, client: Client, clock: Arc<dyn Clock>) -> (Self, Writer) {
        let (metrics, health) = (Metrics::new(), Health::default());
        let (events, writer) = events(client.clone(), teller(name), clock.clone(), Arc::new(metrics.clone()));
        (Self { config, client, clock, metrics, events, health }, writer)
    }
}

/// How a controller tells people what happened.
fn teller(name: &str) -> Teller {
    Teller {
        controller: "prewarm-controller",
        instance: name.to_owned(),
        action: "PullImage",
        noun: "thing",
        // Only whoever leads tells.
        is_shared: |_| false,
        bounds: Bounds::ALONE,
    }
}

/// Leads until `stop` ends: then what is under way may end for a while. Nothing is written outside the term.
pub async fn lead(controller: Controller, term: Term, stop: impl Future<Output = ()>) {
    let (sender, news) = mpsc::channel(MAX_NEWS);
    let (settled_sender, settled) = mpsc::unbounded_channel();
    let mut life = Loop::new(controller, term, sender, settled_sender);
    life.turn(news, settled, stop).await;
    life.leave().await;
}

struct Loop {
    controller: Controller,
    ledger: Ledger,
    applier: Applier,
    sender: mpsc::Sender<Heard>,
    _watches: Vec<Watch>,
    pods: Local,
    jobs: Local,
    synced: BTreeSet<Kind>,
    passes: Passes,
    /// When to count what the ledger holds, after it has changed.
    size_at: Option<Instant>,
}

impl Loop {
    fn new(
        controller: Controller,
        term: Term,
        sender: mpsc::Sender<Heard>,
        settled: mpsc::UnboundedSender<Settled>,
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
        let ledger = Ledger::new(config.settings.clone());
        Self {
            controller,
            ledger,
            applier,
            sender,
            _watches: watches,
            pods: Local::default(),
            jobs: Local::default(),
            synced: BTreeSet::new(),
            passes: Passes::default(),
            size_at: None,
        }
    }

    async fn turn(
        &mut self,
        mut news: mpsc::Receiver<Heard>,
        mut settled: mpsc::UnboundedReceiver<Settled>,
        stop: impl Future<Output = ()>,
    ) {
        tokio::pin!(stop);
        let pulse = self.controller.health.pulse.clone();
        loop {
            tokio::select! {
                biased;
                () = &mut stop => return info!("stopping"),
                Some(outcome) = settled.recv() => self.settle(outcome),
                Some(heard) = news.recv() => self.hear(heard),
                () = self.wake() => {}
                () = pulse.asked() => {}
            }
            pulse.beat();
            // What has arrived meanwhile belongs to the same turn.
            while let Ok(outcome) = settled.try_recv() {
                self.settle(outcome);
            }
            for _ in 0..MAX_NEWS_PER_TURN {
                let Ok(heard) = news.try_recv() else { break };
                self.hear(heard);
            }
            self.decide();
        }
    }

    /// Sleeps until the ledger wants to look at something again.
    async fn wake(&self) {
        if !self.is_synced() {
            return std::future::pending().await;
        }
        let look_at = self.ledger.wake_at().map(|at| self.instant(at));
        match look_at.into_iter().chain(self.size_at).min() {
            Some(at) => tokio::time::sleep_until(at.min(Instant::now() + LONGEST_SLEEP)).await,
            None => std::future::pending().await,
        }
    }

    fn hear(&mut self, heard: Heard) {
        match heard {
            Heard::Change(change) => change(&mut self.ledger, self.controller.clock.now()),
            Heard::Listed { kind: Kind::Pod, namespace, .. } => {
                self.ledger.sync_pods(&namespace.unwrap_or_default());
            }
            Heard::Listed { kind, namespace, names } => {
                let is_listed = |held: &Held| names.contains(&(held.namespace.clone(), held.name.clone()));
                let is_here = |held: &Held| namespace.as_ref().is_none_or(|here| *here == held.namespace);
                let unlisted = |held: &Held| is_here(held) && !is_listed(held);
                for held in kind.held(&self.ledger).into_iter().filter(unlisted) {
                    self.applier.verify(kind, held);
                }
                self.sync(kind, namespace);
            }
            // Jobs of a list that nobody may read are jobs like any other.
            Heard::Forbidden(Kind::ImageListPullJob) => self.known(Kind::ImageListPullJob),
            Heard::Forbidden(_) => {}
        }
    }

    /// Everything of a kind is known.
    fn sync(&mut self, kind: Kind, namespace: Option<String>) {
        match kind {
            Kind::Job => self.ledger.crons.sync_jobs(&namespace.unwrap_or_default()),
            Kind::ImageListPullJob => self.ledger.crons.sync(TemplateKind::ImageListPullJob),
            Kind::BroadcastJob => self.ledger.crons.sync(TemplateKind::BroadcastJob),
            _ => {}
        }
        self.known(kind);
    }

    /// Nothing more will be known of a kind for now.
    fn known(&mut self, kind: Kind) {
        self.synced.insert(kind);
        if Kind::NEEDED_FOR_BROADCASTS.iter().all(|kind| self.synced.contains(kind)) {
            self.ledger.broadcasts.sync();
        }
        if self.is_synced() {
            self.controller.health.synced();
        }
    }

    fn settle(&mut self, outcome: Settled) {
        outcome(&mut self.ledger, self.controller.clock.now(), rand::random());
    }

    /// Nothing is decided on a part of the cluster: a job would look as if it had no node, and an owner as if it were gone.
    fn is_synced(&self) -> bool {
        Kind::NEEDED.iter().all(|kind| self.synced.contains(kind))
    }

    fn decide(&mut self) {
        if !self.is_synced() {
            return;
        }
        self.count(Instant::now());
        let begin = Instant::now();
        let before = self.ledger.passes();
        let commands = self.ledger.turn(self.controller.clock.now());
        self.controller.metrics.passed(before, self.ledger.passes(), Some(begin.elapsed()));
        self.controller.metrics.measured(self.ledger.take_measured());
        self.controller.metrics.ran(&self.ledger.crons.take_runs());
        for command in commands {
            self.applier.begin(command);
        }
        let passes = self.ledger.passes();
        if (self.passes.jobs, self.passes.crons) != (passes.jobs, passes.crons) {
            self.watch_locally();
        }
        self.passes = passes;
    }

    /// Counts what the ledger holds, a while after it has changed, and again when a node becomes silent by time alone.
    fn count(&mut self, now: Instant) {
        if self.size_at.is_some_and(|at| at <= now) {
            let size = self.ledger.size(self.controller.clock.now());
            self.controller.metrics.holds(&size);
            self.size_at = size.recount_at.map(|at| self.instant(at).max(now + SIZE_INTERVAL));
        }
        if self.ledger.has_news() {
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
        let Self { ledger, pods, jobs, sender, controller, .. } = self;
        let Controller { client, metrics, .. } = controller;
        for namespace in pods.keep::<SlimPod>(&ledger.pod_namespaces(), client, sender, metrics) {
            ledger.forget_pods(&namespace);
        }
        for namespace in jobs.keep::<SlimJob>(&ledger.crons.job_namespaces(), client, sender, metrics) {
            ledger.crons.forget_jobs(&namespace);
        }
    }

    async fn leave(&mut self) {
        if tokio::time::timeout(LAST_WRITES, self.applier.finish()).await.is_err() {
            info!("some writes are still under way; whoever leads next looks at what became of them");
        }
    }
}
