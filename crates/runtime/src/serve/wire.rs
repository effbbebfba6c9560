//! Connections that can be cut.

use std::convert::Infallible;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::stream;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, copy_bidirectional, duplex};
use tokio::net::UnixListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tonic::transport::Server;

use super::backend::Backend;
use super::containerd::Containerd;
use super::cri::Cri;
use crate::endpoint::Endpoint;
use crate::proto::content::content_server::ContentServer;
use crate::proto::cri::image_service_server::ImageServiceServer;
use crate::proto::cri::runtime_service_server::RuntimeServiceServer;
use crate::proto::events::events_server::EventsServer;
use crate::runtime::Kind;

/// How many bytes a pipe buffers.
const PIPE: usize = 64 * 1024;

/// A runtime that is served. Clones share it.
#[derive(Clone)]
pub struct Wire(Arc<Switchboard>);

struct Switchboard {
    server: mpsc::UnboundedSender<DuplexStream>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_stopped: bool,
    /// Each task carries the bytes of one connection. The server's own tasks cannot be ended, but these can.
    cables: JoinSet<()>,
}

impl Wire {
    /// Starts to serve. It has to be called inside a tokio runtime.
    pub fn serve(backend: &Arc<impl Backend>) -> Self {
        let (server, incoming) = mpsc::unbounded_channel();
        let incoming = stream::unfold(incoming, async |mut incoming| {
            let connection = incoming.recv().await?;
            Some((Ok::<_, Infallible>(connection), incoming))
        });
        let is_containerd = backend.kind() == Kind::Containerd;
        let (cri, containerd) = (|| Cri(Arc::clone(backend)), || Containerd(Arc::clone(backend)));
        let router = Server::builder()
            .add_service(ImageServiceServer::new(cri()))
            .add_service(RuntimeServiceServer::new(cri()))
            .add_optional_service(is_containerd.then(|| ContentServer::new(containerd())))
            .add_optional_service(is_containerd.then(|| EventsServer::new(containerd())));
        tokio::spawn(router.serve_with_incoming(Box::pin(incoming)));
        Self(Arc::new(Switchboard { server, state: Mutex::default() }))
    }

    /// Its address: a pipe in memory.
    pub fn endpoint(&self) -> Endpoint {
        let wire = self.clone();
        Endpoint::pipe(move || wire.connect())
    }

    /// Makes it listen on a unix socket too.
    pub fn listen(&self, socket: &Path) -> io::Result<Endpoint> {
        let listener = UnixListener::bind(socket)?;
        let wire = self.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                wire.attach(stream);
            }
        });
        Ok(Endpoint::unix(socket))
    }

    /// One end of a fresh connection.
    fn connect(&self) -> io::Result<DuplexStream> {
        if self.state().is_stopped {
            return Err(io::Error::from(io::ErrorKind::ConnectionRefused));
        }
        let (near, far) = duplex(PIPE);
        self.attach(far);
        Ok(near)
    }

    /// Connects a stream to the server. While the server is stopped, the stream is closed.
    fn attach(&self, mut outside: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let mut state = self.state();
        if state.is_stopped {
            return;
        }
        let (mut inside, served) = duplex(PIPE);
        if self.0.server.send(served).is_ok() {
            state.cables.spawn(async move {
                // However a connection ends, both sides see it.
                let _ended = copy_bidirectional(&mut outside, &mut inside).await;
            });
        }
    }

    /// Cuts all connections and refuses further ones.
    pub fn stop(&self) {
        let mut state = self.state();
        state.is_stopped = true;
        state.cables.abort_all();
    }

    /// Accepts connections again after [`stop`](Self::stop).
    pub fn start(&self) {
        self.state().is_stopped = false;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
