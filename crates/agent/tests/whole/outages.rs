//! The API server is away, slow, forgetful or wrong about what happened; pulls go on and the latest state is reported when
//! it is back (kruise D1, D3 in our form; reliability S6, S8).

use std::time::Duration;

use prewarm_embedded::Options;
use prewarm_embedded::faults::{
    Action, Chance, Cut, FaultPlan, Faults, Filter, Rates, Rule, ScriptedFault, Verb,
};
use prewarm_runtime::fake::Fake;
use serde_json::json;

use crate::node::{Node, image, image_of, pass, policy, tag};

const NAME: &str = "reg.example/app";
/// No pause of a client that is refused is longer, with the time that its next try takes.
const LONGEST_PAUSE: f64 = 35.0;
/// So soon everything is current after an outage (reliability L5).
const CURRENT: f64 = 30.0;

async fn asked(takes: u64, faults: Faults) -> Node {
    let mut node = Node::new();
    node.faults = faults;
    for number in 1..=4 {
        node.fake.image(&format!("{NAME}:{number}")).takes(Duration::from_secs(takes));
    }
    node.ask(json!({ NAME: image(&["1", "2", "3", "4"]) })).await;
    node
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn away() -> Rates {
    Rates { refused: 1.0, ..Rates::default() }
}

#[tokio::test(start_paused = true)]
async fn pulls_go_on_while_the_server_is_away_and_the_latest_state_is_reported_when_it_is_back() {
    let plan = FaultPlan::always(away()).quiet(seconds(0)..seconds(5)).until(seconds(600));
    let mut node = asked(20, Faults::new(plan, 0)).await;
    node.start();
    pass(500.0).await;
    let before = node.status().await;
    assert_eq!(
        (before.pulling, before.waiting, before.succeeded),
        (2, 2, 0),
        "as reported before the outage"
    );
    assert!((1..=4).all(|number| node.fake.has(&format!("{NAME}:{number}"))));
    assert_eq!(node.settled(4).await.succeeded, 4);
    assert!((600.0..600.0 + CURRENT).contains(&node.seconds()), "{}", node.seconds());
    assert!(node.status_writes() <= 3, "{} writes", node.status_writes());
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_starts_during_an_outage_works_when_it_is_over() {
    let mut node = asked(5, Faults::new(FaultPlan::always(away()).until(seconds(300)), 0)).await;
    node.start();
    pass(290.0).await;
    assert!(node.fake.calls().is_empty());
    assert_eq!(node.health.checks().failing()[0].0, "nodeimage");
    assert_eq!(node.settled(4).await.succeeded, 4);
    assert!(node.seconds() < 310.0 + CURRENT, "{}", node.seconds());
}

/// A node whose reports meet this fault for a minute.
async fn with_reports_that(set: impl Fn(&mut Rates, Chance)) -> Node {
    let mut rates = Rates::default();
    set(&mut rates, 1.0);
    let applies_to = Filter::verb(Verb::Patch).of("nodeimages/status");
    let plan = FaultPlan { rules: vec![Rule { applies_to, rates }], ..FaultPlan::default() };
    let mut node = asked(3, Faults::new(plan.until(seconds(60)), 0)).await;
    node.start();
    node
}

#[tokio::test(start_paused = true)]
async fn refused_reports_are_repeated_with_growing_pauses() {
    let faults: [fn(&mut Rates, Chance); 3] = [
        |rates, chance| rates.too_many_requests = chance,
        |rates, chance| rates.internal_error = chance,
        |rates, chance| rates.refused = chance,
    ];
    for fault in faults {
        let node = with_reports_that(fault).await;
        assert_eq!(node.settled(4).await.succeeded, 4);
        assert!((60.0..60.0 + LONGEST_PAUSE).contains(&node.seconds()), "{}", node.seconds());
        let tries = node.faults.journal().iter().filter(|entry| entry.verb == Verb::Patch).count();
        // A server that cannot be reached is tried every few seconds; one that refuses, with growing pauses.
        assert!((5..=24).contains(&tries), "{tries} tries in a minute");
        assert_eq!(node.fake.calls().len(), 4);
    }
}

#[tokio::test(start_paused = true)]
async fn reports_whose_answers_are_lost_harm_nothing() {
    let node = with_reports_that(|rates, chance| rates.answer_lost = chance).await;
    assert_eq!(node.settled(4).await.succeeded, 4);
    assert!(node.seconds() < 60.0, "it arrived while answers were still being lost: {}", node.seconds());
    pass(200.0).await;
    let writes = node.faults.writes();
    pass(3600.0).await;
    assert_eq!(node.faults.writes(), writes);
    assert_eq!(node.fake.calls().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_breaks_again_and_again_misses_nothing() {
    let rates = Rates {
        watch_cut: 1.0,
        cut_after_events: 0..=2,
        cut_after: Duration::ZERO..=seconds(20),
        ..Rates::default()
    };
    let mut node = asked(1, Faults::new(FaultPlan::always(rates), 7)).await;
    node.start();
    node.settled(4).await;
    for round in 1..=5 {
        let name = format!("reg.example/round-{round}");
        node.fake.image(&format!("{name}:1"));
        node.change(json!({ name: image(&["1"]) })).await;
        assert_eq!(node.settled(4 + round).await.failed, 0);
    }
    assert!(node.faults.tally()["watch-cut"] >= 3, "{:?}", node.faults.tally());
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_resumes_too_late_for_the_servers_memory_lists_again() {
    let options = Options { history_changes: 1, ..Options::default() };
    let mut node = Node::with_options(Fake::new(), options);
    let cut = ScriptedFault::at(1, Action::CutWatch(1, Cut::Broken)).of(Filter::verb(Verb::Watch));
    let slow = ScriptedFault::at(2, Action::Latency(seconds(10))).of(Filter::verb(Verb::Watch));
    node.faults = Faults::scripted(vec![cut, slow]);
    node.fake.image("reg.example/a:1");
    node.ask(json!({})).await;
    node.start();
    node.until("the first pass", |status| status.first_sync_status.is_some()).await;
    for number in 0..6 {
        node.patch(json!({ "metadata": { "labels": { "round": number.to_string() } } })).await;
    }
    node.change(json!({ "reg.example/a": image(&["1"]) })).await;
    assert_eq!(node.settled(1).await.succeeded, 1);
    let lists = node.faults.journal().iter().filter(|entry| entry.verb == Verb::List).count();
    assert!(lists >= 2, "it had to list again: {lists}");
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_jumps_ends_no_task_and_prolongs_none() {
    for jump in [-86_400 * 365, 86_400 * 365, -30, 30] {
        let mut node = Node::new();
        node.fake.image("reg.example/app:1").takes(seconds(50));
        let limits = json!({ "activeDeadlineSeconds": 60, "backoffLimit": 0 });
        node.ask(json!({ NAME: image_of(vec![policy(tag("1"), &limits)]) })).await;
        node.start();
        node.until("a pull", |status| status.pulling == 1).await;
        pass(10.0).await;
        node.clock.jump(jump);
        assert_eq!(node.settled(1).await.succeeded, 1, "{jump}");
        assert!((50.0..50.5).contains(&node.seconds()), "{jump}: {}", node.seconds());
        let tag = node.tag(NAME, "1").await;
        let took = tag.completion_time.unwrap().0.duration_since(tag.start_time.unwrap().0).as_secs();
        assert_eq!(took, 50 + jump, "each time is that of its moment");
    }
}

#[tokio::test(start_paused = true)]
async fn a_rough_day_loses_nothing_and_ends_in_silence() {
    for seed in prewarm_seed::several(3) {
        let plan = FaultPlan::always(Rates::rough()).until(seconds(900));
        let mut node = asked(40, Faults::new(plan, seed)).await;
        node.start();
        let status = node.settled(4).await;
        assert_eq!(status.succeeded, 4, "seed {seed}");
        pass(1000.0).await;
        let writes = node.faults.writes();
        pass(3600.0).await;
        assert_eq!(node.faults.writes(), writes, "seed {seed}");
        assert_eq!(node.fake.calls().len(), 4, "seed {seed}: nothing was pulled twice");
    }
}
