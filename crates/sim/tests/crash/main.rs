//! What happens when a process dies, or an answer is lost, at any single write: the cluster ends as if nothing had
//! happened, nothing is pulled twice because of it, and then nobody writes.
//!
//! Each scenario is played once without faults. It is played again for every write that the controller made in it, and
//! for every write that the agent of one node made.

use std::time::Duration;

use futures::future::LocalBoxFuture;
use prewarm_embedded::Options;
use prewarm_embedded::faults::{Action, Cut, FaultPlan, Faults, Filter, Rates, Rule, ScriptedFault, Verb};
use prewarm_sim::{Cluster, Fall};

mod broadcasts;
mod crons;
mod end;
mod scenarios;

use broadcasts::BROADCASTS;
use crons::CRONS;
use end::End;
use scenarios::SCENARIOS;

/// How long a settled cluster is watched for writes.
const IDLE: Duration = Duration::from_mins(2);
/// How long the last echoes of a scenario may take.
const ECHOES: Duration = Duration::from_secs(40);

/// Names a part of the stories to play, for whoever looks for a mistake in one of them.
const STORY: &str = "PREWARM_STORY";
/// Asks for the stories that are played while somebody writes: one for each kind of thing that goes wrong.
const FAST: &str = "PREWARM_FAST";
const FAST_STORIES: [&str; 3] =
    ["a private image", "a pod on every node", "a scheduled list that is replaced by the next"];

/// One story: what is there, and what happens.
pub struct Scenario {
    name: &'static str,
    nodes: usize,
    images: &'static [(&'static str, u64)],
    play: for<'a> fn(&'a mut Cluster) -> LocalBoxFuture<'a, ()>,
}

/// Whom faults happen to.
#[derive(Clone, Copy)]
enum Victim {
    Controller,
    /// The first of two controllers that share a Lease.
    Leader,
    /// The same, and it is told to stop after so many writes.
    StoppedLeader(u64),
    Agent,
}

impl Victim {
    /// The stories in which it writes, or those of them that [`STORY`] asks for.
    fn scenarios(self) -> Vec<&'static Scenario> {
        let wanted = std::env::var(STORY).unwrap_or_default();
        let is_fast = std::env::var_os(FAST).is_some();
        let mut all = self.all_scenarios();
        all.retain(|scenario| scenario.name.contains(&wanted));
        all.retain(|scenario| !is_fast || FAST_STORIES.contains(&scenario.name));
        all
    }

    fn all_scenarios(self) -> Vec<&'static Scenario> {
        match self {
            Self::Agent => SCENARIOS.iter().collect(),
            Self::Controller | Self::Leader | Self::StoppedLeader(_) => {
                SCENARIOS.iter().chain(BROADCASTS).chain(CRONS).collect()
            }
        }
    }
}

/// Plays a scenario. Returns how the cluster ends, and how many writes the victim made.
async fn play(scenario: &Scenario, victim: Victim, faults: Faults) -> (End, u64) {
    play_on(Options::default(), scenario, victim, faults).await
}

async fn play_on(options: Options, scenario: &Scenario, victim: Victim, faults: Faults) -> (End, u64) {
    let mut cluster = Cluster::with(options);
    for (image, milliseconds) in scenario.images {
        cluster.publish(image, Duration::from_millis(*milliseconds));
    }
    cluster.add_nodes(scenario.nodes).await;
    start(&mut cluster, victim, &faults).await;
    known(&cluster).await;
    (scenario.play)(&mut cluster).await;
    tokio::time::sleep(ECHOES).await;
    let end = End::of(&cluster).await;
    let writes = |cluster: &Cluster| {
        let agents: u64 = cluster.nodes.values().map(|node| node.faults.writes()).sum();
        cluster.faults.writes() + agents + faults.writes()
    };
    let before = writes(&cluster);
    tokio::time::sleep(IDLE).await;
    let later = End::of(&cluster).await;
    let name = scenario.name;
    assert_eq!(
        writes(&cluster),
        before,
        "{name}: an idle cluster writes: it was {end:#?}, now it is {later:#?}"
    );
    (end, faults.writes())
}

async fn start(cluster: &mut Cluster, victim: Victim, faults: &Faults) {
    match victim {
        Victim::Controller => cluster.start_controller_that_dies(faults),
        Victim::Leader => {
            let faults = faults.clone();
            cluster.start_two_controllers(&faults.clone(), Fall::Death, async move { faults.halted().await });
        }
        Victim::StoppedLeader(writes) => {
            let faults = faults.clone();
            cluster.start_two_controllers(&faults.clone(), Fall::Stop, async move {
                faults.wrote(writes).await;
            });
        }
        Victim::Agent => {
            let node = cluster.nodes.get_mut("node-1").expect("every scenario has a node");
            node.kill().await;
            node.start_one_that_dies(faults);
            cluster.start_controller();
        }
    }
}

