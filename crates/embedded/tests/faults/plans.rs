//! What decides which faults occur: seeds, times, rules and scripts; and the journal.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt as _;
use kube::api::{DeleteParams, ListParams, PostParams, WatchParams};
use prewarm_embedded::Server;
use prewarm_embedded::faults::{Action, FaultPlan, Faults, Filter, Rates, Rule, ScriptedFault, Verb};
use tokio::time::Instant;

use super::steps::{always, any_version, change, code, create, map, maps, names, server};
/// A client that does the same every time, whatever happens to it.
async fn errands(faults: &Faults, server: &Server) {
    let api = maps(faults.client(server));
    for round in 0..40 {
        let name = format!("map-{}", round % 7);
        let _ = create(&api, &name).await;
        let _ = change(&api, &name, round).await;
        let _ = api.list(&any_version()).await;
        if round % 5 == 0 {
            let _ = api.delete(&name, &DeleteParams::default()).await;
        }
        if round % 10 == 0
            && let Ok(watch) = api.watch(&WatchParams::default().timeout(120), "0").await
        {
            let _ = watch.collect::<Vec<_>>().await;
        }
    }
}

fn lines(faults: &Faults) -> Vec<String> {
    faults.journal().iter().map(ToString::to_string).collect()
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_gives_the_same_journal() {
    let mut journals = Vec::new();
    for seed in [1, 1, 2] {
        let faults = Faults::new(FaultPlan::always(Rates::rough()), seed);
        errands(&faults, &server()).await;
        journals.push(lines(&faults));
    }
    assert_eq!(journals[0], journals[1]);
    assert_ne!(journals[0], journals[2]);
}

#[tokio::test(start_paused = true)]
async fn the_fate_of_a_request_does_not_depend_on_requests_of_other_kinds() {
    let mut fates = Vec::new();
    for extra in [0, 3] {
        let faults = Faults::new(FaultPlan::always(Rates::rough()), 5);
        let server = server();
        let api = maps(faults.client(&server));
        for round in 0..50 {
            for _ in 0..extra {
                let _ = api.get("nothing").await;
            }
            let _ = create(&api, &format!("map-{round}")).await;
        }
        let created = faults.journal().into_iter().filter(|entry| entry.verb == Verb::Create);
        fates.push(created.map(|entry| entry.happened).collect::<Vec<_>>());
    }
    assert_eq!(fates[0], fates[1]);
}

#[tokio::test(start_paused = true)]
async fn nothing_fails_in_quiet_times_and_after_the_end() {
    let server = server();
    let rates = Rates { refused: 1.0, ..Rates::default() };
    let minutes = Duration::from_mins;
    let plan = FaultPlan::always(rates).quiet(minutes(10)..minutes(20)).until(minutes(30));
    let api = maps(Faults::new(plan, 0).client(&server));
    let start = Instant::now();
    let mut outcome = Vec::new();
    for at in [0, 9, 10, 19, 20, 29, 30, 1000] {
        tokio::time::sleep_until(start + minutes(at)).await;
        outcome.push((at, api.list(&ListParams::default()).await.is_ok()));
    }
    let wanted = [0, 9, 10, 19, 20, 29, 30, 1000].map(|at| (at, (10..20).contains(&at) || at >= 30));
    assert_eq!(outcome, wanted);
}

#[tokio::test(start_paused = true)]
async fn stopped_faults_do_not_come_back() {
    let server = server();
    let faults = always(|rates| rates.refused = 1.0);
    let api = maps(faults.client(&server));
    create(&api, "one").await.unwrap_err();
    faults.stop();
    create(&api, "one").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_first_matching_rule_decides() {
    let server = server();
    let rule =
        |applies_to, internal_error| Rule { applies_to, rates: Rates { internal_error, ..Rates::default() } };
    let rules = vec![rule(Filter::verb(Verb::Create).of("configmaps"), 0.0), rule(Filter::writes(), 1.0)];
    let faults = Faults::new(FaultPlan { rules, ..FaultPlan::default() }, 0);
    let api = maps(faults.client(&server));
    create(&api, "one").await.unwrap();
    assert_eq!(code(&change(&api, "one", 1).await.unwrap_err()), 500);
    api.get("one").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_third_patch_is_done_but_its_answer_is_lost() {
    let server = server();
    let third = ScriptedFault::at(3, Action::AnswerLost).of(Filter::verb(Verb::Patch).of("configmaps"));
    let api = maps(Faults::scripted(vec![third]).client(&server));
    create(&api, "one").await.unwrap();
    let mut outcomes = Vec::new();
    for value in 1..=5 {
        outcomes.push(change(&api, "one", value).await.is_ok());
        let stored = api.get("one").await.unwrap().data.unwrap();
        assert_eq!(stored["value"], value.to_string());
    }
    assert_eq!(outcomes, [true, true, false, true, true]);
}

#[tokio::test(start_paused = true)]
async fn everything_stops_after_the_last_write_that_is_allowed() {
    let server = server();
    let faults = Faults::none();
    faults.halt_after_writes(2);
    let client = faults.client(&server);
    let api = maps(client.clone());
    let watch = api.watch(&WatchParams::default(), "0").await.unwrap();
    create(&api, "one").await.unwrap();
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    api.create(&dry, &map("dry", 0)).await.unwrap();
    // Deletions have the option in their bodies.
    api.delete("one", &DeleteParams::default().dry_run()).await.unwrap();
    api.delete_collection(&DeleteParams::default().dry_run(), &ListParams::default()).await.unwrap();
    create(&api, "one").await.unwrap_err();
    assert!(!faults.is_halted());
    let program = tokio::spawn(async move {
        let _ = create(&api, "two").await;
        unreachable!("the program is dead by then");
    });
    faults.halted().await;
    assert_eq!((faults.writes(), faults.is_halted()), (2, true));
    assert_eq!(names(&maps(server.client())).await, ["one", "two"]);
    // Nothing arrives, not even late, and nothing fails.
    let hour = Duration::from_hours(1);
    tokio::time::timeout(hour, maps(client).list(&ListParams::default())).await.unwrap_err();
    tokio::time::timeout(hour, watch.collect::<Vec<_>>()).await.unwrap_err();
    assert!(!program.is_finished());
    program.abort();
    // The next process has faults of its own.
    create(&maps(Faults::none().client(&server)), "three").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_test_can_choose_the_last_write_while_it_happens() {
    let server = server();
    let faults = Faults::none();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let numbers = asked.clone();
    faults.halt_when(move |number| {
        numbers.lock().unwrap().push(number);
        number == 2
    });
    let api = maps(faults.client(&server));
    create(&api, "one").await.unwrap();
    create(&api, "one").await.unwrap_err();
    let hour = Duration::from_hours(1);
    tokio::time::timeout(hour, create(&api, "two")).await.unwrap_err();
    assert!(faults.is_halted());
    // A refused write is none.
    assert_eq!(*asked.lock().unwrap(), [1, 2]);
    assert_eq!(names(&maps(server.client())).await, ["one", "two"]);
}

#[tokio::test(start_paused = true)]
async fn a_test_can_choose_a_request_while_it_leaves() {
    let is_even = |number: u64| number.is_multiple_of(2);
    let every_second = ScriptedFault::when(is_even, Action::InternalError).of(Filter::verb(Verb::Create));
    let api = maps(Faults::scripted(vec![every_second]).client(&server()));
    let mut outcomes = Vec::new();
    for name in ["one", "two", "three", "four"] {
        outcomes.push(create(&api, name).await.is_ok());
        api.list(&ListParams::default()).await.unwrap();
    }
    assert_eq!(outcomes, [true, false, true, false]);
}

#[tokio::test(start_paused = true)]
async fn the_journal_is_bounded_and_the_tally_is_not() {
    let faults = Faults::none();
    let api = maps(faults.client(&server()));
    for _ in 0..10_050 {
        api.get_opt("nothing").await.unwrap();
    }
    let journal = faults.journal();
    assert_eq!((journal.len(), journal[0].number), (10_000, 51));
    assert_eq!(faults.tally(), BTreeMap::from([("answered", 10_050)]));
    assert_eq!(
        journal[0].to_string(),
        "     0.000s #51 get /api/v1/namespaces/default/configmaps/nothing: 404"
    );
}
