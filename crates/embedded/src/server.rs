//! The server as a service: reads a request, dispatches it and returns the answer.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde_json::Value;

use crate::body::Body;
use crate::dispatch;
use crate::options::Options;
use crate::refusal::Refusal;
use crate::state::State;
use prewarm_clock::Clock;

/// An in-process Kubernetes API. Clones share the same server.
#[derive(Clone)]
pub struct Server {
    pub(crate) state: Arc<Mutex<State>>,
    pub(crate) clock: Arc<dyn Clock>,
    max_body_bytes: usize,
}

/// A request whose body has been read.
pub(crate) type Whole = Request<Bytes>;

impl Server {
    /// An empty server with the built-in kinds and the namespaces that every cluster has.
    pub fn new(clock: Arc<dyn Clock>, options: Options) -> Self {
        let max_body_bytes = options.max_body_bytes;
        let server = Self { state: Arc::new(Mutex::new(State::new(options))), clock, max_body_bytes };
        for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            server.install_namespace(name);
        }
        server
    }

    /// Another server that starts as a copy of this one, for simulations that would build the same state thousands of
    /// times.
    #[must_use]
    pub fn copy(&self, clock: Arc<dyn Clock>) -> Self {
        let state = Arc::new(Mutex::new(self.lock().copy()));
        Self { state, clock, max_body_bytes: self.max_body_bytes }
    }

    /// Stores an object without a request, such as a definition or another object that a cluster should start with.
    pub fn install(&self, object: &Value) -> Result<(), Refusal> {
        dispatch::install(self, object)
    }

    /// Stores our own definitions.
    pub fn install_definitions(&self) {
        for definition in prewarm_api::crd::all() {
            let definition = serde_json::to_value(definition).expect("a definition is JSON");
            self.install(&definition).expect("our definitions are valid");
        }
    }

    /// Stores a namespace.
    ///
    /// # Panics
    /// If no namespace can have this name.
    pub fn install_namespace(&self, name: &str) {
        let namespace =
            serde_json::json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
        self.install(&namespace).expect("a namespace with a plain name is valid");
    }

    /// A client that talks to this server without a socket.
    pub fn client(&self) -> kube::Client {
        kube::Client::new(self.clone(), "default")
    }

    /// How many times an object was serialised: once per change, however many clients watch it.
    pub fn serialised_objects(&self) -> u64 {
        self.lock().serialised
    }

    /// The last revision. It grows with every write, so that a waiting test need not look while nothing changes.
    pub fn revision(&self) -> u64 {
        self.lock().revision()
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // A panic while the lock was held is a bug that its request has already shown. The store itself is consistent,
        // because a write replaces objects and never changes them in place.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn answer<B>(self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body + Send,
        B::Data: Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (head, body) = request.into_parts();
        let limit = self.max_body_bytes;
        let body = match Limited::new(body, limit).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => {
                let refusal = Refusal::too_large(format!("Request entity too large: limit is {limit}"));
                return dispatch::refuse(&refusal);
            }
            Err(error) => {
                return dispatch::refuse(&Refusal::bad_request(format!("reading the body: {error}")));
            }
        };
        dispatch::answer(&self, &Request::from_parts(head, body))
    }
}

impl<B> tower::Service<Request<B>> for Server
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let server = self.clone();
        Box::pin(async move { Ok(server.answer(request).await) })
    }
}
