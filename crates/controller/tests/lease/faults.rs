//! Servers and connections that fail.

use std::time::Duration;

use prewarm_controller::lease::Loss;
use prewarm_embedded::faults::{Action, FaultPlan, Faults, Filter, Rates, ScriptedFault, Verb};

use crate::world::World;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn away() -> Rates {
    Rates { refused: 1.0, ..Rates::default() }
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_reach_the_server_stops_before_another_begins() {
    let mut world = World::new();
    let plan = FaultPlan::always(away()).quiet(Duration::ZERO..seconds(30));
    world.start_on("a", &Faults::new(plan, 0));
    world.pass(0.1).await;
    world.start("b");
    world.pass(30.0).await;
    assert_eq!(world.leader().as_deref(), Some("a"));
    assert_eq!(world.take("a").lost().await, Loss::Expired);
    let stopped = world.born.elapsed().as_secs_f64();
    assert!((37.9..40.1).contains(&stopped), "ten seconds after the last renewal: {stopped}");
    assert_eq!(world.leader(), None);
    let (next, _) = world.elect().await;
    let elected = world.born.elapsed().as_secs_f64();
    assert_eq!(next, "b");
    assert!((43.0..48.0).contains(&elected), "{elected}");
}

#[tokio::test(start_paused = true)]
async fn an_outage_shorter_than_the_deadline_changes_nothing() {
    let mut world = World::new();
    let plan = FaultPlan::always(away()).quiet(Duration::ZERO..seconds(30)).until(seconds(36));
    let faults = Faults::new(plan, 0);
    world.start_on("a", &faults);
    world.pass(0.1).await;
    world.start_on("b", &faults);
    world.pass(100.0).await;
    assert_eq!((world.leader().as_deref(), world.transitions().await), (Some("a"), 1));
}

#[tokio::test(start_paused = true)]
async fn a_long_outage_ends_all_leading_until_twenty_seconds_after_it_at_most() {
    let mut world = World::new();
    let plan = FaultPlan::always(away()).quiet(Duration::ZERO..seconds(30)).until(seconds(300));
    let faults = Faults::new(plan, 0);
    world.start_on("a", &faults);
    world.pass(0.1).await;
    world.start_on("b", &faults);
    world.pass(41.0).await;
    assert_eq!(world.leader(), None);
    assert_eq!(world.take("a").lost().await, Loss::Expired);
    world.pass(250.0).await;
    assert_eq!(world.leader(), None);
    let (next, _) = world.elect().await;
    let elected = world.born.elapsed().as_secs_f64();
    assert_eq!(next, "b");
    assert!(elected < 320.0, "{elected}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_is_as_good_as_none() {
    let mut world = World::new();
    let silent = Rates { latency: seconds(3600)..=seconds(3600), ..Rates::default() };
    let plan = FaultPlan::always(silent).quiet(Duration::ZERO..seconds(30));
    world.start_on("a", &Faults::new(plan, 0));
    world.pass(0.1).await;
    world.start("b");
    world.pass(31.0).await;
    assert_eq!(world.take("a").lost().await, Loss::Expired);
    assert!(world.born.elapsed() < Duration::from_millis(40_100));
    assert_eq!(world.elect().await.0, "b");
}

#[tokio::test(start_paused = true)]
async fn a_slow_server_does_not_end_a_leaders_time() {
    let mut world = World::new();
    let slow = Rates { latency: seconds(2)..=seconds(3), ..Rates::default() };
    let faults = Faults::new(FaultPlan::always(slow), 0);
    world.start_on("a", &faults);
    world.pass(10.0).await;
    world.start_on("b", &faults);
    world.pass(600.0).await;
    assert_eq!((world.leader().as_deref(), world.transitions().await), (Some("a"), 1));
}

#[tokio::test(start_paused = true)]
async fn a_lease_whose_taking_was_never_answered_is_taken_all_the_same() {
    for (verb, mut world) in [(Verb::Update, World::new()), (Verb::Create, World::without_lease())] {
        let lost = ScriptedFault::at(1, Action::AnswerLost).of(Filter::verb(verb));
        world.start_on("a", &Faults::scripted(vec![lost]));
        let (leader, waited) = world.elect().await;
        assert_eq!(leader, "a");
        assert!(waited < 20.0, "{waited}");
        world.start("b");
        world.pass(60.0).await;
        assert_eq!(world.leader().as_deref(), Some("a"));
        assert_eq!(world.transitions().await, 1, "it was taken once");
    }
}

#[tokio::test(start_paused = true)]
async fn renewals_without_an_answer_collide_with_nobody() {
    let mut world = World::new();
    let script = [3, 4, 9, 10, 11, 30]
        .map(|at| ScriptedFault::at(at, Action::AnswerLost).of(Filter::verb(Verb::Update)));
    world.start_on("a", &Faults::scripted(script.into()));
    world.pass(0.1).await;
    world.start("b");
    world.pass(200.0).await;
    assert_eq!((world.leader().as_deref(), world.transitions().await), (Some("a"), 1));
}

#[tokio::test(start_paused = true)]
async fn a_process_killed_right_after_it_took_the_lease_holds_others_up_until_it_expires() {
    let mut world = World::new();
    let faults = Faults::none();
    faults.halt_after_writes(1);
    world.start_on("a", &faults);
    faults.halted().await;
    world.take("a").kill().await;
    world.start("b");
    let (leader, waited) = world.elect().await;
    assert_eq!(leader, "b");
    assert!((15.0..17.1).contains(&waited), "{waited}");
}

#[tokio::test(start_paused = true)]
async fn a_process_that_stops_before_it_heard_that_it_leads_releases_the_lease() {
    let mut world = World::new();
    let lost = ScriptedFault::at(1, Action::AnswerLost).of(Filter::verb(Verb::Update));
    world.start_on("a", &Faults::scripted(vec![lost]));
    world.pass(0.5).await;
    assert_eq!(world.leader(), None);
    world.take("a").stop().await;
    world.start("b");
    let (leader, waited) = world.elect().await;
    assert_eq!(leader, "b");
    assert!(waited < 0.1, "{waited}");
}

#[tokio::test(start_paused = true)]
async fn a_release_is_tried_again_and_given_up_after_a_while() {
    for (fault, least, most) in [(3, 0.0, 2.1), (1000, 7.5, 15.0)] {
        let mut world = World::new();
        let plan = FaultPlan::always(away()).quiet(Duration::ZERO..seconds(10));
        let plan = plan.until(seconds(10) + Duration::from_millis(250 * fault));
        world.start_on("a", &Faults::new(plan, 0));
        world.pass(0.1).await;
        world.start("b");
        world.pass(9.95).await;
        assert_eq!(world.leader().as_deref(), Some("a"));
        world.take("a").stop().await;
        let stopped = world.born.elapsed().as_secs_f64();
        assert!(stopped < 15.1, "{stopped}");
        let (_, waited) = world.elect().await;
        assert!((least..most).contains(&waited), "{fault}: {waited}");
    }
}

#[tokio::test(start_paused = true)]
async fn somebody_without_permission_waits_and_hears_why_only_once() {
    let mut world = World::new();
    let plan = FaultPlan::always(Rates { internal_error: 1.0, ..Rates::default() }).until(seconds(60));
    world.start_on("a", &Faults::new(plan, 0));
    world.pass(59.0).await;
    assert_eq!(world.leader(), None);
    assert_eq!(world.elect().await.0, "a");
}
