//! Random specs, faults, crashes and outages over many seeds. Whatever happens, reliability S4, S6, S7, S10 and S11
//! hold, and once it is over everything ends and then nothing is written. A seed that fails is printed and can
//! be run alone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use prewarm_api::kruise::{FailureClass, ImageTagStatus, NodeImageStatus, PullPhase};
use prewarm_embedded::faults::{FaultPlan, Faults, Rates};
use prewarm_plan::agent::KEPT_PLACES;
use prewarm_runtime::Code;
use prewarm_runtime::fake::{Fake, Outcome};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};

use crate::node::{Node, image_of, owned, pass, policy, tag, version};

const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "absent"];
const STEPS: usize = 40;
const BACKOFF_LIMIT: usize = 3;
/// API faults end after this, counted from the start.
const CALM: Duration = Duration::from_mins(10);

#[tokio::test(start_paused = true)]
async fn whatever_happens_the_rules_hold_and_after_it_everything_ends_in_silence() {
    for seed in prewarm_seed::several(6) {
        println!("seed {seed}");
        World::new(seed).await.live().await;
    }
}

struct World {
    node: Node,
    random: Xoshiro256PlusPlus,
    /// The versions of what is asked.
    asked: BTreeMap<&'static str, i64>,
    /// How many versions of each were ever asked.
    rounds: BTreeMap<&'static str, i64>,
    kills: usize,
    seen: Arc<Mutex<Vec<NodeImageStatus>>>,
}

impl World {
    async fn new(seed: u64) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut node = Node::on(if random.random_bool(0.5) { Fake::new() } else { Fake::crio() });
        node.faults = Faults::new(FaultPlan::always(Rates::rough()).until(CALM), seed);
        node.config.parallel = random.random_range(1..4);
        for name in NAMES.iter().filter(|name| **name != "absent") {
            let takes = Duration::from_millis(random.random_range(0..20_000));
            let image = node.fake.image(&reference(name)).takes(takes);
            image.fails(random.random_range(0..3), Code::Unknown, "connection refused");
        }
        node.ask(json!({})).await;
        let (asked, rounds) = (BTreeMap::new(), BTreeMap::new());
        Self { node, random, asked, rounds, kills: 0, seen: Arc::default() }
    }

    async fn live(mut self) {
        let observer = tokio::spawn(observe(self.node.api(), self.seen.clone()));
        self.node.start();
        for _ in 0..STEPS {
            let calm = self.random.random_range(0.0..15.0);
            pass(calm).await;
            self.step().await;
        }
        self.become_calm().await;
        self.check_the_end().await;
        observer.abort();
        self.check_calls();
        check_monotone(&self.seen.lock().unwrap());
    }

    async fn step(&mut self) {
        match self.random.random_range(0..10) {
            0..=3 => self.ask_for_one().await,
            4 => self.withdraw_one().await,
            5 | 6 => {
                self.node.kill().await;
                self.kills += 1;
                // A request of the dead can be on its way for a second and a half; no process starts faster than that.
                pass(self.random.random_range(1.6..6.0)).await;
                self.node.start();
            }
            7 => {
                self.node.fake.stop();
                pass(self.random.random_range(0.0..30.0)).await;
                self.node.fake.start();
            }
            8 => {
                self.node.fake.freeze();
                pass(self.random.random_range(0.0..30.0)).await;
                self.node.fake.thaw();
            }
            _ => {
                let name = NAMES[self.random.random_range(0..NAMES.len())];
                self.node.fake.remove(&reference(name));
                self.node.clock.jump(self.random.random_range(-100..100));
            }
        }
    }

    /// Asks for an image, or for it once more.
    async fn ask_for_one(&mut self) {
        let name = NAMES[self.random.random_range(0..NAMES.len())];
        let round = self.rounds.entry(name).and_modify(|round| *round += 1).or_insert(0);
        self.asked.insert(name, *round);
        let entry = policy(tag("1"), &json!({ "backoffLimit": BACKOFF_LIMIT }));
        let entry = version(owned(entry, ["one", "other"][self.kills % 2]), *round);
        self.node.change(json!({ key(name): image_of(vec![entry]) })).await;
    }

    async fn withdraw_one(&mut self) {
        let Some(name) = self.asked.keys().next().copied() else { return };
        self.asked.remove(name);
        self.node.change(json!({ key(name): Value::Null })).await;
    }

    async fn become_calm(&mut self) {
        self.ask_for_one().await;
        self.node.faults.stop();
        tokio::time::sleep_until(self.node.born + CALM + Duration::from_mins(1)).await;
    }

    /// The promise: all that is asked ends, and then there is silence (reliability S7, S10).
    async fn check_the_end(&self) {
        let wanted = i32::try_from(self.asked.len()).unwrap();
        let status = self.node.settled(wanted).await;
        for (name, version) in &self.asked {
            let tag = crate::node::tag_of(&status, &key(name), "1").unwrap();
            // Whoever is pulled each time that the runtime is killed is taken for the reason.
            let is_failed = *name == "absent" || tag.failure_class == Some(FailureClass::RuntimeCrash);
            let end = if is_failed { PullPhase::Failed } else { PullPhase::Succeeded };
            assert_eq!((tag.phase, tag.version), (end, *version), "{name}: {tag:?}");
            assert!(
                tag.failure_class != Some(FailureClass::RuntimeCrash) || tag.interruptions >= 3,
                "{name}: {tag:?}"
            );
        }
        // A loss is reported within a minute, and events within ten.
        pass(1200.0).await;
        let silence = (self.node.faults.writes(), self.node.fake.calls().len());
        pass(3600.0).await;
        assert_eq!((self.node.faults.writes(), self.node.fake.calls().len()), silence);
    }

    fn check_calls(&self) {
        // reliability S4: never more at once than allowed, and of one image only one.
        let most = self.node.config.parallel + KEPT_PLACES;
        assert!(self.node.fake.most_at_once() <= most, "too many at once");
        for name in NAMES {
            let calls = self.node.fake.calls_of(&reference(name));
            for two in calls.windows(2) {
                assert!(
                    two[0].ended.is_some_and(|end| end <= two[1].started),
                    "{name} was pulled twice at once"
                );
            }
            // reliability S11: a killed agent may lose count of the attempt that it made last.
            let failed = calls.iter().filter(|call| call.outcome == Outcome::Failed).count();
            let rounds = self.rounds.get(name).map_or(0, |round| usize::try_from(*round).unwrap() + 1);
            assert!(
                failed <= rounds * (BACKOFF_LIMIT + 1) + self.kills,
                "{name}: {failed} in {rounds} rounds"
            );
        }
    }
}

