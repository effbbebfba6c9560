//! A year of an hourly image list in four quarters, each with another seed, with controllers that die at any write,
//! outages, pauses, runs that hang, and clocks that are set.
//!
//! Every run that is due happens exactly once or is counted as skipped, whatever happens; under Forbid there are never
//! two at a time; and the history never grows beyond its limits.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt as _;
use jiff::{SignedDuration, Timestamp};
use kube::api::{ListParams, Patch, PatchParams};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use prewarm_api::kruise::{AdvancedCronJob, ImageListPullJob};
use prewarm_clock::{Clock, TokioClock};
use prewarm_control_plane::ControlPlane;
use prewarm_embedded::Options;
use prewarm_embedded::faults::Faults;
use prewarm_plan::cluster::advanced_cron_job::timetable;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};

/// The days of a quarter.
const DAYS: u64 = 92;
const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
/// How many runs of each result are kept. None succeeds here: the only node does not answer.
const KEPT: usize = 2;
/// After this time, the effects of a disturbance are over.
const ECHOES: Duration = Duration::from_mins(3);

/// A clock that is set now and then.
struct SetClock {
    inner: TokioClock,
    ahead: AtomicI64,
}

impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        self.inner.now() + SignedDuration::from_secs(self.ahead.load(Ordering::Relaxed))
    }
}

struct Quarter {
    cluster: ControlPlane,
    clock: Arc<SetClock>,
    random: StdRng,
    is_forbidden: bool,
    is_alive: bool,
    witness: Arc<Mutex<Witness>>,
    disturbed_at: tokio::time::Instant,
}

/// Observes every run from its beginning to its end.
#[derive(Default)]
struct Witness {
    /// The UID of every run that ever existed, by name.
    seen: BTreeMap<String, String>,
    /// The runs that have not ended.
    active: BTreeSet<String>,
    most_active: usize,
    made_twice: Vec<String>,
}

impl Witness {
    fn watch(cluster: &ControlPlane) -> Arc<Mutex<Self>> {
        let witness = Arc::new(Mutex::new(Self::default()));
        let (lists, observer) = (cluster.lists(), witness.clone());
        tokio::spawn(async move {
            let mut events = std::pin::pin!(watcher(lists, watcher::Config::default()).default_backoff());
            while let Some(event) = events.next().await {
                match event {
                    Ok(Event::Apply(run) | Event::InitApply(run)) => observer.lock().unwrap().observe(&run),
                    Ok(Event::Delete(run)) => {
                        observer.lock().unwrap().active.remove(run.metadata.name.as_deref().unwrap());
                    }
                    Ok(Event::Init | Event::InitDone) | Err(_) => {}
                }
            }
        });
        witness
    }

    fn observe(&mut self, run: &ImageListPullJob) {
        let (name, uid) = (run.metadata.name.clone().unwrap(), run.metadata.uid.clone().unwrap());
        if *self.seen.entry(name.clone()).or_insert_with(|| uid.clone()) != uid {
            self.made_twice.push(name.clone());
        }
        if is_over(run) {
            self.active.remove(&name);
        } else {
            self.active.insert(name);
        }
        self.most_active = self.most_active.max(self.active.len());
    }
}

impl Quarter {
    async fn begin(seed: u64, policy: &str) -> Self {
        let beginning = "2026-02-01T00:00:00Z".parse().unwrap();
        let clock =
            Arc::new(SetClock { inner: TokioClock::starting_at(beginning), ahead: AtomicI64::new(0) });
        // A dozen watches with a bookmark every minute would be half of the work. One that is silent for two minutes is opened
        // anew, which costs more than a bookmark.
        let options = Options { bookmark_interval: Duration::from_secs(115), ..Options::default() };
        let mut cluster = ControlPlane::on(clock.clone(), options);
        // The node never answers, so that a run fails after some minutes, or hangs if it may not begin.
        cluster.make_node("node-1", json!({})).await;
        cluster.start_controller();
        // In a time zone whose clocks change twice a year.
        let spec = json!({"schedule": "0 * * * *", "timeZone": "America/New_York", "concurrencyPolicy": policy,
            "successfulJobsHistoryLimit": KEPT, "failedJobsHistoryLimit": KEPT});
        cluster.cron("v1beta1", "base", &spec).await;
        Self {
            witness: Witness::watch(&cluster),
            cluster,
            clock,
            random: StdRng::seed_from_u64(seed),
            is_forbidden: policy == "Forbid",
            is_alive: true,
            disturbed_at: tokio::time::Instant::now(),
        }
    }

    async fn cron(&self) -> AdvancedCronJob {
        self.cluster.crons().get("base").await.unwrap()
    }

