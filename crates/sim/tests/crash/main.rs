//! What happens when a process dies, or an answer is lost, at any single write: the cluster ends as if nothing had
//! happened, nothing is pulled twice because of it, and then nobody writes.
//!
//! Each scenario is played once without faults. At every write that the controller makes in it, or the agent of one node, a
//! branch begins in which the fault happens, and is played to its end as well.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use futures::future::LocalBoxFuture;
use prewarm_embedded::Options;
use prewarm_embedded::faults::{Action, Cut, FaultPlan, Faults, Filter, Rates, Rule, ScriptedFault, Verb};
use prewarm_plan::cluster::Settings;
use prewarm_plan::cluster::journal::{Entry, replay};
use prewarm_sim::{Cluster, Fall, on_paused_time};
use tokio::sync::{Notify, mpsc};

mod branch;
mod broadcasts;
mod crons;
mod definitions;
mod end;
mod harness;
mod prefetches;
mod scenarios;

use branch::Branches;
use broadcasts::BROADCASTS;
use crons::CRONS;
use end::End;
use prefetches::PREFETCHES;
use scenarios::SCENARIOS;

/// How long a settled cluster is watched for writes.
const IDLE: Duration = Duration::from_mins(2);
/// How long the last echoes of a scenario may take.
const ECHOES: Duration = Duration::from_secs(40);

/// Names a part of the stories to play, for whoever looks for a mistake in one of them.
const STORY: &str = "PREWARM_STORY";
/// Asks for the stories that are played while somebody writes: one for each kind of thing that goes wrong.
const FAST: &str = "PREWARM_FAST";
const FAST_STORIES: [&str; 4] = [
    "a private image",
    "a pod on every node",
    "a scheduled list that is replaced by the next",
    "a private image on all nodes, wave by wave",
];

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
    /// The first of two controllers that share a Lease, and how it ends if it does.
    Leader(Fall),
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
            Self::Agent => SCENARIOS.iter().chain(PREFETCHES).collect(),
            Self::Controller | Self::Leader(_) => {
                SCENARIOS.iter().chain(BROADCASTS).chain(CRONS).chain(PREFETCHES).collect()
            }
        }
    }
}

/// What happens at a write, in the branch that begins there.
#[derive(Clone, Copy)]
enum Disturbance {
    /// The victim dies right after it.
    Death,
    /// The victim is told to stop right after it.
    Stop,
    /// This happens to the write itself.
    Failure(Action),
}

/// Who is disturbed, and how.
struct Trouble {
    victim: Victim,
    faults: Faults,
    /// Tells the victim to stop.
    stop: Arc<Notify>,
    /// Where controllers write down what they observe and decide.
    journal: Option<mpsc::UnboundedSender<Entry>>,
}

impl Trouble {
    fn of(victim: Victim, faults: Faults) -> Self {
        Self { victim, faults, stop: Arc::default(), journal: None }
    }

    /// None in the trunk; in each branch, at the write at which it begins.
    fn at_every_write(victim: Victim, disturbance: Disturbance, branches: &Branches) -> Self {
        let trouble = Self::of(victim, Faults::none());
        let branches = branches.clone();
        match disturbance {
            Disturbance::Death => trouble.faults.halt_when(move |write| branches.begin(write)),
            Disturbance::Stop => {
                let stop = trouble.stop.clone();
                trouble.faults.halt_when(move |write| {
                    if branches.begin(write) {
                        stop.notify_one();
                    }
                    false
                });
            }
            Disturbance::Failure(action) => {
                let failure = ScriptedFault::when(move |write| branches.begin(write), action);
                trouble.faults.add(failure.of(Filter::writes()));
            }
        }
        trouble
    }

    async fn start(&self, cluster: &mut Cluster) {
        let faults = self.faults.clone();
        cluster.journal.clone_from(&self.journal);
        match self.victim {
            Victim::Controller => cluster.start_controller_that_dies(&faults),
            Victim::Leader(Fall::Death) => {
                let falls = async move { faults.halted().await };
                cluster.start_two_controllers(&self.faults, Fall::Death, Box::pin(falls));
            }
            Victim::Leader(Fall::Stop) => {
                let stop = self.stop.clone();
                let falls = async move { stop.notified().await };
                cluster.start_two_controllers(&faults, Fall::Stop, Box::pin(falls));
            }
            Victim::Agent => {
                let node = cluster.nodes.get_mut("node-1").expect("every scenario has a node");
                node.kill().await;
                node.start_one_that_dies(&faults);
                cluster.start_controller();
            }
        }
    }
}

