//! The nodes' mirrors: the images that a node has, the others get from it over HTTP on loopback, at the pace of its link.
//!
//! One server answers for all of them. It looks for the node that has what is asked for and sends least, where a real
//! mirror asks its peers. The registry is never asked, and its bytes are not counted here.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use futures::stream::unfold;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::request::Parts;
use http::{Method, Response, StatusCode};
use http_body_util::{BodyExt as _, Empty, StreamBody};
use hyper::body::Frame;
use tokio::fs::File;
use tokio::io::AsyncReadExt as _;

use crate::pace::Pace;
use crate::registry::{Route, route};
use crate::serve::{Body, CHUNK, Server};
use crate::store::{Piece, Store};

/// The mirrors of all nodes. Dropping them ends them and everything that they are sending.
pub struct Mirrors {
    shared: Arc<Shared>,
    server: Server,
}

#[derive(Default)]
struct Shared {
    peers: Mutex<Vec<Peer>>,
    sent: AtomicU64,
}

/// A node that others get images from.
struct Peer {
    store: Store,
    uplink: Pace,
    /// Each transfer holds a clone.
    transfers: Arc<()>,
}

/// A piece of content on its way from a node.
struct Transfer {
    file: File,
    uplink: Pace,
    _place: Arc<()>,
    shared: Arc<Shared>,
}

impl Mirrors {
    /// Starts them. They have to be called inside a tokio runtime.
    pub fn start() -> io::Result<Self> {
        let shared = Arc::<Shared>::default();
        let answering = Arc::clone(&shared);
        let server = Server::start(move |request| answer(request, Arc::clone(&answering)))?;
        Ok(Self { shared, server })
    }

    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Offers the images of a node, which all leave it over this link.
    pub fn join(&self, store: Store, uplink: Pace) {
        self.shared.peers().push(Peer { store, uplink, transfers: Arc::default() });
    }

    /// How many bytes of manifests and blobs they have sent.
    pub fn sent(&self) -> u64 {
        self.shared.sent.load(Ordering::Relaxed)
    }
}

async fn answer(request: Parts, shared: Arc<Shared>) -> Response<Body> {
    let found = digest(&request, &shared).and_then(|digest| {
        let (piece, uplink, place) = shared.find(&digest)?;
        Some((digest, piece, uplink, place))
    });
    let Some((digest, piece, uplink, place)) = found else { return refusal() };
    // The image may have been removed a moment ago.
    let Ok(file) = File::open(&piece.path).await else { return refusal() };
    let body = match request.method {
        Method::GET => paced(Transfer { file, uplink, _place: place, shared }),
        _ => empty(),
    };
    let media_type = piece.media_type.as_deref().unwrap_or("application/octet-stream");
    let answer = Response::builder()
        .header(CONTENT_TYPE, media_type)
        .header(CONTENT_LENGTH, piece.size)
        .header("docker-content-digest", digest);
    answer.body(body).unwrap_or_else(|_unwritable| refusal())
}

/// The digest of what is asked for. A tag is what any node has under it.
fn digest(request: &Parts, shared: &Shared) -> Option<String> {
    match route(request.uri.path())? {
        Route::Ping => None,
        Route::Blob { digest, .. } => Some(digest.to_owned()),
        Route::Manifest { reference, .. } if reference.contains(':') => Some(reference.to_owned()),
        Route::Manifest { repository, reference } => {
            let registry = request.uri.query()?.strip_prefix("ns=")?;
            let name = format!("{registry}/{repository}:{reference}");
            shared.peers().iter().find_map(|peer| peer.store.digest_of(&name))
        }
    }
}

fn refusal() -> Response<Body> {
    let mut answer = Response::new(empty());
    *answer.status_mut() = StatusCode::NOT_FOUND;
    answer
}

fn empty() -> Body {
    Empty::<Bytes>::new().boxed_unsync()
}

/// Sends a file at the pace of the link of its node. If it cannot be read, the body ends early.
fn paced(transfer: Transfer) -> Body {
    let chunks = unfold(transfer, async |mut transfer| {
        let mut chunk = BytesMut::with_capacity(CHUNK);
        let read = transfer.file.read_buf(&mut chunk).await.ok().filter(|read| *read > 0)?;
        transfer.uplink.pass(read).await;
        transfer.shared.sent.fetch_add(read as u64, Ordering::Relaxed);
        Some((Ok(Frame::data(chunk.freeze())), transfer))
    });
    StreamBody::new(chunks).boxed_unsync()
}

impl Shared {
    /// Of the nodes that have this the one that sends least, with a place among its transfers.
    fn find(&self, digest: &str) -> Option<(Piece, Pace, Arc<()>)> {
        let peers = self.peers();
        let have_it = peers.iter().filter_map(|peer| Some((peer, peer.store.piece(digest)?)));
        let (peer, piece) = have_it.min_by_key(|(peer, _)| Arc::strong_count(&peer.transfers))?;
        Some((piece, peer.uplink.clone(), Arc::clone(&peer.transfers)))
    }

    fn peers(&self) -> MutexGuard<'_, Vec<Peer>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
