//! The usual life: one leads, the others wait, and one of them goes on when it is gone.

use prewarm_controller::lease::Loss;
use prewarm_embedded::faults::{Faults, Happened, Verb};

use crate::world::World;

#[tokio::test(start_paused = true)]
async fn one_of_two_leads_for_as_long_as_it_renews() {
    let mut world = World::new();
    world.start("a");
    world.pass(0.1).await;
    world.start("b");
    for _ in 0..30 {
        world.pass(20.0).await;
        assert_eq!(world.leader().as_deref(), Some("a"));
    }
    assert_eq!(world.transitions().await, 1);
    assert!(world.counts("leader 1"));
}

#[tokio::test(start_paused = true)]
async fn a_leader_writes_once_or_twice_in_two_seconds_and_reads_nothing() {
    let mut world = World::new();
    let faults = Faults::none();
    world.start_on("a", &faults);
    world.pass(100.0).await;
    let journal = faults.journal();
    let writes = journal.iter().filter(|entry| entry.verb == Verb::Update).count();
    assert!((50..=101).contains(&writes), "{writes} writes");
    let reads = journal.iter().filter(|entry| entry.verb == Verb::Get).count();
    assert_eq!(reads, 1);
    assert!(journal.iter().all(|entry| entry.happened == Happened::Answered(200)));
    assert!(world.counts(&format!(r#"api_writes_total{{kind="lease",result="ok"}} {writes}"#)));
}

#[tokio::test(start_paused = true)]
async fn a_crashed_leader_is_followed_within_twenty_seconds() {
    let mut world = World::new();
    world.start("0");
    world.elect().await;
    for life in 1..40 {
        world.start(&life.to_string());
        world.pass(3.0 + f64::from(life) * 0.11).await;
        let leader = world.leader().unwrap();
        world.take(&leader).kill().await;
        let (next, waited) = world.elect().await;
        assert_eq!(next, life.to_string());
        assert!((12.0..20.0).contains(&waited), "{waited} s");
        assert_eq!(world.transitions().await, life + 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_stops_is_followed_within_two_seconds() {
    let mut world = World::new();
    world.start("0");
    world.elect().await;
    for life in 1..40 {
        world.start(&life.to_string());
        world.pass(3.0 + f64::from(life) * 0.11).await;
        let leader = world.leader().unwrap();
        world.take(&leader).stop().await;
        assert_eq!(world.leader(), None);
        let (next, waited) = world.elect().await;
        assert_eq!(next, life.to_string());
        assert!(waited <= 2.1, "{waited} s");
    }
    assert_eq!(world.transitions().await, 40);
}

#[tokio::test(start_paused = true)]
async fn a_candidate_that_stops_while_it_waits_leaves_the_lease_alone() {
    let mut world = World::new();
    world.start("a");
    world.pass(0.1).await;
    world.start("b");
    world.pass(5.0).await;
    world.take("b").stop().await;
    world.pass(5.0).await;
    assert_eq!(world.leader().as_deref(), Some("a"));
    assert_eq!(world.transitions().await, 1);
}

#[tokio::test(start_paused = true)]
async fn of_many_that_wait_exactly_one_follows() {
    let mut world = World::new();
    for life in 0..10 {
        world.start(&life.to_string());
    }
    for round in 1..=9 {
        let (leader, _) = world.elect().await;
        world.pass(7.0).await;
        assert_eq!(world.transitions().await, round);
        world.take(&leader).kill().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_was_frozen_for_a_minute_does_not_lead_when_it_wakes() {
    let mut world = World::new();
    world.start("a");
    world.pass(0.1).await;
    world.start("b");
    world.pass(5.0).await;
    world.candidates["a"].freeze(true);
    world.pass(60.0).await;
    assert_eq!(world.leader().as_deref(), Some("b"));
    world.candidates["a"].freeze(false);
    assert_eq!(world.take("a").lost().await, Loss::Expired);
    world.pass(20.0).await;
    assert_eq!((world.leader().as_deref(), world.transitions().await), (Some("b"), 2));
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_was_frozen_and_is_alone_leaves_the_lease_to_the_next() {
    let mut world = World::new();
    world.start("a");
    world.pass(5.0).await;
    world.candidates["a"].freeze(true);
    world.pass(60.0).await;
    let before = world.lease().await;
    world.candidates["a"].freeze(false);
    assert_eq!(world.take("a").lost().await, Loss::Expired);
    assert_eq!(world.lease().await, before);
}

#[tokio::test(start_paused = true)]
async fn without_a_lease_somebody_leads_after_as_long_as_one_could_have_been_held() {
    let mut world = World::without_lease();
    world.start("a");
    world.start("b");
    let (_, waited) = world.elect().await;
    assert!((15.0..17.1).contains(&waited), "{waited} s");
    world.pass(10.0).await;
    assert_eq!(world.transitions().await, 1);
}
