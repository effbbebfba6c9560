//! A mirror on each node that serves what the node has and, else, what the mirrors of other nodes have.
//!
//! It speaks what Spegel speaks: `/v2/…` with the parameter `ns`, a header that keeps mirrors from asking each other in
//! circles, ranges of blobs, and 404 when nobody has it. It listens on its node's network and asks others from there, so
//! what passes between nodes passes over their cables. Mirrors that fail are made with a [`FaultProxy`](crate::FaultProxy).

mod network;
mod route;
mod serve;
mod store;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Context as _;
use http::{Method, StatusCode};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::{AbortHandle, JoinSet};

use crate::node::{Node, Runtime};
use crate::registry::Upstream;
use network::Network;
use store::Store;

/// The port of the mirror on each node, which is Spegel's.
const PORT: u16 = 30_020;

/// A running mirror of a node with containerd. Dropping it closes all its connections.
pub struct PeerMirror {
    shared: Arc<Shared>,
    server: AbortHandle,
}

/// Who answered a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The node itself has it.
    Here,
    /// Another node has it.
    Peer,
    Nobody,
}

/// A request that was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    pub method: Method,
    /// The path, with its query.
    pub path: String,
    pub range: Option<String>,
    /// Whether the mirror of another node asked.
    pub is_from_peer: bool,
    pub status: StatusCode,
    pub source: Source,
}

/// What all connections share.
struct Shared {
    address: SocketAddr,
    store: Store,
    network: Network,
    peers: Mutex<Vec<SocketAddr>>,
    /// How often they were asked.
    turn: AtomicUsize,
    asked: Mutex<Vec<Asked>>,
}

impl PeerMirror {
    /// Starts a mirror on a node. It knows no others until they are introduced.
    pub async fn start(node: &Node) -> anyhow::Result<Self> {
        anyhow::ensure!(node.kind() == Runtime::Containerd, "{} has no containerd", node.name());
        let network = Network::of(node);
        let listener = network.listen(SocketAddr::from((Ipv4Addr::UNSPECIFIED, PORT))).await;
        let listener = listener.with_context(|| format!("opening the mirror's port on {}", node.name()))?;
        let (peers, turn, asked) = (Mutex::default(), AtomicUsize::new(0), Mutex::default());
        let address = SocketAddr::from((node.address(), PORT));
        let shared = Arc::new(Shared { address, store: Store::of(node), network, peers, turn, asked });
        let server = tokio::spawn(accept(listener, Arc::clone(&shared))).abort_handle();
        Ok(Self { shared, server })
    }

    /// Lets each of these mirrors ask all others.
    pub fn introduce(mirrors: &[&Self]) {
        let addresses = || mirrors.iter().map(|mirror| mirror.shared.address);
        for mirror in mirrors {
            *lock(&mirror.shared.peers) =
                addresses().filter(|address| *address != mirror.shared.address).collect();
        }
    }

    /// What was asked so far, by the node's own programs and by other mirrors.
    pub fn asked(&self) -> Vec<Asked> {
        lock(&self.shared.asked).clone()
    }

    /// Forgets what was asked so far.
    pub fn forget(&self) {
        lock(&self.shared.asked).clear();
    }
}

impl Upstream for PeerMirror {
    fn url(&self) -> String {
        format!("http://{}", self.shared.address)
    }
}

impl Drop for PeerMirror {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    // Dropped with the server, and with it all connections.
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        connections.spawn(async move {
            let service = service_fn(move |request| serve::serve(request, Arc::clone(&shared)));
            let _gone = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
        while connections.try_join_next().is_some() {}
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
