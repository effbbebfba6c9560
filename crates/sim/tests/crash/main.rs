//! What happens when a process dies, or an answer is lost, at any single write: the cluster ends as if nothing had
//! happened, nothing is pulled twice because of it, and then nobody writes.
//!
//! Each scenario is played once without faults. It is played again for every write that the controller made in it, and
//! for every write that the agent of one node made.

use std::time::Duration;

use futures::future::LocalBoxFuture;
use prewarm_embedded::faults::{Action, Faults, Filter, ScriptedFault};
use prewarm_sim::Cluster;

mod end;
mod scenarios;

use end::End;
use scenarios::SCENARIOS;

/// How long a settled cluster is watched for writes.
const IDLE: Duration = Duration::from_mins(2);
/// How long the last echoes of a scenario may take.
const ECHOES: Duration = Duration::from_secs(40);

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
    Agent,
}

/// Plays a scenario. Returns how the cluster ends, and how many writes the victim made.
async fn play(scenario: &Scenario, victim: Victim, faults: Faults) -> (End, u64) {
    let mut cluster = Cluster::new();
    for (image, milliseconds) in scenario.images {
        cluster.publish(image, Duration::from_millis(*milliseconds));
    }
    cluster.add_nodes(scenario.nodes).await;
    match victim {
        Victim::Controller => cluster.start_controller_that_dies(&faults),
        Victim::Agent => {
            let node = cluster.nodes.get_mut("node-1").expect("every scenario has a node");
            node.kill().await;
            node.start_one_that_dies(&faults);
            cluster.start_controller();
        }
    }
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
    assert_eq!(
        writes(&cluster),
        before,
        "{}: an idle cluster writes: {:#?}",
        scenario.name,
        cluster.faults.journal()
    );
    (end, faults.writes())
}

/// Waits until every node is known to jobs: a job that ends before has fewer nodes, and rightly so.
async fn known(cluster: &Cluster) {
    for node in cluster.nodes.keys() {
        cluster.node_image_within(600, node, |image| image.is_some()).await;
    }
}

/// Plays a scenario with a fault at each write of the victim, and compares the ends.
async fn at_every_write(victim: Victim, fault: impl Fn(u64) -> Faults) {
    let mut played = 0;
    for scenario in SCENARIOS {
        let (clean, writes) = play(scenario, victim, Faults::none()).await;
        assert!(writes > 0, "{}: there was nothing to disturb", scenario.name);
        for write in 1..=writes {
            let (end, _) = play(scenario, victim, fault(write)).await;
            assert_eq!(end, clean, "{}: with a fault at write {write} of {writes}", scenario.name);
            played += 1;
        }
        println!("{}: the same after a fault at each of {writes} writes", scenario.name);
    }
    println!("counted: {played} plays of {} scenarios", SCENARIOS.len());
}

fn death(write: u64) -> Faults {
    let faults = Faults::none();
    faults.halt_after_writes(write);
    faults
}

fn lost_answer(write: u64) -> Faults {
    Faults::scripted(vec![ScriptedFault::at(write, Action::AnswerLost).of(Filter::writes())])
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_dies_after_any_write_changes_nothing() {
    at_every_write(Victim::Controller, death).await;
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_dies_after_any_write_changes_nothing() {
    at_every_write(Victim::Agent, death).await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_to_any_write_of_an_agent_changes_nothing() {
    at_every_write(Victim::Agent, lost_answer).await;
}