/// Waits until every node is known to jobs: a job that ends before has fewer nodes, and rightly so.
async fn known(cluster: &Cluster) {
    for node in cluster.nodes.keys() {
        cluster.node_image_within(600, node, |image| image.is_some()).await;
    }
}

/// Plays every scenario with a fault at each write of the victim, and compares the ends.
async fn at_every_write(victim: Victim, fault: impl Fn(u64) -> Faults) {
    at_each_of_its_writes(victim, |write| (victim, fault(write))).await;
}

async fn at_each_of_its_writes(victim: Victim, disturb: impl Fn(u64) -> (Victim, Faults)) {
    let mut played = 0;
    let scenarios = victim.scenarios();
    for scenario in &scenarios {
        let (clean, writes) = play(scenario, victim, Faults::none()).await;
        assert!(writes > 0, "{}: there was nothing to disturb", scenario.name);
        for write in 1..=writes {
            let (victim, faults) = disturb(write);
            let (end, _) = play(scenario, victim, faults).await;
            assert_eq!(end, clean, "{}: with a fault at write {write} of {writes}", scenario.name);
            played += 1;
        }
        println!("{}: the same after a fault at each of {writes} writes", scenario.name);
    }
    println!("counted: {played} plays of {} scenarios", scenarios.len());
}

/// Plays every scenario with these faults, and compares the ends.
async fn throughout(what: &str, options: Options, faults: impl Fn(u64) -> Faults) {
    let scenarios = Victim::Controller.scenarios();
    for (seed, scenario) in (prewarm_seed::first()..).zip(&scenarios) {
        let (clean, _) = play(scenario, Victim::Controller, Faults::none()).await;
        let (end, _) = play_on(options.clone(), scenario, Victim::Controller, faults(seed)).await;
        assert_eq!(end, clean, "{}: with {what}", scenario.name);
    }
    println!("counted: {} scenarios with {what}", scenarios.len());
}

#[test]
fn the_stories_of_a_fast_run_exist() {
    let all = Victim::Controller.all_scenarios();
    for name in FAST_STORIES {
        assert!(all.iter().any(|scenario| scenario.name == name), "there is no story {name:?}");
    }
}

fn death(write: u64) -> Faults {
    let faults = Faults::none();
    faults.halt_after_writes(write);
    faults
}

/// This happens to the write of this number.
fn single(write: u64, action: Action) -> Faults {
    Faults::scripted(vec![ScriptedFault::at(write, action).of(Filter::writes())])
}

/// This happens to every watch.
fn watches(action: Action) -> Faults {
    Faults::scripted(vec![ScriptedFault::always(action).of(Filter::verb(Verb::Watch))])
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_dies_after_any_write_changes_nothing() {
    at_every_write(Victim::Controller, death).await;
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_dies_after_any_write_is_followed_by_the_next_one() {
    at_every_write(Victim::Leader, death).await;
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_stops_after_any_write_is_followed_by_the_next_one() {
    at_each_of_its_writes(Victim::Leader, |write| (Victim::StoppedLeader(write), Faults::none())).await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_to_any_write_of_the_controller_changes_nothing() {
    at_every_write(Victim::Controller, |write| single(write, Action::AnswerLost)).await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_write_of_the_controller_changes_nothing() {
    at_every_write(Victim::Controller, |write| single(write, Action::InternalError)).await;
}

#[tokio::test(start_paused = true)]
async fn a_conflict_at_any_write_of_the_controller_changes_nothing() {
    at_every_write(Victim::Controller, |write| single(write, Action::Conflict)).await;
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_dies_after_any_write_changes_nothing() {
    at_every_write(Victim::Agent, death).await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_to_any_write_of_an_agent_changes_nothing() {
    at_every_write(Victim::Agent, |write| single(write, Action::AnswerLost)).await;
}

#[tokio::test(start_paused = true)]
async fn watches_that_break_change_nothing() {
    for after in [1, 2, 5] {
        let cut = Action::CutWatch(after, Cut::Broken);
        throughout("watches that break", Options::default(), |_| watches(cut)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn watches_that_lag_change_nothing() {
    let late = Action::DelayWatch(Duration::from_secs(3));
    throughout("watches that lag", Options::default(), |_| watches(late)).await;
}

/// A server that remembers next to nothing answers watches with 410, so that everything is listed again and again.
#[tokio::test(start_paused = true)]
async fn lists_instead_of_watches_change_nothing() {
    let rates = Rates {
        watch_cut: 1.0,
        cut_after_events: 0..=3,
        cut_after: Duration::from_secs(1)..=Duration::from_secs(5),
        ..Rates::default()
    };
    let plan = FaultPlan {
        rules: vec![Rule { applies_to: Filter::verb(Verb::Watch), rates }],
        ..FaultPlan::default()
    };
    let forgetful = Options { history_changes: 1, ..Options::default() };
    throughout("a server that forgets", forgetful, |seed| Faults::new(plan.clone(), seed)).await;
}
