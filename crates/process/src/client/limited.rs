//! Time limits for every request of a client, whatever it asks for.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response, Uri};
use kube::Client;
use kube::client::Body;
use tokio::time::{Instant, timeout};
use tower::{BoxError, Service};
use tracing::debug;

use super::body::Bounded;
use crate::watch::Crowd;

/// How long an answer may take to begin, and how long it may be silent. An API server that is short of time answers a request
/// or refuses it within 15 s.
pub const ANSWER_LIMIT: Duration = Duration::from_secs(20);
/// How long an answer may take as a whole. API servers themselves give a request no more.
pub const WHOLE_LIMIT: Duration = Duration::from_mins(1);
/// How long a watch may be silent. API servers send a bookmark every minute.
pub const WATCH_SILENCE: Duration = Duration::from_mins(2);

/// Watches of thousands that the server ends at the same moment, as when it stops, end over so long a time for their owners,
/// who open them anew at once.
const SPREAD: Duration = Duration::from_secs(2);

/// The same client, with time limits.
pub fn limited(client: Client, crowd: Crowd) -> Client {
    let (namespace, valid_until) = (client.default_namespace().to_owned(), *client.valid_until());
    Client::new(Limited { client, crowd }, namespace).with_valid_until(valid_until)
}

/// Why a request was given up.
#[derive(Debug, thiserror::Error)]
pub(super) enum Silence {
    #[error("the API server did not answer within {} s", .0.as_secs())]
    NoAnswer(Duration),
    #[error("nothing came from the API server for {} s; the connection counts as dead", .0.as_secs())]
    Stopped(Duration),
}

#[derive(Clone)]
struct Limited {
    client: Client,
    crowd: Crowd,
}

impl Service<Request<Body>> for Limited {
    type Response = Response<Bounded>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        // Waiting for a place counts as waiting for the answer.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Self { client, crowd } = self.clone();
        let is_watch = is_watch(request.uri());
        Box::pin(async move {
            debug!(method = %request.method(), url = %request.uri(), "requesting");
            let end = Instant::now() + WHOLE_LIMIT;
            let answer = timeout(ANSWER_LIMIT, client.send(request)).await;
            let answer = answer.map_err(|_| Silence::NoAnswer(ANSWER_LIMIT))??;
            debug!(status = answer.status().as_u16(), "answered");
            Ok(answer.map(|body| {
                if is_watch {
                    Bounded::watch(body, WATCH_SILENCE, lingers(crowd))
                } else {
                    Bounded::whole(body, ANSWER_LIMIT, end)
                }
            }))
        })
    }
}

fn lingers(crowd: Crowd) -> Duration {
    match crowd {
        Crowd::Few => Duration::ZERO,
        Crowd::Thousands => SPREAD.mul_f64(rand::random()),
    }
}

fn is_watch(uri: &Uri) -> bool {
    uri.query().is_some_and(|query| query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_is_known_by_its_query() {
        for (uri, expected) in [
            ("/api/v1/pods?&watch=true&timeoutSeconds=290", true),
            ("/api/v1/pods?watch=1", true),
            ("/api/v1/pods?limit=500", false),
            ("/api/v1/pods?labelSelector=watch%3Dtrue", false),
            ("/api/v1/pods", false),
        ] {
            assert_eq!(is_watch(&Uri::from_static(uri)), expected, "{uri}");
        }
    }
}
