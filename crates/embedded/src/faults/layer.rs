//! The layer itself: each request meets its fate on the way to the server and back.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use tower::util::BoxService;
use tower::{BoxError, Service, ServiceExt as _};

use super::asked::{Asked, Verb};
use super::fate::{Failure, Fate};
use super::journal::Happened;
use super::network::Connection;
use super::stall::stall;
use super::watch::WatchBody;
use super::{Faults, PassedBody, stale};
use crate::body::pass;
use crate::dispatch;
use crate::refusal::Refusal;

/// The server behind the layer, for one request.
pub(super) type Upstream = BoxService<Request<PassedBody>, Response<PassedBody>, BoxError>;

/// A service with faults in front of it.
#[derive(Clone, Debug)]
pub struct Faulty<S> {
    faults: Faults,
    inner: S,
}

impl<S> tower::Layer<S> for Faults {
    type Service = Faulty<S>;

    fn layer(&self, inner: S) -> Faulty<S> {
        Faulty { faults: self.clone(), inner }
    }
}

impl<S, B, A> Service<Request<B>> for Faulty<S>
where
    S: Service<Request<PassedBody>, Response = Response<A>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
    A: http_body::Body<Data = Bytes> + Send + 'static,
    A::Error: Into<BoxError>,
{
    type Response = Response<PassedBody>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<PassedBody>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        // The server has to be ready only when the request gets there.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (head, body) = request.into_parts();
        let asked = Arc::new(Asked::read(&head));
        let (number, fate) = self.faults.settle(&asked);
        let connection = self.faults.shared.network.connect();
        let passage = Passage { faults: self.faults.clone(), number, asked, fate, connection };
        let inner = self.inner.clone().map_err(Into::into);
        let inner = inner.map_response(|answer: Response<A>| answer.map(pass));
        let request = Request::from_parts(head, pass(body));
        Box::pin(passage.go(BoxService::new(inner), request))
    }
}

/// One request on its way.
pub(super) struct Passage {
    pub(super) faults: Faults,
    pub(super) number: u64,
    pub(super) asked: Arc<Asked>,
    pub(super) fate: Fate,
    pub(super) connection: Connection,
}

impl Passage {
    async fn go(
        self,
        server: Upstream,
        request: Request<PassedBody>,
    ) -> Result<Response<PassedBody>, BoxError> {
        self.travel(self.fate.before).await;
        let answer = self.arrive(server, request).await;
        self.travel(self.fate.after).await;
        Ok(self.follow(answer?))
    }

    /// Waits for the time that the request travels, or for ever if it never arrives.
    async fn travel(&self, time: Duration) {
        if !time.is_zero() {
            tokio::time::sleep(time).await;
        }
        if self.faults.is_silent(self.connection) {
            std::future::pending::<()>().await;
        }
    }

    /// The answer that reaches the client.
    async fn arrive(
        &self,
        server: Upstream,
        request: Request<PassedBody>,
    ) -> Result<Response<PassedBody>, BoxError> {
        let (happened, answer) = match self.fate.failure {
            None if self.fate.stalls => {
                let (answer, _) = self.ask(server, request).await?;
                (Happened::Stalled(answer.status().as_u16()), Ok(answer.map(stall)))
            }
            None => {
                let (answer, as_of) = self.ask(server, request).await?;
                let code = answer.status().as_u16();
                let fresh = Happened::Answered(code);
                (as_of.map_or(fresh, |revision| Happened::AnsweredStale(code, revision)), Ok(answer))
            }
            Some(Failure::AnswerLost) => {
                let (answer, _) = self.ask(server, request).await?;
                (Happened::AnswerLost(answer.status().as_u16()), Err(broken(io::ErrorKind::ConnectionReset)))
            }
            Some(Failure::Unanswered) => {
                let (answer, _) = self.ask(server, request).await?;
                self.faults.note(self.number, &self.asked, Happened::Unanswered(answer.status().as_u16()));
                return std::future::pending().await;
            }
            Some(Failure::Refused) => (Happened::Refused, Err(broken(io::ErrorKind::ConnectionRefused))),
            Some(Failure::TooManyRequests(seconds)) => {
                (Happened::TooManyRequests(seconds), Ok(refuse(&Refusal::too_many_requests(seconds))))
            }
            Some(Failure::Forbidden) => {
                (Happened::Forbidden, Ok(refuse(&Refusal::denied("exceeded quota: the fault plan says so"))))
            }
            Some(Failure::Conflict) => {
                (Happened::Conflict, Ok(refuse(&Refusal::collision("the fault plan says so"))))
            }
            Some(Failure::InternalError) => {
                (Happened::InternalError, Ok(refuse(&Refusal::internal("the fault plan says so"))))
            }
        };
        self.faults.note(self.number, &self.asked, happened);
        answer
    }

    /// Sends the request to the server. The answer has a revision if it is a stale one.
    async fn ask(
        &self,
        mut server: Upstream,
        request: Request<PassedBody>,
    ) -> Result<(Response<PassedBody>, Option<u64>), BoxError> {
        let (head, body) = request.into_parts();
        if let Some(staleness) = self.fate.stale
            && let Some((answer, revision)) =
                stale::answer(&mut server, &head, self.asked.verb, staleness).await?
        {
            return Ok((answer, Some(revision)));
        }
        let answer = server.ready().await?.call(Request::from_parts(head, body)).await?;
        let is_dry_run = answer.extensions().get::<dispatch::DryRun>().is_some();
        if self.asked.verb.is_write() && !is_dry_run && answer.status().is_success() {
            self.faults.count_write();
        }
        Ok((answer, None))
    }

    /// Applies the fate of a watch to its body.
    fn follow(self, answer: Response<PassedBody>) -> Response<PassedBody> {
        if self.asked.verb != Verb::Watch || !answer.status().is_success() {
            return answer;
        }
        answer.map(|body| WatchBody::new(body, self).boxed_unsync())
    }
}

/// The error that a client gets when a connection fails.
pub(super) fn broken(kind: io::ErrorKind) -> BoxError {
    io::Error::new(kind, kind.to_string()).into()
}

/// An answer that does not come from the server.
pub(super) fn refuse(refusal: &Refusal) -> Response<PassedBody> {
    dispatch::refuse(refusal).map(pass)
}
