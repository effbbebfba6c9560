//! The real watcher and controller of `kube-runtime` on the embedded server, for simulated days with random faults.
//!
//! Writers create, change and delete objects; followers mirror them with every way of listing; a controller reconciles
//! one kind. The server's history is short, so watches resume too late and start over. When faults and writers stop,
//! all of them must agree with the server, and then nothing writes.
//!
//! A failing seed is printed. `PREWARM_SEED=3 PREWARM_SEEDS=1 cargo test -p prewarm-embedded --test simulation` runs it
//! alone. Server, faults and writers repeat exactly; `kube-runtime` has some randomness of its own (jitter, the order
//! of its hash maps), so only invariants are asserted, and a rare failure may need a few runs to come back.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

#[path = "simulation/follower.rs"]
mod follower;
#[path = "simulation/operator.rs"]
mod operator;
#[path = "simulation/world.rs"]
mod world;
#[path = "simulation/writer.rs"]
mod writer;

use std::collections::BTreeMap;
use std::time::Duration;

use follower::Follower;
use kube::api::{DeleteParams, DynamicObject, PostParams};
use operator::Operator;
use prewarm_embedded::faults::{Action, FaultPlan, Faults, Filter, Rates, ScriptedFault, Verb};
use serde_json::json;
use world::{KINDS, WIDGET, World};

/// How many seeds run by default: two follow every kind in every way.
const SEEDS: u64 = 2;
/// How long faults and writers go on.
const DAYS: u32 = 2;
/// How many writers there are.
const WRITERS: u64 = 4;
/// How many changes of each kind the server remembers: fewer than a burst of the writers makes.
const HISTORY: usize = 6;
/// After this time without faults everyone must have caught up. The longest backoff is far shorter.
const SETTLING: Duration = Duration::from_hours(1);
/// How long nothing may happen after that.
const IDLE: Duration = Duration::from_hours(3);
/// How long one seed may take in real time. Five seconds are usual, but the machine may be busy.
const PATIENCE: Duration = Duration::from_mins(5);

const DAY: Duration = Duration::from_hours(24);

#[test]
fn watchers_and_a_controller_agree_with_the_server_after_days_of_faults() {
    let seeds: Vec<u64> = prewarm_seed::several(SEEDS).collect();
    let mut happened = BTreeMap::new();
    for seed in &seeds {
        let real = std::time::Instant::now();
        println!("seed {seed}: PREWARM_SEED={seed} PREWARM_SEEDS=1 repeats it");
        for (what, times) in paused(simulate(*seed)) {
            *happened.entry(what).or_insert(0) += times;
        }
        assert!(real.elapsed() < PATIENCE, "seed {seed} took {:?}", real.elapsed());
        println!("seed {seed}: {:?}", real.elapsed());
    }
    println!("{happened:#?}");
    if seeds.len() > 1 {
        // A simulation without any fault proves nothing.
        let all = [
            "answer-lost",
            "bookmark-withheld",
            "event-delayed",
            "internal-error",
            "refused",
            "stale",
            "too-many-requests",
            "watch-cut",
            "watch-expired",
        ];
        for what in all {
            assert!(happened.contains_key(what), "{what} never happened");
        }
    }
}

/// Runs under tokio's paused time, on one thread.
fn paused<T>(work: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_time().start_paused(true).build().unwrap().block_on(work)
}

fn rough(seed: u64, client: u64) -> Faults {
    let rates = Rates { watch_cut: 0.2, cut_after_events: 0..=30, ..Rates::rough() };
    let plan = FaultPlan::always(rates).quiet(DAY / 2..DAY / 2 + SETTLING).until(DAY * DAYS);
    Faults::new(plan, seed.wrapping_mul(1000) + client)
}

/// Simulates all days of a seed, and returns how often each fault occurred.
async fn simulate(seed: u64) -> BTreeMap<&'static str, u64> {
    let world = World::new(seed, HISTORY);
    let end = tokio::time::Instant::now() + DAY * DAYS;
    let auditor: Vec<Follower> = KINDS.iter().map(|kind| Follower::auditor(&world, kind)).collect();
    let followers: Vec<Follower> = KINDS
        .iter()
        .zip(0..)
        .flat_map(|(kind, number)| {
            Follower::several(&world, kind, seed + number, |way| rough(seed, 100 * number + way))
        })
        .collect();
    let operator = Operator::start(&world, rough(seed, 900));
    let writers: Vec<_> = (0..WRITERS)
        .map(|number| {
            tokio::spawn(writer::write(world.clone(), rough(seed, 500 + number), seed + 77 * number, end))
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    tokio::time::sleep_until(end + SETTLING).await;

    let before = (world.revision().await, operator.faults.writes());
    check(&world, &auditor, &followers, &operator).await;
    tokio::time::sleep(IDLE).await;
    check(&world, &auditor, &followers, &operator).await;
    assert_eq!((world.revision().await, operator.faults.writes()), before, "someone still writes");

    let mut happened = operator.faults.tally();
    for follower in &followers {
        follower.saw_nothing_that_never_was(&auditor);
        for (what, times) in follower.tally() {
            *happened.entry(what).or_insert(0) += times;
        }
    }
    happened
}

async fn check(world: &World, auditor: &[Follower], followers: &[Follower], operator: &Operator) {
    for follower in auditor.iter().chain(followers) {
        follower.check(world).await;
    }
    operator.check(world).await;
}

/// The operator makes a child of a widget that is gone, the server removes the child, and that wakes the operator
/// again. The clock must advance in such a circle, since the operator learns of the deletion only later.
#[test]
fn an_operator_with_a_late_watch_does_not_stop_the_clock() {
    paused(async {
        let world = World::new(0, 1000);
        let late = Action::DelayWatch(Duration::from_mins(1));
        let late = ScriptedFault::always(late).of(Filter::verb(Verb::Watch).of("widgets"));
        let operator = Operator::start(&world, Faults::scripted(vec![late]));
        tokio::time::sleep(Duration::from_secs(5)).await;
        let widgets = WIDGET.api(world.server.client());
        let widget = DynamicObject::new("late", &WIDGET.resource()).data(json!({"spec": {"value": "1"}}));
        widgets.create(&PostParams::default(), &widget).await.unwrap();
        tokio::time::sleep(Duration::from_secs(30)).await;
        widgets.delete("late", &DeleteParams::default()).await.unwrap();
        tokio::time::sleep(Duration::from_mins(10)).await;
        assert!(operator.faults.writes() > 1, "it has made the child again");
        operator.check(&world).await;
    });
}

#[test]
fn the_same_seed_makes_the_same_world() {
    let run = |seed| {
        paused(async move {
            let world = World::new(seed, HISTORY);
            let end = tokio::time::Instant::now() + DAY;
            let clients: Vec<_> = (0..WRITERS).map(|number| rough(seed, number)).collect();
            let writers: Vec<_> = clients
                .iter()
                .zip(0..)
                .map(|(faults, number)| {
                    tokio::spawn(writer::write(world.clone(), faults.clone(), number, end))
                })
                .collect();
            for writer in writers {
                writer.await.unwrap();
            }
            let journals = clients.iter().flat_map(Faults::journal).map(|entry| entry.to_string());
            (journals.collect::<Vec<_>>(), world.text().await)
        })
    };
    let (journal, text) = run(1);
    assert!(journal.len() > 1000 && text.len() > 1000, "the world is not empty");
    assert_eq!((journal, text), run(1));
    assert_ne!(run(1).1, run(2).1);
}
