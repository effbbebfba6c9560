//! The controller's loop: one task that observes everything, lets the kernel decide, and hands out what is to be done. It
//! waits for nothing but inputs and the time.

use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use prewarm_api::kruise::{AdvancedCronJob, BroadcastJob, ImageListPullJob, ImagePullJob, NodeImage};
use prewarm_api::names::BROADCAST_JOB_UID_LABEL;
use prewarm_api::ofen::{ImagePrefetch, NodeImageSet};
use prewarm_clock::Clock;
use prewarm_plan::cluster::journal::Entry;
use prewarm_plan::cluster::unkept::Unkept;
use prewarm_plan::cluster::{Input, Kernel, Subject};
use prewarm_process::slim::SlimNode;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::info;

use crate::apply::Applier;
use crate::lead::Controller;
use crate::lease::Term;
use crate::watch::{BroadcastPod, Local, Watch, follow, follow_labelled, follow_named};

mod look;

/// At most this many inputs of watches, and as many answers, belong to one cycle.
const MAX_INPUTS_PER_CYCLE: usize = 4096;
/// After so many inputs the other tasks of the process have a turn.
const INPUTS_PER_TURN: usize = 128;
/// The loop looks at the clock at least this often: the time of day may be set while it sleeps.
const LONGEST_SLEEP: Duration = Duration::from_mins(1);
/// How long a stopping controller waits for what it has begun.
const LAST_WRITES: Duration = Duration::from_secs(5);

/// The loop of one term.
pub struct Loop {
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
    pub fn new(
        controller: Controller,
        time_of_day: Arc<dyn Clock>,
        term: Term,
        sender: mpsc::Sender<Input>,
        settled: mpsc::UnboundedSender<Input>,
    ) -> Self {
        let Controller { config, client, metrics, .. } = &controller;
        let applier = Applier::new(&controller, term, settled);
        let secrets = Api::namespaced(client.clone(), &config.settings.config_namespace);
        let mut watches = vec![
            follow::<SlimNode>(Api::all(client.clone()), None, sender.clone(), metrics.clone()),
            follow::<NodeImage>(Api::all(client.clone()), None, sender.clone(), metrics.clone()),
            follow::<ImagePullJob>(Api::all(client.clone()), None, sender.clone(), metrics.clone()),
            follow::<ImageListPullJob>(Api::all(client.clone()), None, sender.clone(), metrics.clone()),
            follow::<Secret>(secrets, None, sender.clone(), metrics.clone()),
            follow::<BroadcastJob>(Api::all(client.clone()), None, sender.clone(), metrics.clone()),
            follow::<AdvancedCronJob>(Api::all(client.clone()), None, sender.clone(), metrics.clone()),
            follow::<ImagePrefetch>(Api::all(client.clone()), None, sender.clone(), metrics.clone()),
            follow::<NodeImageSet>(Api::all(client.clone()), None, sender.clone(), metrics.clone()),
            follow_labelled::<BroadcastPod>(
                Api::all(client.clone()),
                BROADCAST_JOB_UID_LABEL,
                None,
                sender.clone(),
                metrics.clone(),
            ),
        ];
        if let Some(list) = &config.settings.allow_list {
            let maps = Api::namespaced(client.clone(), &list.namespace);
            watches.push(follow_named::<ConfigMap>(maps, &list.name, sender.clone(), metrics.clone()));
        }
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

    /// Runs until `stop` ends.
    pub async fn run(
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

    /// Waits a while for what is under way.
    pub async fn leave(&mut self) {
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
