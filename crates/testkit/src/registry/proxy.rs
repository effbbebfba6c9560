//! A server in front of a registry, or of a mirror, that can fail in every way that registries do.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use anyhow::Context as _;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use prewarm_bed::inside::BRIDGE_ADDRESS;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

use super::fault::{Fault, On, Rule, Seen};
use super::login::{Challenge, Login};
use super::serve::serve;
use super::{Registry, Upstream};

/// A running proxy. Without a fault it passes everything on. Dropping it closes all its connections.
pub struct FaultProxy {
    script: Arc<Script>,
    server: AbortHandle,
}

/// What all connections share.
pub(super) struct Script {
    pub(super) upstream: String,
    pub(super) url: String,
    state: Mutex<State>,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) rules: Vec<Rule>,
    pub(super) login: Option<Login>,
    seen: Vec<Seen>,
    /// How many requests came before the first of those, because an answer under way must update its own request.
    forgotten: usize,
}

impl State {
    /// Records a request and returns its number.
    pub(super) fn note(&mut self, seen: Seen) -> usize {
        self.seen.push(seen);
        self.forgotten + self.seen.len() - 1
    }

    /// The record of a request, unless it is forgotten.
    pub(super) fn noted(&mut self, number: usize) -> Option<&mut Seen> {
        self.seen.get_mut(number.checked_sub(self.forgotten)?)
    }

    fn forget(&mut self) {
        self.forgotten += self.seen.len();
        self.seen.clear();
    }
}

impl FaultProxy {
    /// Starts a proxy in front of this registry or mirror, over plain HTTP.
    pub async fn start(upstream: &impl Upstream) -> anyhow::Result<Self> {
        Self::listen(upstream, None).await
    }

    /// Starts a proxy that serves HTTPS with a certificate that no node trusts.
    pub async fn start_untrusted(registry: &Registry) -> anyhow::Result<Self> {
        Self::listen(registry, Some(untrusted()?)).await
    }

    async fn listen(upstream: &impl Upstream, tls: Option<TlsAcceptor>) -> anyhow::Result<Self> {
        let address = SocketAddr::from((BRIDGE_ADDRESS, 0));
        let listener = TcpListener::bind(address).await.context("opening a port for the proxy")?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://{}", listener.local_addr()?);
        let script = Arc::new(Script { upstream: upstream.url(), url, state: Mutex::default() });
        let server = tokio::spawn(accept(listener, tls, Arc::clone(&script))).abort_handle();
        Ok(Self { script, server })
    }

    /// Applies a fault to all such requests. The first fault that fits a request counts.
    pub fn fail(&self, on: On, fault: Fault) {
        self.script.state().rules.push(Rule::new(on, fault, None));
    }

    /// Applies a fault to the next `times` such requests. Those after them succeed.
    pub fn fail_times(&self, times: usize, on: On, fault: Fault) {
        self.script.state().rules.push(Rule::new(on, fault, Some(times)));
    }

    /// Removes all faults. Requests that already hang or stall go on doing so.
    pub fn heal(&self) {
        self.script.state().rules.clear();
    }

    /// Allows only this user. A later call changes the password or the user.
    pub fn require(&self, user: &str, password: &str, challenge: Challenge) {
        self.script.state().login = Some(Login::new(user, password, challenge));
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<Seen> {
        self.script.state().seen.clone()
    }

    /// The requests so far that are selected.
    pub fn requests_on(&self, on: &On) -> Vec<Seen> {
        self.script.state().seen.iter().filter(|seen| on.has(&seen.path)).cloned().collect()
    }

    /// Forgets the requests so far, including those that are still being answered.
    pub fn forget(&self) {
        self.script.state().forget();
    }

    /// Address and port.
    pub fn host(&self) -> &str {
        self.script.url.split_once("://").map_or("", |(_, host)| host)
    }

    /// The full reference of a tag. Tests of credentials need it, with [`Node::lead`](crate::Node::lead) for the
    /// [`host`](Self::host): CRI-O sends credentials only to the host in an image's name.
    pub fn reference(&self, name: &str, tag: &str) -> String {
        format!("{}/{name}:{tag}", self.host())
    }
}

impl Upstream for FaultProxy {
    fn url(&self) -> String {
        self.script.url.clone()
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Script {
    /// After a panic with the lock held, the state is still true.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A self-signed certificate for the right address.
fn untrusted() -> anyhow::Result<TlsAcceptor> {
    let key = rcgen::generate_simple_self_signed(vec![BRIDGE_ADDRESS.to_string()])?;
    let private = key.signing_key.serialize_der().try_into().map_err(anyhow::Error::msg)?;
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = tokio_rustls::rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![key.cert.der().clone()], private)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// The connections are in the set, so that they end with the server.
async fn accept(listener: TcpListener, tls: Option<TlsAcceptor>, script: Arc<Script>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (tls, script) = (tls.clone(), Arc::clone(&script));
        // A client may disconnect in the middle, which is no error.
        connections.spawn(async move {
            let reset = Arc::new(AtomicBool::new(false));
            let stream = Resettable { stream, reset: Arc::clone(&reset) };
            let _gone = match tls {
                None => converse(stream, script, reset).await,
                Some(tls) => match tls.accept(stream).await {
                    Ok(stream) => converse(stream, script, reset).await,
                    Err(_) => Ok(()),
                },
            };
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn converse<S>(stream: S, script: Arc<Script>, reset: Arc<AtomicBool>) -> hyper::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let service = service_fn(move |request| serve(request, Arc::clone(&script), Arc::clone(&reset)));
    http1::Builder::new().serve_connection(TokioIo::new(stream), service).await
}

/// A connection that can be reset instead of closed.
struct Resettable {
    stream: TcpStream,
    reset: Arc<AtomicBool>,
}

impl Drop for Resettable {
    fn drop(&mut self) {
        if self.reset.load(Ordering::Relaxed) {
            let _closed_anyway = self.stream.set_zero_linger();
        }
    }
}

impl AsyncRead for Resettable {
    fn poll_read(
        mut self: Pin<&mut Self>,
        ctx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(ctx, into)
    }
}

impl AsyncWrite for Resettable {
    fn poll_write(mut self: Pin<&mut Self>, ctx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(ctx, from)
    }

    fn poll_flush(mut self: Pin<&mut Self>, ctx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(ctx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, ctx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.reset.load(Ordering::Relaxed) {
            // A clean shutdown would come before the reset.
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_shutdown(ctx)
    }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;

    #[test]
    fn a_late_answer_does_not_update_another_request() {
        let seen = || Seen {
            method: Method::GET,
            path: String::new(),
            range: None,
            user: None,
            status: None,
            bytes: 0,
            is_complete: false,
        };
        let mut state = State::default();
        let early = state.note(seen());
        state.forget();
        let late = state.note(seen());
        assert!(state.noted(early).is_none());
        state.noted(late).unwrap().bytes = 1;
        assert_eq!(state.seen[0].bytes, 1);
    }
}