/// Plays a scenario. Returns how the cluster ends.
async fn play(scenario: &Scenario, trouble: Trouble) -> String {
    play_on(Options::default(), scenario, trouble).await
}

async fn play_on(options: Options, scenario: &Scenario, trouble: Trouble) -> String {
    let mut cluster = Cluster::with(options);
    for (image, milliseconds) in scenario.images {
        cluster.publish(image, Duration::from_millis(*milliseconds));
    }
    cluster.add_nodes(scenario.nodes).await;
    trouble.start(&mut cluster).await;
    known(&cluster).await;
    (scenario.play)(&mut cluster).await;
    tokio::time::sleep(ECHOES).await;
    let end = End::of(&cluster).await;
    let writes = |cluster: &Cluster| {
        let agents: u64 = cluster.nodes.values().map(|node| node.faults.writes()).sum();
        cluster.faults.writes() + agents + trouble.faults.writes()
    };
    let before = writes(&cluster);
    tokio::time::sleep(IDLE).await;
    if writes(&cluster) != before {
        let later = End::of(&cluster).await;
        panic!("{}: an idle cluster writes: it was {end:#?}, now it is {later:#?}", scenario.name);
    }
    format!("{end:#?}")
}

/// Waits until every node is known to jobs: a job that ends before has fewer nodes, and rightly so.
async fn known(cluster: &Cluster) {
    for node in cluster.nodes.keys() {
        cluster.node_image_within(600, node, |image| image.is_some()).await;
    }
}

/// Plays every scenario with a fault at each write of the victim, and compares the ends.
fn at_every_write(victim: Victim, disturbance: Disturbance) -> Vec<String> {
    let mut lines = Vec::new();
    let mut played = 0;
    let scenarios = victim.scenarios();
    for scenario in &scenarios {
        let branches = Branches::default();
        let (clean, ends) = branches.play(|| {
            on_paused_time(async {
                let end = play(scenario, Trouble::at_every_write(victim, disturbance, &branches)).await;
                branches.end(&end);
                end
            })
        });
        let writes = ends.len();
        assert!(writes > 0, "{}: there was nothing to disturb", scenario.name);
        for (write, end) in ends {
            let end = end.unwrap_or_else(|panic| panic);
            let name = scenario.name;
            assert!(
                end == clean,
                "{name}: with a fault at write {write} of {writes}: {end}\nwithout: {clean}"
            );
        }
        played += writes;
        lines.push(format!("{}: the same after a fault at each of {writes} writes", scenario.name));
    }
    lines.push(format!("counted: {played} plays of {} scenarios", scenarios.len()));
    lines
}

/// Plays every scenario with these faults, and compares the ends.
fn throughout(what: &str, options: &Options, faults: impl Fn(u64) -> Faults) -> Vec<String> {
    let scenarios = Victim::Controller.scenarios();
    let branches = Branches::default();
    let (_, ends) = branches.play(|| {
        for (seed, scenario) in (prewarm_seed::first()..).zip(&scenarios) {
            if branches.begin(seed) {
                return on_paused_time(async {
                    let clean = play(scenario, Trouble::of(Victim::Controller, Faults::none())).await;
                    let trouble = Trouble::of(Victim::Controller, faults(seed));
                    let end = play_on(options.clone(), scenario, trouble).await;
                    assert!(end == clean, "{}: with {what}: {end}\nwithout: {clean}", scenario.name);
                    end
                });
            }
        }
        String::new()
    });
    for (seed, end) in ends {
        end.unwrap_or_else(|panic| panic!("seed {seed}: {panic}"));
    }
    vec![format!("counted: {} scenarios with {what}", scenarios.len())]
}

/// This happens to every watch.
fn watches(action: Action) -> Faults {
    Faults::scripted(vec![ScriptedFault::always(action).of(Filter::verb(Verb::Watch))])
}

/// Gives this suite its `main`.
macro_rules! tests {
    ($($test:ident)+) => {
        fn main() -> ExitCode {
            harness::run(&[$((stringify!($test), $test)),+])
        }
    };
}

tests! {
    the_stories_of_a_fast_run_exist
    a_controller_that_dies_after_any_write_changes_nothing
    a_leader_that_dies_after_any_write_is_followed_by_the_next_one
    a_leader_that_stops_after_any_write_is_followed_by_the_next_one
    a_lost_answer_to_any_write_of_the_controller_changes_nothing
    a_failed_write_of_the_controller_changes_nothing
    a_conflict_at_any_write_of_the_controller_changes_nothing
    an_agent_that_dies_after_any_write_changes_nothing
    a_lost_answer_to_any_write_of_an_agent_changes_nothing
    what_controllers_observed_gives_the_same_commands_again
    watches_that_break_change_nothing
    watches_that_lag_change_nothing
    lists_instead_of_watches_change_nothing
    definitions_that_lack_a_field_cost_hardly_a_write_more
}

