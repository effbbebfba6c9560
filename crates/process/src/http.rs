//! What a process answers over HTTP: `/healthz` and `/readyz` for the kubelet, `/metrics` for Prometheus.
//!
//! Anybody who can reach the port may ask, so everything is bounded: the connections, how long each may take, and how
//! much is read.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tracing::{debug, warn};

mod checks;

pub use checks::Checks;

/// At most this many connections are served at a time. One more ends one that has asked nothing yet, of the address that has
/// most of those: whoever opens many loses their own, and the kubelet's probes, which come from another address, keep theirs.
pub const MOST_CONNECTIONS: usize = 32;
/// How long a request may take to arrive.
pub const HEADER_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a connection may last, whatever its state.
pub const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest request line with its headers, in bytes. It is the lowest limit that hyper accepts.
const MOST_HEADER_BYTES: usize = 8192;
/// The pause after a connection could not be accepted, which happens when the process has too many files open.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Renders all metrics in the form that Prometheus reads (`application/openmetrics-text`).
pub type Metrics = Arc<dyn Fn() -> String + Send + Sync>;

/// What the process answers.
#[derive(Clone)]
pub struct Answers {
    /// Whether the process works at all; if not, the kubelet restarts it.
    pub health: Checks,
    /// Whether the process can do its work at the moment.
    pub readiness: Checks,
    pub metrics: Metrics,
}

/// Serves until the task is dropped or aborted.
pub async fn serve(listener: TcpListener, answers: Answers) {
    serve_within(listener, answers, HEADER_TIMEOUT).await;
}

async fn serve_within(listener: TcpListener, answers: Answers, header_timeout: Duration) {
    let answers = Arc::new(answers);
    let mut connections = Connections::default();
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                let is_idle = Arc::new(AtomicBool::new(true));
                let served = serve_one(stream, answers.clone(), header_timeout, is_idle.clone());
                connections.add(peer.ip(), is_idle, served);
            }
            Err(error) => {
                warn!(%error, "a connection to this process's own port could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// The connections that are being served. Dropping this ends them all.
#[derive(Default)]
struct Connections {
    tasks: JoinSet<()>,
    /// Oldest first.
    by_age: VecDeque<Connection>,
}

struct Connection {
    task: AbortHandle,
    peer: IpAddr,
    /// Whether its request has not arrived yet.
    is_idle: Arc<AtomicBool>,
}

impl Connections {
    fn add(
        &mut self,
        peer: IpAddr,
        is_idle: Arc<AtomicBool>,
        served: impl Future<Output = ()> + Send + 'static,
    ) {
        while self.tasks.try_join_next().is_some() {}
        self.by_age.retain(|one| !one.task.is_finished());
        if self.by_age.len() >= MOST_CONNECTIONS
            && let Some(ended) = self.by_age.remove(self.least_wanted())
        {
            ended.task.abort();
        }
        let task = self.tasks.spawn(served);
        self.by_age.push_back(Connection { task, peer, is_idle });
    }

    /// The connection that makes room: of those that have asked nothing yet, the oldest of the address that has most of
    /// them; if all have asked, the oldest.
    fn least_wanted(&self) -> usize {
        let is_idle = |one: &Connection| one.is_idle.load(Ordering::Relaxed);
        let mut idle: BTreeMap<IpAddr, usize> = BTreeMap::new();
        for one in self.by_age.iter().filter(|one| is_idle(one)) {
            *idle.entry(one.peer).or_default() += 1;
        }
        let most = idle.values().max();
        let is_of_most = |one: &Connection| is_idle(one) && idle.get(&one.peer) == most;
        self.by_age.iter().position(is_of_most).unwrap_or(0)
    }
}

/// Serves one request. Connections are not kept alive: probes and scrapes come seconds apart.
async fn serve_one(
    stream: TcpStream,
    answers: Arc<Answers>,
    header_timeout: Duration,
    is_idle: Arc<AtomicBool>,
) {
    let service = service_fn(move |request: Request<Incoming>| {
        is_idle.store(false, Ordering::Relaxed);
        let response = answer(request.method(), request.uri().path(), &answers);
        async move { Ok::<_, Infallible>(response) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(header_timeout)
        .keep_alive(false)
        .max_buf_size(MOST_HEADER_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    match tokio::time::timeout(CONNECTION_TIMEOUT, connection).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => debug!(%error, "a connection to this process's own port broke off"),
        Err(_) => debug!("a connection to this process's own port took too long"),
    }
}

/// hyper itself leaves out the body of an answer to HEAD.
fn answer(method: &Method, path: &str, answers: &Answers) -> Response<Full<Bytes>> {
    if !["/healthz", "/readyz", "/metrics"].contains(&path) {
        return text(StatusCode::NOT_FOUND, "there are only /healthz, /readyz and /metrics\n");
    }
    if method != Method::GET && method != Method::HEAD {
        let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are answered\n");
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    match path {
        "/healthz" => verdict(&answers.health),
        "/readyz" => verdict(&answers.readiness),
        _ => metrics(&answers.metrics),
    }
}

fn verdict(checks: &Checks) -> Response<Full<Bytes>> {
    let failing = checks.failing();
    if failing.is_empty() {
        let remark = checks.remark().map(|remark| format!("ok: {remark}"));
        return text(StatusCode::OK, remark.unwrap_or_else(|| "ok".to_owned()));
    }
    let lines: Vec<String> = failing.iter().map(|(name, reason)| format!("{name}: {reason}")).collect();
    text(StatusCode::INTERNAL_SERVER_ERROR, lines.join("\n"))
}

fn metrics(counted: &Metrics) -> Response<Full<Bytes>> {
    const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let mut response = text(StatusCode::OK, counted());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(OPEN_METRICS));
    response
}

fn text(status: StatusCode, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

#[cfg(test)]
mod tests;
