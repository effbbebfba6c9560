//! The address of a runtime, and the channel to it.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use tonic::transport::{self, Channel};

use crate::socket::{self, SocketError};

/// The longest list of headers that is read. The text of a failure is in a header.
const MAX_HEADERS: u32 = 64 * 1024;

/// The address of a runtime: a unix socket, or for tests an in-memory pipe.
#[derive(Clone)]
pub struct Endpoint(Place);

#[derive(Clone)]
enum Place {
    Unix(PathBuf),
    Pipe(Connector),
}

type Connector = Arc<dyn Fn() -> io::Result<DuplexStream> + Send + Sync>;

impl Endpoint {
    /// A socket. No part of its path may be a symbolic link.
    pub fn unix(path: impl Into<PathBuf>) -> Self {
        Self(Place::Unix(path.into()))
    }

    /// A pipe in memory: each call of the connector returns one end of a fresh connection.
    pub fn pipe(connector: impl Fn() -> io::Result<DuplexStream> + Send + Sync + 'static) -> Self {
        Self(Place::Pipe(Arc::new(connector)))
    }

    /// Connects once, to find out what is wrong before anything is sent.
    pub(crate) async fn try_out(&self) -> Result<(), SocketError> {
        match &self.0 {
            Place::Unix(path) => socket::connect(path).await.map(drop),
            Place::Pipe(_) => Ok(()),
        }
    }

    /// A channel that connects with the first call, and reconnects with the first call after a connection was lost. It
    /// has no timers, so that an idle process sleeps.
    pub(crate) fn channel(&self) -> Channel {
        let endpoint = self.clone();
        transport::Endpoint::from_static("http://localhost")
            .http2_max_header_list_size(MAX_HEADERS)
            .connect_with_connector_lazy(tower::service_fn(move |_| {
                let endpoint = endpoint.clone();
                async move { endpoint.dial().await.map(TokioIo::new) }
            }))
    }

    async fn dial(&self) -> io::Result<Box<dyn Wire>> {
        match &self.0 {
            Place::Unix(path) => Ok(Box::new(socket::connect(path).await.map_err(io::Error::other)?)),
            Place::Pipe(connect) => Ok(Box::new(connect()?)),
        }
    }
}

/// Shows the path.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Place::Unix(path) => path.display().fmt(f),
            Place::Pipe(_) => f.write_str("a pipe in memory"),
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Wire for T {}