fn the_stories_of_a_fast_run_exist() -> Vec<String> {
    let all = Victim::Controller.all_scenarios();
    for name in FAST_STORIES {
        assert!(all.iter().any(|scenario| scenario.name == name), "there is no story {name:?}");
    }
    Vec::new()
}

fn a_controller_that_dies_after_any_write_changes_nothing() -> Vec<String> {
    at_every_write(Victim::Controller, Disturbance::Death)
}

fn a_leader_that_dies_after_any_write_is_followed_by_the_next_one() -> Vec<String> {
    at_every_write(Victim::Leader(Fall::Death), Disturbance::Death)
}

fn a_leader_that_stops_after_any_write_is_followed_by_the_next_one() -> Vec<String> {
    at_every_write(Victim::Leader(Fall::Stop), Disturbance::Stop)
}

fn a_lost_answer_to_any_write_of_the_controller_changes_nothing() -> Vec<String> {
    at_every_write(Victim::Controller, Disturbance::Failure(Action::AnswerLost))
}

fn a_failed_write_of_the_controller_changes_nothing() -> Vec<String> {
    at_every_write(Victim::Controller, Disturbance::Failure(Action::InternalError))
}

fn a_conflict_at_any_write_of_the_controller_changes_nothing() -> Vec<String> {
    at_every_write(Victim::Controller, Disturbance::Failure(Action::Conflict))
}

fn an_agent_that_dies_after_any_write_changes_nothing() -> Vec<String> {
    at_every_write(Victim::Agent, Disturbance::Death)
}

fn a_lost_answer_to_any_write_of_an_agent_changes_nothing() -> Vec<String> {
    at_every_write(Victim::Agent, Disturbance::Failure(Action::AnswerLost))
}

/// Nothing that decides is hidden from the journal: not a clock, not a random number, not the order of a map.
fn what_controllers_observed_gives_the_same_commands_again() -> Vec<String> {
    let scenarios = Victim::Controller.scenarios();
    let branches = Branches::default();
    let (_, ends) = branches.play(|| {
        for (number, scenario) in (1..).zip(&scenarios) {
            if branches.begin(number) {
                return on_paused_time(async {
                    let (sender, mut entries) = mpsc::unbounded_channel();
                    // A controller that dies halfway is followed by one that begins anew, in the same journal.
                    let faults = Faults::none();
                    faults.halt_when(|write| write == 3);
                    let trouble =
                        Trouble { journal: Some(sender), ..Trouble::of(Victim::Controller, faults) };
                    play(scenario, trouble).await;
                    let mut journal = Vec::new();
                    while let Ok(entry) = entries.try_recv() {
                        journal.push(entry);
                    }
                    let commands = replay(&Settings::default(), journal);
                    let commands = commands.unwrap_or_else(|wrong| panic!("{}: {wrong}", scenario.name));
                    assert!(commands > 0, "{}: nothing was decided", scenario.name);
                    commands.to_string()
                });
            }
        }
        String::new()
    });
    let counts = ends.into_iter().map(|(number, end)| {
        let commands = end.unwrap_or_else(|panic| panic!("scenario {number}: {panic}"));
        commands.parse::<usize>().expect("it is the number of commands")
    });
    let commands: usize = counts.sum();
    vec![format!("counted: {commands} commands of {} scenarios, replayed", scenarios.len())]
}

fn watches_that_break_change_nothing() -> Vec<String> {
    let broken = [1, 2, 5].map(|after| Action::CutWatch(after, Cut::Broken));
    let play = |cut| throughout("watches that break", &Options::default(), |_| watches(cut));
    broken.into_iter().flat_map(play).collect()
}

fn watches_that_lag_change_nothing() -> Vec<String> {
    let late = Action::DelayWatch(Duration::from_secs(3));
    throughout("watches that lag", &Options::default(), |_| watches(late))
}

/// A server that remembers next to nothing answers watches with 410, so that everything is listed again and again.
fn lists_instead_of_watches_change_nothing() -> Vec<String> {
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
    throughout("a server that forgets", &forgetful, |seed| Faults::new(plan.clone(), seed))
}

/// Definitions older or newer than the program drop what they do not know.
fn definitions_that_lack_a_field_cost_hardly_a_write_more() -> Vec<String> {
    definitions::lacking_a_field()
}
