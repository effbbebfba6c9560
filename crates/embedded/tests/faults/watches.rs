//! What can happen to a watch.

use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _};
use kube::api::{WatchEvent, WatchParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use prewarm_embedded::faults::{Action, Cut, Faults, Filter, ScriptedFault, Verb};
use tokio::time::Instant;

use super::steps::{always, change, create, maps, server};
#[tokio::test(start_paused = true)]
async fn a_watcher_misses_nothing_wherever_and_however_its_watch_is_cut() {
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
    // Whether it ends with an error depends on the seed, but it ends.
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
    // Twenty-one events came at the same time. They are late by the longest delay among them, not by the sum.
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
