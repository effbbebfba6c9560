//! An idle server does nothing: watches wake up only for their bookmarks and their end.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use http::Request;
use http_body_util::{BodyExt as _, Empty};
use prewarm_embedded::{Options, Server, TokioClock};
use tower::Service as _;

const WATCHES: u64 = 200;
const HOUR: Duration = Duration::from_hours(1);

/// A task that counts how often it is woken.
struct Counted<F> {
    inner: Pin<Box<F>>,
    polls: Arc<AtomicU64>,
}

impl<F: Future> Future for Counted<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, ctx: &mut Context<'_>) -> Poll<F::Output> {
        self.polls.fetch_add(1, Ordering::Relaxed);
        self.inner.as_mut().poll(ctx)
    }
}

/// Opens many watches, lets an hour pass, and returns how often they were woken and how many lines they got.
async fn watch_for_an_hour(server: &Server, query: &str) -> (u64, u64) {
    let (polls, lines) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let mut watches = tokio::task::JoinSet::new();
    for _ in 0..WATCHES {
        let request = Request::get(format!("/api/v1/configmaps?watch=1&{query}"));
        let answer = server.clone().call(request.body(Empty::<bytes::Bytes>::new()).unwrap()).await.unwrap();
        let (mut body, lines) = (answer.into_body(), lines.clone());
        let reading = async move {
            while let Some(Ok(_)) = body.frame().await {
                lines.fetch_add(1, Ordering::Relaxed);
            }
        };
        watches.spawn(Counted { inner: Box::pin(reading), polls: polls.clone() });
    }
    // Half a minute more, so that the last bookmark of the hour is certainly included.
    tokio::time::sleep(HOUR + Duration::from_secs(30)).await;
    (polls.load(Ordering::Relaxed), lines.load(Ordering::Relaxed))
}

fn server() -> Server {
    Server::new(Arc::new(TokioClock::of_the_machine()), Options::default())
}

#[tokio::test(start_paused = true)]
async fn watches_without_bookmarks_are_never_woken() {
    let (polls, lines) = watch_for_an_hour(&server(), "timeoutSeconds=86400").await;
    assert_eq!((polls, lines), (WATCHES, 0), "each is looked at once, when it begins");
}

#[tokio::test(start_paused = true)]
async fn watches_with_bookmarks_are_woken_for_those_only() {
    let query = "timeoutSeconds=86400&allowWatchBookmarks=true";
    let (polls, lines) = watch_for_an_hour(&server(), query).await;
    // About one a minute, and exactly one wake-up for each. The first poll finds the one at the end of the initial
    // events.
    assert!((50 * WATCHES..=70 * WATCHES).contains(&lines), "{lines}");
    assert_eq!(polls, lines);
}

#[tokio::test(start_paused = true)]
async fn a_server_without_clients_sets_no_timer() {
    let server = server();
    let start = tokio::time::Instant::now();
    // With no timer pending, paused time jumps to this one in a single step.
    let mut steps = 0;
    let hour = tokio::time::sleep(HOUR);
    tokio::pin!(hour);
    std::future::poll_fn(|ctx| {
        steps += 1;
        hour.as_mut().poll(ctx)
    })
    .await;
    assert_eq!((steps, start.elapsed()), (2, HOUR));
    drop(server);
}
