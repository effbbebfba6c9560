//! Connections that can be cut.

use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::stream;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, copy_bidirectional, duplex};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tonic::transport::Server;

use super::containerd::Containerd;
use super::cri::Cri;
use super::world::Shared;
use crate::proto::content::content_server::ContentServer;
use crate::proto::cri::image_service_server::ImageServiceServer;
use crate::proto::cri::runtime_service_server::RuntimeServiceServer;
use crate::proto::events::events_server::EventsServer;
use crate::runtime::Kind;

/// How many bytes a pipe holds.
const PIPE: usize = 64 * 1024;

pub(super) struct Wire {
    server: mpsc::UnboundedSender<DuplexStream>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_stopped: bool,
    /// Each carries the bytes of one connection. The server's own tasks cannot be ended, but these can.
    cables: JoinSet<()>,
}

impl Wire {
    /// Starts to serve.
    pub fn serve(shared: &Arc<Shared>) -> Self {
        let (server, incoming) = mpsc::unbounded_channel();
        let incoming = stream::unfold(incoming, async |mut incoming| {
            let connection = incoming.recv().await?;
            Some((Ok::<_, Infallible>(connection), incoming))
        });
        let is_containerd = shared.world().kind == Kind::Containerd;
        let (cri, containerd) = (Cri(Arc::clone(shared)), Containerd(Arc::clone(shared)));
        let router = Server::builder()
            .add_service(ImageServiceServer::new(cri.clone()))
            .add_service(RuntimeServiceServer::new(cri))
            .add_optional_service(is_containerd.then(|| ContentServer::new(containerd.clone())))
            .add_optional_service(is_containerd.then(|| EventsServer::new(containerd)));
        tokio::spawn(router.serve_with_incoming(Box::pin(incoming)));
        Self { server, state: Mutex::default() }
    }

    /// One end of a fresh connection.
    pub fn connect(&self) -> io::Result<DuplexStream> {
        if self.state().is_stopped {
            return Err(io::Error::from(io::ErrorKind::ConnectionRefused));
        }
        let (near, far) = duplex(PIPE);
        self.attach(far);
        Ok(near)
    }

    /// Joins a connection to the server; while it is stopped, the connection is closed.
    pub fn attach(&self, mut outside: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let mut state = self.state();
        if state.is_stopped {
            return;
        }
        let (mut inside, served) = duplex(PIPE);
        if self.server.send(served).is_ok() {
            state.cables.spawn(async move {
                // However a connection ends, both of its sides see it.
                let _ended = copy_bidirectional(&mut outside, &mut inside).await;
            });
        }
    }

    pub fn stop(&self) {
        let mut state = self.state();
        state.is_stopped = true;
        state.cables.abort_all();
    }

    pub fn start(&self) {
        self.state().is_stopped = false;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
