//! Each fault on its own, under tokio's paused time.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{
    DeleteParams, GetParams, ListParams, Patch, PatchParams, PostParams, VersionMatch, WatchEvent,
    WatchParams,
};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, ResourceExt};
use prewarm_embedded::faults::{
    Action, Cut, FaultPlan, Faults, Filter, Happened, Rates, Rule, ScriptedFault, Verb,
};
use prewarm_embedded::{Options, Server, TokioClock};
use serde_json::json;
use tokio::time::Instant;

fn server() -> Server {
    server_with(Options::default())
}

fn server_with(options: Options) -> Server {
    let beginning = "2030-01-01T00:00:00Z".parse().unwrap();
    Server::new(Arc::new(TokioClock::starting_at(beginning)), options)
}

fn maps(client: Client) -> Api<ConfigMap> {
    Api::default_namespaced(client)
}

fn map(name: &str, value: u64) -> ConfigMap {
    let object = json!({ "metadata": { "name": name }, "data": { "value": value.to_string() } });
    serde_json::from_value(object).unwrap()
}

async fn create(api: &Api<ConfigMap>, name: &str) -> kube::Result<ConfigMap> {
    api.create(&PostParams::default(), &map(name, 0)).await
}

async fn change(api: &Api<ConfigMap>, name: &str, value: u64) -> kube::Result<ConfigMap> {
    let patch = Patch::Merge(json!({ "data": { "value": value.to_string() } }));
    api.patch(name, &PatchParams::default(), &patch).await
}

async fn names(api: &Api<ConfigMap>) -> Vec<String> {
    let list = api.list(&ListParams::default()).await.unwrap();
    list.items.iter().map(ResourceExt::name_any).collect()
}

fn version(object: &ConfigMap) -> u64 {
    object.resource_version().unwrap().parse().unwrap()
}

fn always(change: impl FnOnce(&mut Rates)) -> Faults {
    let mut rates = Rates::default();
    change(&mut rates);
    Faults::new(FaultPlan::always(rates), 7)
}

fn code(error: &kube::Error) -> u16 {
    match error {
        kube::Error::Api(status) => status.code,
        other => panic!("no answer: {other}"),
    }
}

fn io_kind(error: &kube::Error) -> std::io::ErrorKind {
    match error {
        kube::Error::Service(cause) => cause.downcast_ref::<std::io::Error>().unwrap().kind(),
        other => panic!("not a broken connection: {other}"),
    }
}

#[tokio::test(start_paused = true)]
async fn latency_takes_virtual_time_only() {
    let server = server();
    let hour = Duration::from_hours(1);
    let slow = maps(always(|rates| rates.latency = hour..=hour).client(&server));
    let (start, real) = (Instant::now(), std::time::Instant::now());
    create(&slow, "one").await.unwrap();
    // Each leg of the way may be rounded up to a millisecond.
    assert!((hour..hour + Duration::from_millis(5)).contains(&start.elapsed()));
    assert!(real.elapsed() < Duration::from_secs(30));
}

