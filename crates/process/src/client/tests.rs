use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use futures::{StreamExt as _, stream};
use http_body::Frame;
use http_body_util::StreamBody;
use hyper::body::Bytes;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{ListParams, WatchParams};
use prewarm_embedded::faults::{Action, Cut, Faults, Filter, ScriptedFault, Verb};
use prewarm_embedded::{Options, Server, TokioClock};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::time::{Instant, interval};
use tower::service_fn;

use super::limited::{ANSWER_LIMIT, WATCH_SILENCE, WHOLE_LIMIT};
use super::*;
use crate::watch::Crowd;

/// An empty server, and a limited client whose requests meet this fault.
fn maps(verb: Verb, action: Action) -> (Server, Api<ConfigMap>) {
    let clock = TokioClock::starting_at("2030-01-01T00:00:00Z".parse().unwrap());
    let server = Server::new(Arc::new(clock), Options::default());
    let faults = Faults::scripted(vec![ScriptedFault::always(action).of(Filter::verb(verb))]);
    let client = limited(faults.client(&server), Crowd::Few);
    (server, Api::default_namespaced(client))
}

/// The seconds that this takes, which has to fail.
async fn seconds<T, E>(request: impl Future<Output = Result<T, E>>) -> u64 {
    let start = Instant::now();
    assert!(request.await.is_err());
    start.elapsed().as_secs()
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_never_answered_fails() {
    let (_server, api) = maps(Verb::Get, Action::Unanswered);
    assert_eq!(seconds(api.get("one")).await, ANSWER_LIMIT.as_secs());
}

#[tokio::test(start_paused = true)]
async fn a_list_that_stops_in_the_middle_fails() {
    let (_server, api) = maps(Verb::List, Action::Stalled);
    assert_eq!(seconds(api.list(&ListParams::default())).await, ANSWER_LIMIT.as_secs());
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_never_begins_fails() {
    let (_server, api) = maps(Verb::Watch, Action::Unanswered);
    assert_eq!(seconds(api.watch(&WatchParams::default(), "0")).await, ANSWER_LIMIT.as_secs());
}

#[tokio::test(start_paused = true)]
async fn a_watch_without_bookmarks_and_events_fails_after_two_minutes() {
    let (_server, api) = maps(Verb::Watch, Action::CutWatch(0, Cut::Silent));
    let mut watch = api.watch(&WatchParams::default(), "0").await.unwrap().boxed();
    let next = async { watch.next().await.unwrap() };
    // The bookmark of the first minute is the first that is missing.
    assert_eq!(seconds(next).await, WATCH_SILENCE.as_secs());
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_has_only_bookmarks_goes_on() {
    let (_server, api) = maps(Verb::Get, Action::Unanswered);
    let start = Instant::now();
    let watch = api.watch(&WatchParams::default().timeout(290), "0").await.unwrap();
    let events: Vec<_> = watch.collect().await;
    assert!(events.iter().all(Result::is_ok), "{events:?}");
    assert_eq!(start.elapsed().as_secs(), 290);
}

#[tokio::test(start_paused = true)]
async fn watches_of_thousands_that_the_server_ends_together_end_one_by_one() {
    let (server, _) = maps(Verb::Get, Action::Unanswered);
    let api: Api<ConfigMap> = Api::default_namespaced(limited(server.client(), Crowd::Thousands));
    let start = Instant::now();
    let params = WatchParams::default().timeout(290);
    let ends = (0..100).map(async |_| {
        api.watch(&params, "0").await.unwrap().collect::<Vec<_>>().await;
        start.elapsed()
    });
    let ends = join_all(ends).await;
    let first_second = ends.iter().filter(|end| end.as_secs() == 290).count();
    assert!((20..=80).contains(&first_second), "{ends:?}");
    // Timers may be late by a millisecond.
    let latest = Duration::from_millis(292_001);
    assert!(ends.iter().all(|end| (Duration::from_secs(290)..=latest).contains(end)), "{ends:?}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_trickles_for_ever_fails_after_a_minute() {
    let server = service_fn(async |_request: http::Request<kube::client::Body>| {
        let drops = stream::unfold(interval(Duration::from_secs(7)), async |mut pause| {
            pause.tick().await;
            Some((Ok::<_, Infallible>(Frame::data(Bytes::from_static(b" "))), pause))
        });
        Ok::<_, Infallible>(http::Response::new(StreamBody::new(drops.boxed())))
    });
    let api: Api<ConfigMap> = Api::default_namespaced(limited(Client::new(server, "default"), Crowd::Few));
    assert_eq!(seconds(api.get("one")).await, WHOLE_LIMIT.as_secs());
}

/// The timer that the kernel has for a connection to this port, as `/proc/net/tcp` shows it; 2 is keepalive.
fn timer_of_connection_to(port: u16) -> Option<u8> {
    let table = std::fs::read_to_string("/proc/self/net/tcp").unwrap();
    let fields = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let is_ours = |fields: &Vec<&str>| fields.get(2).is_some_and(|to| to.ends_with(&format!(":{port:04X}")));
    let ours = fields.into_iter().find(is_ours)?;
    ours.get(5)?.split(':').next()?.parse().ok()
}

#[tokio::test]
async fn the_kernel_asks_idle_connections_whether_they_are_alive() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = stream.read(&mut [0; 4096]).await.unwrap();
        let answer = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
        stream.write_all(answer).await.unwrap();
        // Kept open for as long as the test looks.
        std::future::pending::<()>().await;
    });
    let client = connect(Config::new(format!("http://127.0.0.1:{port}").parse().unwrap())).unwrap();
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    api.get("one").await.unwrap();
    // Until its last packet is acknowledged, a connection has another timer.
    let asked = async {
        while timer_of_connection_to(port) != Some(2) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), asked).await.expect("the connection has a keepalive timer");
    server.abort();
}
