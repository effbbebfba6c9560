//! One connection: a handshake, and then requests until either side closes it.

use std::pin::{Pin, pin};
use std::sync::Arc;

use http::{Request, Response, header};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_rustls::server::TlsStream;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceExt as _};

use super::body::SocketBody;
use super::connections::Activity;
use super::keys::Keys;
use super::limits::Limits;
use crate::body::{PassedBody, pass};
use crate::dispatch;
use crate::refusal::Refusal;

/// The smallest buffer that hyper accepts.
const MIN_HEAD_BYTES: usize = 8192;

/// What all connections share.
pub struct Door {
    pub service: BoxCloneSyncService<Request<PassedBody>, Response<PassedBody>, BoxError>,
    pub keys: Arc<Keys>,
    pub limits: Limits,
    pub stopped: watch::Receiver<bool>,
}

type Asked = Pin<Box<dyn Future<Output = Result<Response<PassedBody>, BoxError>> + Send>>;

impl Door {
    /// Calls the service. The future is boxed, because the compiler cannot prove that it is `Send` otherwise.
    fn ask(&self, request: Request<Incoming>) -> Asked {
        Box::pin(self.service.clone().oneshot(request.map(pass)))
    }
}

/// Serves a connection until it ends. Its errors are left to the client to notice.
pub async fn serve(stream: TcpStream, door: Arc<Door>, activity: Arc<Activity>) {
    // Watches send short lines, and each should leave at once. A socket that does not support this still works.
    let _ = stream.set_nodelay(true);
    let handshake = timeout(door.limits.handshake, door.keys.acceptor.accept(stream));
    let Ok(Ok(stream)) = handshake.await else { return };
    let too_quiet = quiet_for_too_long(&activity, &door.limits);
    tokio::select! {
        () = take_requests(stream, &door, &activity) => {}
        () = too_quiet => {}
    }
}

async fn take_requests(stream: TlsStream<TcpStream>, door: &Arc<Door>, activity: &Arc<Activity>) {
    let speaks_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let stream = TokioIo::new(stream);
    let service = service_fn(|request| answer(door.clone(), activity.clone(), request));
    let limits = &door.limits;
    // Two branches with the same steps, because the two kinds of connection share no trait.
    if speaks_http2 {
        let head_bytes = u32::try_from(limits.head_bytes).unwrap_or(u32::MAX);
        let connection = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_concurrent_streams(limits.streams)
            .max_header_list_size(head_bytes)
            .serve_connection(stream, service);
        let mut connection = pin!(connection);
        tokio::select! {
            _ = connection.as_mut() => return,
            () = stopped(door.stopped.clone()) => connection.as_mut().graceful_shutdown(),
        }
        let _ended = connection.await;
    } else {
        // Idle connections are closed from outside, so hyper needs no timer of its own.
        let connection = http1::Builder::new()
            .header_read_timeout(None)
            .max_headers(limits.headers)
            .max_buf_size(limits.head_bytes.max(MIN_HEAD_BYTES))
            .serve_connection(stream, service);
        let mut connection = pin!(connection);
        tokio::select! {
            _ = connection.as_mut() => return,
            () = stopped(door.stopped.clone()) => connection.as_mut().graceful_shutdown(),
        }
        let _ended = connection.await;
    }
}

async fn answer(
    door: Arc<Door>,
    activity: Arc<Activity>,
    request: Request<Incoming>,
) -> Result<Response<SocketBody>, BoxError> {
    // Checked before the body is read, so that the body of a stranger costs nothing.
    let is_known = has_token(&door.keys, &request);
    let under_way = activity.begin(is_known);
    let response = if is_known {
        match timeout(door.limits.body, door.ask(request)).await {
            Ok(answered) => answered?,
            Err(_) => dispatch::refuse(&Refusal::too_slow(door.limits.body)).map(pass),
        }
    } else {
        dispatch::refuse(&Refusal::unauthorized()).map(pass)
    };
    Ok(response.map(|body| SocketBody::new(body, under_way, stopped(door.stopped.clone()))))
}

fn has_token<B>(keys: &Keys, request: &Request<B>) -> bool {
    let given = request.headers().get(header::AUTHORIZATION).map(http::HeaderValue::as_bytes);
    let given = given.and_then(|given| given.split_at_checked("Bearer ".len()));
    given.is_some_and(|(scheme, token)| scheme.eq_ignore_ascii_case(b"Bearer ") && keys.admits(token))
}

/// Ends when the server stops.
async fn stopped(mut stopped: watch::Receiver<bool>) {
    // A server that was dropped has stopped too.
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

/// Returns when a connection has been without a request for longer than it may.
async fn quiet_for_too_long(activity: &Activity, limits: &Limits) {
    loop {
        let quiet = activity.quiet();
        let (is_known, since) = quiet.unwrap_or_else(|| (false, Instant::now()));
        sleep_until(since + if is_known { limits.idle } else { limits.first_request }).await;
        if quiet.is_some() && activity.quiet() == quiet {
            return;
        }
    }
}