#[tokio::test(start_paused = true)]
async fn a_429_says_when_to_come_back_and_nothing_is_stored() {
    let server = server();
    let faults = Faults::scripted(vec![ScriptedFault::at(1, Action::TooManyRequests(30))]);
    let api = maps(faults.client(&server));
    let error = create(&api, "one").await.unwrap_err();
    let kube::Error::Api(status) = &error else { panic!("{error}") };
    assert_eq!((status.code, status.reason.as_str()), (429, "TooManyRequests"));
    assert_eq!(status.details.as_ref().unwrap().retry_after_seconds, 30);
    assert!(maps(server.client()).get_opt("one").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_retrying_client_waits_as_long_as_it_was_told() {
    let server = server();
    let faults = Faults::scripted(vec![
        ScriptedFault::at(1, Action::TooManyRequests(30)),
        ScriptedFault::at(2, Action::TooManyRequests(60)),
    ]);
    let start = Instant::now();
    create(&maps(faults.retrying_client(&server)), "one").await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 90);
    assert_eq!(faults.tally(), BTreeMap::from([("answered", 1), ("too-many-requests", 2)]));
}

#[tokio::test(start_paused = true)]
async fn a_500_means_not_stored() {
    let server = server();
    let api = maps(always(|rates| rates.internal_error = 1.0).client(&server));
    assert_eq!(code(&create(&api, "one").await.unwrap_err()), 500);
    assert!(names(&maps(server.client())).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn refused_means_not_stored() {
    let server = server();
    let api = maps(always(|rates| rates.refused = 1.0).client(&server));
    let error = create(&api, "one").await.unwrap_err();
    assert_eq!(io_kind(&error), std::io::ErrorKind::ConnectionRefused);
    assert!(names(&maps(server.client())).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_means_stored() {
    let server = server();
    let faults = always(|rates| rates.answer_lost = 1.0);
    let error = create(&maps(faults.client(&server)), "one").await.unwrap_err();
    assert_eq!(io_kind(&error), std::io::ErrorKind::ConnectionReset);
    assert_eq!(names(&maps(server.client())).await, ["one"]);
    assert_eq!(faults.writes(), 1);
    assert_eq!(faults.journal()[0].happened, Happened::AnswerLost(201));
}

#[tokio::test(start_paused = true)]
async fn a_watcher_loses_nothing_wherever_and_however_its_watch_is_cut() {
    for how in [Cut::Clean, Cut::Broken, Cut::Torn] {
        for events in 0..6 {
            let server = server();
            let cut = ScriptedFault::at(1, Action::CutWatch(events, how)).of(Filter::verb(Verb::Watch));
            let faults = Faults::scripted(vec![cut]);
            let seen = watcher(maps(faults.client(&server)), watcher::Config::default())
                .default_backoff()
                .applied_objects()
                .filter_map(|object| async { object.ok().and_then(|map| map.data) })
                .map(|data| data["value"].parse::<u64>().unwrap());
            let api = maps(server.client());
            create(&api, "one").await.unwrap();
            let writes = async {
                for value in 1..=6 {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    change(&api, "one", value).await.unwrap();
                }
            };
            let (seen, ()) = tokio::join!(seen.take(7).collect::<Vec<_>>(), writes);
            assert_eq!(seen, [0, 1, 2, 3, 4, 5, 6], "{how:?} after {events}");
            assert_eq!(faults.tally()["watch-cut"], 1, "{how:?} after {events}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_can_be_cut_when_nothing_happens() {
    let server = server();
    let faults = always(|rates| {
        rates.watch_cut = 1.0;
        rates.cut_after_events = 100..=100;
        rates.cut_after = Duration::from_secs(20)..=Duration::from_secs(20);
    });
    let api = maps(faults.client(&server));
    let start = Instant::now();
    // Whether it ends with an error is chance; it ends.
    let _ = api.watch(&WatchParams::default(), "0").await.unwrap().collect::<Vec<_>>().await;
    assert_eq!(start.elapsed().as_secs(), 20);
}

#[tokio::test(start_paused = true)]
async fn a_delayed_watch_gets_everything_late_and_in_order() {
    let server = server();
    let faults = always(|rates| {
        rates.watch_delayed = 1.0;
        rates.watch_delay = Duration::from_secs(1)..=Duration::from_mins(1);
    });
    let watch =
        maps(faults.client(&server)).watch(&WatchParams::default().disable_bookmarks(), "0").await.unwrap();
    let api = maps(server.client());
    create(&api, "one").await.unwrap();
    for value in 1..=20 {
        change(&api, "one", value).await.unwrap();
    }
    let start = Instant::now();
    let events: Vec<_> = watch.take(21).try_collect().await.unwrap();
    let values = events.iter().map(|event| match event {
        WatchEvent::Added(map) | WatchEvent::Modified(map) => map.data.as_ref().unwrap()["value"].clone(),
        other => panic!("{other:?}"),
    });
    assert_eq!(values.collect::<Vec<_>>(), (0..=20).map(|value| value.to_string()).collect::<Vec<_>>());
    // Twenty-one events came at once; they are late by the longest delay among them, not by all of them together.
    assert!((1..=60).contains(&start.elapsed().as_secs()), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn bookmarks_are_withheld_except_the_one_that_ends_a_streaming_list() {
    let server = server();
    create(&maps(server.client()), "one").await.unwrap();
    let faults = always(|rates| rates.bookmarks_withheld = 1.0);
    let params = WatchParams::default().initial_events().timeout(200);
    let watch = maps(faults.client(&server)).watch(&params, "0").await.unwrap();
    let kinds = watch.map_ok(|event| match event {
        WatchEvent::Added(_) => "added",
        WatchEvent::Bookmark(_) => "bookmark",
        _ => "other",
    });
    assert_eq!(kinds.try_collect::<Vec<_>>().await.unwrap(), ["added", "bookmark"]);
    assert!(faults.tally()["bookmark-withheld"] >= 3);
}

/// A server on which `one` has values 0 to 9 and `two` came in between.
async fn server_with_a_past() -> (Server, BTreeMap<u64, Vec<ConfigMap>>) {
    let server = server();
    let api = maps(server.client());
    let mut past = BTreeMap::new();
    create(&api, "one").await.unwrap();
    for value in 1..10 {
        let list = api.list(&ListParams::default()).await.unwrap();
        past.insert(list.metadata.resource_version.unwrap().parse().unwrap(), list.items);
        if value == 5 {
            create(&api, "two").await.unwrap();
        } else {
            change(&api, "one", value).await.unwrap();
        }
    }
    (server, past)
}

fn from_the_past(by: u64) -> Faults {
    always(|rates| {
        rates.stale = 1.0;
        rates.stale_by = by..=by;
    })
}

fn any_version() -> ListParams {
    ListParams::default().matching(VersionMatch::NotOlderThan).at("0")
}

#[tokio::test(start_paused = true)]
async fn a_list_from_the_past_is_what_an_earlier_list_was() {
    let (server, past) = server_with_a_past().await;
    for by in 1..=past.len() as u64 {
        let faults = from_the_past(by);
        let list = maps(faults.client(&server)).list(&any_version()).await.unwrap();
        let revision = list.metadata.resource_version.unwrap().parse().unwrap();
        assert_eq!(list.items, past[&revision], "{by} revisions ago");
        assert_eq!(faults.journal()[0].happened, Happened::AnsweredStale(200, revision));
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_from_the_past_can_be_older_or_not_there_yet_or_still_there() {
    let (server, _) = server_with_a_past().await;
    let old = maps(from_the_past(3).client(&server));
    let fresh = maps(server.client());
    let one = old.get_with("one", &GetParams::any()).await.unwrap();
    assert_eq!(version(&one), version(&fresh.get("one").await.unwrap()) - 3);
    let before = maps(from_the_past(5).client(&server));
    let error = before.get_with("two", &GetParams::any()).await.unwrap_err();
    let never = fresh.get("never").await.unwrap_err();
    let (kube::Error::Api(error), kube::Error::Api(never)) = (error, never) else { panic!("no Status") };
    assert_eq!(
        serde_json::to_string(&error).unwrap(),
        serde_json::to_string(&never).unwrap().replace("never", "two")
    );
    fresh.delete("two", &DeleteParams::default()).await.unwrap();
    assert_eq!(old.get_with("two", &GetParams::any()).await.unwrap().name_any(), "two");
}

#[tokio::test(start_paused = true)]
async fn a_read_is_never_older_than_it_allows() {
    let (server, past) = server_with_a_past().await;
    let floor = *past.keys().next_back().unwrap();
    let old = maps(from_the_past(1000).client(&server));
    let fresh = maps(server.client());
    let at_least = ListParams::default().matching(VersionMatch::NotOlderThan).at(&floor.to_string());
    let list = old.list(&at_least).await.unwrap();
    assert_eq!(list.metadata.resource_version.unwrap(), floor.to_string());
    // The most recent state is asked for, and given.
    assert_eq!(
        old.list(&ListParams::default()).await.unwrap().items,
        fresh.list(&ListParams::default()).await.unwrap().items
    );
    assert_eq!(old.get("one").await.unwrap(), fresh.get("one").await.unwrap());
    // A page goes on where it was.
    let first = old.list(&ListParams::default().limit(1)).await.unwrap();
    let next = ListParams::default().limit(1).continue_token(&first.metadata.continue_.unwrap());
    assert_eq!(old.list(&next).await.unwrap().metadata.resource_version, first.metadata.resource_version);
}

#[tokio::test(start_paused = true)]
async fn reads_of_the_most_recent_state_are_old_only_if_the_plan_says_so() {
    let (server, past) = server_with_a_past().await;
    let faults = always(|rates| {
        rates.stale = 1.0;
        rates.stale_by = 2..=2;
        rates.stale_quorum_reads = true;
    });
    let list = maps(faults.client(&server)).list(&ListParams::default()).await.unwrap();
    let revision = list.metadata.resource_version.unwrap().parse().unwrap();
    assert_eq!(list.items, past[&revision]);
}

#[tokio::test(start_paused = true)]
async fn pages_from_the_past_are_of_one_past() {
    let (server, past) = server_with_a_past().await;
    let faults = Faults::scripted(vec![ScriptedFault::at(1, Action::Stale(3))]);
    let api = maps(faults.client(&server));
    let first = api.list(&ListParams::default().limit(1)).await.unwrap();
    let next = ListParams::default().limit(1).continue_token(&first.metadata.continue_.clone().unwrap());
    let second = api.list(&next).await.unwrap();
    let revision = first.metadata.resource_version.unwrap().parse().unwrap();
    assert_eq!([first.items, second.items].concat(), past[&revision]);
}

#[tokio::test(start_paused = true)]
async fn what_the_server_has_forgotten_is_read_fresh() {
    let server = server_with(Options { history_changes: 3, ..Options::default() });
    let api = maps(server.client());
    create(&api, "one").await.unwrap();
    for value in 1..10 {
        change(&api, "one", value).await.unwrap();
    }
    let old = maps(from_the_past(8).client(&server));
    assert_eq!(old.get_with("one", &GetParams::any()).await.unwrap(), api.get("one").await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_starts_in_the_past_catches_up() {
    let (server, past) = server_with_a_past().await;
    let api = maps(from_the_past(4).client(&server));
    let present = past.keys().next_back().unwrap() + 1;
    let begin = present - 4;
    let way = WatchParams::default;
    let ways = [(way(), true), (way().initial_events(), true), (way().disable_bookmarks(), false)];
    for (params, has_end) in ways {
        let mut wanted: Vec<_> =
            past[&begin].iter().map(|map| format!("added {} {}", map.name_any(), version(map))).collect();
        wanted.extend(has_end.then(|| format!("bookmark {begin}")));
        wanted.extend((begin + 1..=present).map(|revision| format!("modified one {revision}")));
        let watch = api.watch(&params, "0").await.unwrap();
        let lines = watch.take(wanted.len()).map_ok(|event| match event {
            WatchEvent::Added(map) => format!("added {} {}", map.name_any(), version(&map)),
            WatchEvent::Modified(map) => format!("modified {} {}", map.name_any(), version(&map)),
            WatchEvent::Bookmark(mark) => format!("bookmark {}", mark.metadata.resource_version),
            other => panic!("{other:?}"),
        });
        assert_eq!(lines.try_collect::<Vec<_>>().await.unwrap(), wanted);
    }
}

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
async fn the_first_rule_that_fits_decides() {
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
    // The next life has faults of its own.
    create(&maps(Faults::none().client(&server)), "three").await.unwrap();
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
