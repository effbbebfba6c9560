//! Connections that die without a word to anybody: nothing fails, and nothing arrives.

use std::time::Duration;

use futures::StreamExt as _;
use kube::api::{ListParams, WatchParams};
use prewarm_embedded::faults::{Action, Cut, Faults, Filter, Happened, ScriptedFault, Verb};
use tokio::time::timeout;

use super::steps::{change, create, maps, names, server};

/// Longer than any client waits.
const LONG: Duration = Duration::from_hours(1);

#[tokio::test(start_paused = true)]
async fn an_unanswered_request_is_carried_out_and_nobody_learns_of_it() {
    let server = server();
    let faults = Faults::scripted(vec![ScriptedFault::at(1, Action::Unanswered)]);
    let api = maps(faults.client(&server));
    assert!(timeout(LONG, create(&api, "one")).await.is_err());
    assert_eq!(names(&maps(server.client())).await, ["one"]);
    assert_eq!(faults.writes(), 1);
    assert_eq!(faults.journal()[0].happened, Happened::Unanswered(201));
    create(&api, "two").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_stalled_list_begins_and_never_ends() {
    let server = server();
    create(&maps(server.client()), "one").await.unwrap();
    let faults = Faults::scripted(vec![ScriptedFault::at(1, Action::Stalled).of(Filter::verb(Verb::List))]);
    let api = maps(faults.client(&server));
    assert!(timeout(LONG, api.list(&ListParams::default())).await.is_err());
    assert_eq!(faults.journal()[0].happened, Happened::Stalled(200));
    assert_eq!(names(&api).await, ["one"]);
}

#[tokio::test(start_paused = true)]
async fn a_silent_watch_sends_neither_events_nor_bookmarks_nor_an_end() {
    let server = server();
    let silent = ScriptedFault::at(1, Action::CutWatch(1, Cut::Silent)).of(Filter::verb(Verb::Watch));
    let faults = Faults::scripted(vec![silent]);
    let watch = maps(faults.client(&server)).watch(&WatchParams::default().timeout(290), "0").await.unwrap();
    let mut watch = std::pin::pin!(watch);
    let api = maps(server.client());
    create(&api, "one").await.unwrap();
    assert!(watch.next().await.is_some());
    change(&api, "one", 1).await.unwrap();
    assert!(timeout(LONG, watch.next()).await.is_err());
    assert_eq!(faults.tally()["watch-cut"], 1);
}

#[tokio::test(start_paused = true)]
async fn what_was_open_while_packets_were_swallowed_stays_silent_and_what_comes_later_works() {
    let server = server();
    let faults = Faults::none();
    let api = maps(faults.client(&server));
    let watch = api.watch(&WatchParams::default(), "0").await.unwrap();
    let mut watch = std::pin::pin!(watch);
    faults.swallow();
    assert!(timeout(LONG, create(&api, "one")).await.is_err());
    assert!(names(&maps(server.client())).await.is_empty(), "the request did not arrive");
    faults.heal();
    create(&api, "two").await.unwrap();
    assert!(timeout(LONG, watch.next()).await.is_err());
    assert_eq!(names(&api).await, ["two"]);
}