fn key(name: &str) -> String {
    format!("reg-{name}.example/{name}")
}

fn reference(name: &str) -> String {
    format!("{}:1", key(name))
}

/// Writes down every state of the status.
async fn observe(api: kube::Api<prewarm_api::kruise::NodeImage>, seen: Arc<Mutex<Vec<NodeImageStatus>>>) {
    let mut events = watcher(api, watcher::Config::default()).boxed();
    while let Some(event) = events.next().await {
        if let Ok(Event::Apply(object) | Event::InitApply(object)) = event {
            seen.lock().unwrap().extend(object.status);
        }
    }
}

/// reliability S6: within a version a task only goes forward, its end stays as it is, and no older version comes back.
fn check_monotone(seen: &[NodeImageStatus]) {
    let mut last: BTreeMap<String, ImageTagStatus> = BTreeMap::new();
    let mut phases = BTreeSet::new();
    for status in seen {
        for (name, image) in status.image_statuses.iter().flatten() {
            let [tag] = image.tags.as_slice() else { panic!("{name} has one tag") };
            phases.insert(rank(tag.phase));
            let Some(before) = last.insert(name.clone(), tag.clone()) else { continue };
            assert!(before.version <= tag.version, "{name} went back to version {}", tag.version);
            if before.version < tag.version {
                continue;
            }
            assert!(rank(before.phase) <= rank(tag.phase), "{name} went from {before:?} to {tag:?}");
            assert!(before.failed_attempts <= tag.failed_attempts, "{name} forgot failures");
            if rank(before.phase) == 2 {
                let end =
                    |tag: &ImageTagStatus| (tag.phase, tag.completion_time.clone(), tag.message.clone());
                assert_eq!(end(&before), end(tag), "{name} ended twice");
            }
        }
    }
    assert!(phases.contains(&2), "something was seen to end");
}

fn rank(phase: PullPhase) -> u8 {
    match phase {
        PullPhase::Waiting => 0,
        PullPhase::Pulling => 1,
        PullPhase::Succeeded | PullPhase::Failed => 2,
    }
}
