//! Records the writes of clients, as a layer around the service of a client.

use std::pin::Pin;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::FutureExt as _;
use http::header::CONTENT_TYPE;
use http::{Method, Request, Response};
use kube::client::Body;
use tower::{BoxError, Layer, Service};

/// One write as it was sent.
#[derive(Clone, Debug)]
pub struct Write {
    pub method: Method,
    /// With the query.
    pub path: String,
    pub content_type: String,
    pub body: Bytes,
    /// The code of the answer; zero until it is there.
    status: Arc<AtomicU16>,
}

impl Write {
    pub fn is_taken(&self) -> bool {
        (200..300).contains(&self.status.load(Ordering::Relaxed))
    }

    /// The path without the query.
    pub fn place(&self) -> &str {
        self.path.split_once('?').map_or(self.path.as_str(), |(path, _)| path)
    }
}

/// What was written. Clones share it.
#[derive(Clone, Default)]
pub struct Recorder {
    writes: Arc<Mutex<Vec<Write>>>,
}

impl Recorder {
    /// What was written since the last time.
    pub fn take(&self) -> Vec<Write> {
        std::mem::take(&mut *self.writes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How many objects of this resource were made since, by those whose answer is there.
    pub fn taken(&self, resource: &str) -> usize {
        let writes = self.writes.lock().unwrap_or_else(PoisonError::into_inner);
        let is_made = |write: &&Write| write.method == Method::POST && write.place().ends_with(resource);
        writes.iter().filter(is_made).filter(|write| write.is_taken()).count()
    }

    /// How many writes there were since.
    pub fn count(&self) -> usize {
        self.writes.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn note(&self, write: Write) {
        self.writes.lock().unwrap_or_else(PoisonError::into_inner).push(write);
    }
}

impl<S> Layer<S> for Recorder {
    type Service = Recorded<S>;

    fn layer(&self, inner: S) -> Recorded<S> {
        Recorded { recorder: self.clone(), inner }
    }
}

/// A service whose writes are recorded.
pub struct Recorded<S> {
    recorder: Recorder,
    inner: S,
}

type Answering<A> = Pin<Box<dyn Future<Output = Result<Response<A>, BoxError>> + Send>>;

impl<S, A> Service<Request<Body>> for Recorded<S>
where
    S: Service<Request<Body>, Response = Response<A>>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
{
    type Response = Response<A>;
    type Error = BoxError;
    type Future = Answering<A>;

    fn poll_ready(&mut self, ctx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(ctx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        if request.method() == Method::GET {
            let answer = self.inner.call(request);
            return Box::pin(async { answer.await.map_err(Into::into) });
        }
        let (head, body) = request.into_parts();
        let body =
            body.collect_bytes().now_or_never().and_then(Result::ok).expect("what a client sends is whole");
        let status = Arc::new(AtomicU16::new(0));
        let content_type = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        self.recorder.note(Write {
            method: head.method.clone(),
            path: head.uri.path_and_query().map(ToString::to_string).unwrap_or_default(),
            content_type: content_type.unwrap_or_default().to_owned(),
            body: body.clone(),
            status: status.clone(),
        });
        let answer = self.inner.call(Request::from_parts(head, Body::from(body)));
        Box::pin(async move {
            let answer = answer.await.map_err(Into::into)?;
            status.store(answer.status().as_u16(), Ordering::Relaxed);
            Ok(answer)
        })
    }
}