    async fn edit(&self, patch: Value) {
        self.cluster.crons().patch("base", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    async fn runs(&self) -> Vec<ImageListPullJob> {
        self.cluster.lists().list(&ListParams::default()).await.unwrap().items
    }

    fn chance(&mut self, of: u32) -> bool {
        self.random.random_range(0..of) == 0
    }

    /// Causes one disturbance, or none.
    async fn disturb(&mut self) {
        match self.random.random_range(0..40) {
            0 => self.die(0).await,
            1 => {
                let away = self.random.random_range(1..9 * HOUR);
                self.die(away).await;
            }
            2 => self.die_at_a_write().await,
            3 => self.set_clock(-2 * 3600, 3 * 3600),
            4 => self.pause().await,
            5 => self.hang(0).await,
            6..=8 => self.hang(1).await,
            _ => return,
        }
        self.disturbed_at = tokio::time::Instant::now();
    }

    async fn die(&mut self, away: u64) {
        self.cluster.kill_controller().await;
        self.is_alive = false;
        self.cluster.pass(away).await;
        self.cluster.start_controller();
        self.is_alive = true;
    }

    /// The controller dies after one of its next writes, and another one starts.
    async fn die_at_a_write(&mut self) {
        self.cluster.kill_controller().await;
        let faults = Faults::none();
        faults.halt_after_writes(self.random.random_range(1..20));
        self.cluster.start_controller_that_dies(&faults);
    }

    fn set_clock(&mut self, least: i64, most: i64) {
        let by = self.random.random_range(least..most);
        self.clock.ahead.fetch_add(by, Ordering::Relaxed);
    }

    async fn pause(&mut self) {
        self.edit(json!({"spec": {"paused": true}})).await;
        let seconds = self.random.random_range(1..5 * HOUR);
        self.cluster.pass(seconds).await;
        self.edit(json!({"spec": {"paused": false}})).await;
    }

    /// With parallelism 0, further runs hang, and with 1 they end. Those that hang may be released.
    async fn hang(&mut self, parallelism: i32) {
        let list = json!({"imageListPullJobTemplate": {"spec": {"parallelism": parallelism}}});
        self.edit(json!({"spec": {"template": list}})).await;
        if parallelism == 0 || self.chance(2) {
            return;
        }
        for run in self.runs().await.iter().filter(|run| !is_over(run)) {
            let name = run.metadata.name.as_deref().unwrap();
            let patch = Patch::Merge(json!({"spec": {"parallelism": 1}}));
            self.cluster.lists().patch(name, &PatchParams::default(), &patch).await.unwrap();
        }
    }

    /// The invariants at any time.
    async fn check(&self) {
        let runs = self.runs().await;
        {
            let witness = self.witness.lock().unwrap();
            assert_eq!(witness.made_twice, Vec::<String>::new());
            assert!(!self.is_forbidden || witness.most_active <= 1, "{} runs at once", witness.most_active);
        }
        let (over, active): (Vec<_>, Vec<_>) = runs.iter().partition(|run| is_over(run));
        if self.is_alive && self.disturbed_at.elapsed() > ECHOES {
            assert!(over.len() <= KEPT, "{} runs are kept", over.len());
            assert!(active.len() <= 1, "an image list is replaced");
        }
    }

    /// Every time up to the last settled one had a run or was counted as skipped.
    async fn settle_accounts(&self) {
        let cron = self.cron().await;
        let schedule = timetable::read(&cron.spec).unwrap();
        let status = cron.status.unwrap_or_default();
        let skipped = status.skipped_runs.unwrap_or_default();
        let times =
            skipped.iter().map(|runs| runs.last_time.0).chain(status.last_schedule_time.map(|time| time.0));
        let settled = times.max().unwrap();
        let made = cron.metadata.creation_timestamp.unwrap().0;
        let next = |at: &Timestamp| schedule.next(*at);
        let due = std::iter::successors(schedule.next(made), next).take_while(|at| *at <= settled).count();
        let counted: i64 = skipped.iter().map(|runs| runs.count).sum();
        let happened = self.witness.lock().unwrap().seen.len();
        println!("{due} runs were due, {happened} happened, {skipped:?}");
        assert_eq!(due, happened + usize::try_from(counted).unwrap());
        assert!(happened > due / 3, "most of them happen");
        assert!(skipped.len() >= if self.is_forbidden { 3 } else { 2 }, "some do not, for every reason");
    }
}

fn is_over(run: &ImageListPullJob) -> bool {
    run.status.as_ref().is_some_and(|status| status.completion_time.is_some())
}

async fn quarter(number: u64, policy: &str) {
    let seed = prewarm_seed::first() + number;
    println!("seed {seed}, {policy}");
    let mut quarter = Quarter::begin(seed, policy).await;
    let start = tokio::time::Instant::now();
    while start.elapsed() < Duration::from_secs(DAYS * 24 * HOUR) {
        // Not exactly at the moment at which a run begins or ends.
        let seconds = quarter.random.random_range(15 * MINUTE..25 * MINUTE);
        quarter.cluster.pass(seconds).await;
        quarter.check().await;
        quarter.disturb().await;
    }
    // The faults end, and what is due happens.
    quarter.hang(1).await;
    quarter.cluster.pass(3 * HOUR).await;
    quarter.check().await;
    quarter.settle_accounts().await;
}

#[tokio::test(start_paused = true)]
async fn the_first_quarter_under_forbid() {
    quarter(1, "Forbid").await;
}

#[tokio::test(start_paused = true)]
async fn the_second_quarter_with_replacing() {
    quarter(2, "Replace").await;
}

#[tokio::test(start_paused = true)]
async fn the_third_quarter_under_forbid() {
    quarter(3, "Forbid").await;
}

#[tokio::test(start_paused = true)]
async fn the_fourth_quarter_with_replacing() {
    quarter(4, "Replace").await;
}
