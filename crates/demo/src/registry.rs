//! A registry on loopback, over plain HTTP: the part of the OCI distribution specification that pulls need.
//!
//! `shelf` holds the content, `route` parses requests, `answer` brings the two together, and `body` sends the result at
//! the uplink's pace.

mod answer;
mod body;
mod route;
mod shelf;

use std::future::ready;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::Response;
use http::request::Parts;
use prewarm_image::Artifact;

use crate::pace::Pace;
use crate::serve::{Body, Server};
use answer::answer;
pub(crate) use route::{Route, route};
use shelf::Shelf;
pub use shelf::Traffic;

/// A running registry. Dropping it ends it and everything that it is sending.
pub struct Registry {
    shared: Arc<Shared>,
    server: Server,
}

struct Shared {
    shelf: Mutex<Shelf>,
    uplink: Pace,
}

impl Registry {
    /// Starts an empty registry on a free port. Everything that it sends shares the uplink. It has to be called inside
    /// a tokio runtime.
    pub fn start(uplink: Pace) -> io::Result<Self> {
        let shared = Arc::new(Shared { shelf: Mutex::default(), uplink });
        let answering = Arc::clone(&shared);
        let server = Server::start(move |request| ready(respond(&request, &answering)))?;
        Ok(Self { shared, server })
    }

    pub fn address(&self) -> SocketAddr {
        self.server.address()
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

    /// Who asked for anything of a repository, and what was sent of it.
    pub fn traffic(&self, repository: &str) -> Traffic {
        self.shelf().traffic(repository)
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shared.shelf()
    }
}

impl Shared {
    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn respond(request: &Parts, shared: &Arc<Shared>) -> Response<Body> {
    let answer = answer(request, &mut shared.shelf());
    let repository = route(request.uri.path()).and_then(Route::repository).unwrap_or_default();
    answer.map(|bytes| body::paced(bytes, repository, shared))
}
