//! A registry on loopback, over plain HTTP: the part of the OCI distribution specification that pulls need.
//!
//! `shelf` holds the content, `route` parses requests, `answer` brings the two together, and `body` sends the result at
//! the uplink's pace.

mod answer;
mod body;
mod route;
mod shelf;

use std::convert::Infallible;
use std::future::ready;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use prewarm_image::Artifact;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;

use crate::pace::Pace;
use answer::answer;
use body::Body;
use shelf::Shelf;

/// How many bytes a connection buffers. More would leave the uplink before the node's link has room for them.
const BUFFER: u32 = 16 * 1024;
/// How many connections wait to be accepted.
const BACKLOG: u32 = 1024;

/// The pause after a connection that could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// A running registry. Dropping it ends it and everything that it is sending.
pub struct Registry {
    address: SocketAddr,
    shared: Arc<Shared>,
    server: JoinHandle<()>,
}

struct Shared {
    shelf: Mutex<Shelf>,
    uplink: Pace,
}

impl Registry {
    /// Starts an empty registry on a free port. Everything that it sends shares the uplink. It has to be called inside
    /// a tokio runtime.
    pub fn start(uplink: Pace) -> io::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.set_send_buffer_size(BUFFER)?;
        socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        let listener = socket.listen(BACKLOG)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared { shelf: Mutex::default(), uplink });
        let server = tokio::spawn(serve(listener, Arc::clone(&shared)));
        Ok(Self { address, shared, server })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The link that all answers share.
    pub fn uplink(&self) -> &Pace {
        &self.shared.uplink
    }

    /// Adds an image. A tag that was on another image moves.
    pub fn push(&self, repository: &str, tag: &str, artifact: Artifact) {
        self.shelf().push(repository, tag, artifact);
    }

    /// Restricts a repository to this account.
    pub fn protect(&self, repository: &str, username: &str, password: &str) {
        self.shelf().protect(repository, username, password);
    }

    /// Corrupts one byte of a blob, in all repositories. Returns whether there is such a blob.
    pub fn spoil(&self, digest: &str) -> bool {
        self.shelf().spoil(digest)
    }

    /// How often a blob was requested.
    pub fn downloads(&self, digest: &str) -> u64 {
        self.shelf().downloads(digest)
    }

    /// How many bytes of manifests and blobs it has sent.
    pub fn sent(&self) -> u64 {
        self.shelf().sent
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shared.shelf()
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Shared {
    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Accepts connections until it is dropped, which ends all of them.
async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                match accepted {
                    Ok((stream, _)) => drop(connections.spawn(converse(stream, Arc::clone(&shared)))),
                    // A connection that ended before it was accepted does not matter. If too many files are open,
                    // trying again at once would not help.
                    Err(_gone) => sleep(ACCEPT_PAUSE).await,
                }
            }
            Some(_ended) = connections.join_next() => {}
        }
    }
}

async fn converse(stream: TcpStream, shared: Arc<Shared>) {
    // Chunks are small and leave when the uplink allows it, so the kernel must not wait for more of them. A connection
    // that does not support this is slower, but works.
    let _result = stream.set_nodelay(true);
    let service = service_fn(|request| ready(Ok::<_, Infallible>(respond(request, &shared))));
    let buffer = usize::try_from(BUFFER).expect("a small number fits");
    let connection =
        http1::Builder::new().max_buf_size(buffer).serve_connection(TokioIo::new(stream), service);
    // A client that disconnects knows that it did.
    let _ended = connection.await;
}

fn respond(request: Request<Incoming>, shared: &Arc<Shared>) -> Response<Body> {
    let (request, _body) = request.into_parts();
    let answer = answer(&request, &mut shared.shelf());
    answer.map(|bytes| body::paced(bytes, shared))
}
