//! The same server on loopback HTTPS, for kubectl and every other program outside this process.
//!
//! Whoever can read the kubeconfig may do everything; everybody else gets a 401. The keys and the token are made at the
//! start and live in memory, so the kubeconfig of an earlier run does not work.

mod body;
mod connection;
mod connections;
mod keys;
mod kubeconfig;
mod limits;

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Service, ServiceExt as _};

use crate::body::{PassedBody, pass};
use crate::server::Server;
use connection::Door;
use connections::Connections;
use keys::Keys;
pub use limits::Limits;

/// How long open connections may take to end by themselves once the server stops.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(500);
/// The pause after the system refused a connection: the process is out of file descriptors, and trying again at once
/// would not help.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Why a server could not serve on a socket.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address of the socket cannot be read.
    #[error("asking the socket where it listens")]
    Address(#[source] io::Error),
    /// The socket could be reached from the network.
    #[error("{0} is not a loopback address: the embedded API is for programs on this machine only")]
    NotLoopback(SocketAddr),
    /// The temporary keys could not be made.
    #[error("making the keys of this run")]
    Keys(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// A server on a socket. Dropping it closes every connection at once; [`Serving::stop`] lets answers end first.
#[derive(Debug)]
pub struct Serving {
    address: SocketAddr,
    keys: Arc<Keys>,
    connections: Connections,
    stop: watch::Sender<bool>,
    accepting: JoinHandle<()>,
}

impl Server {
    /// Serves HTTPS on a loopback socket.
    pub fn serve(self, listener: TcpListener) -> Result<Serving, ServeError> {
        self.serve_within(listener, Limits::default())
    }

    /// Serves HTTPS on a loopback socket, with other limits than the usual ones.
    pub fn serve_within(self, listener: TcpListener, limits: Limits) -> Result<Serving, ServeError> {
        serve(self, listener, limits)
    }
}

/// Serves HTTPS on a loopback socket, with layers in front of the server: `faults.layer(server)` makes an API that
/// fails for `kubectl` too. If the service fails, the client's connection breaks.
pub fn serve<S, B>(service: S, listener: TcpListener, limits: Limits) -> Result<Serving, ServeError>
where
    S: Service<Request<PassedBody>, Response = Response<B>> + Clone + Send + Sync + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let address = listener.local_addr().map_err(ServeError::Address)?;
    if !address.ip().is_loopback() {
        return Err(ServeError::NotLoopback(address));
    }
    let keys = Arc::new(Keys::generate().map_err(ServeError::Keys)?);
    let (stop, stopped) = watch::channel(false);
    let connections = Connections::new(limits.clone());
    let service = service.map_response(|answer: Response<B>| answer.map(pass)).map_err(Into::into);
    let service = BoxCloneSyncService::new(service);
    let door = Arc::new(Door { service, keys: keys.clone(), limits, stopped });
    let accepting = tokio::spawn(accept(listener, door, connections.clone()));
    Ok(Serving { address, keys, connections, stop, accepting })
}

async fn accept(listener: TcpListener, door: Arc<Door>, connections: Connections) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => connections.admit(stream, &door).await,
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

impl Serving {
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// The token that clients need.
    pub fn token(&self) -> &str {
        &self.keys.token
    }

    /// The certificate by which clients know the server, as PEM.
    pub fn authority(&self) -> &str {
        &self.keys.authority
    }

    /// How many connections are open.
    pub fn connections(&self) -> usize {
        self.connections.count()
    }

    /// A kubeconfig that includes the token. Keep it secret.
    pub fn kubeconfig(&self) -> String {
        kubeconfig::text(&self.url(), &self.keys)
    }

    /// Writes the kubeconfig to a file that only this user can read, from the moment it is created.
    pub fn write_kubeconfig(&self, path: &Path) -> io::Result<()> {
        kubeconfig::write(path, &self.kubeconfig())
    }

    /// Stops: no more connections, watches end, and answers under way get half a second.
    pub async fn stop(self) {
        self.accepting.abort();
        self.stop.send_replace(true);
        // Dropping cuts what has not ended by then.
        let _cut = tokio::time::timeout(DRAIN_TIMEOUT, self.connections.all_gone()).await;
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.accepting.abort();
        self.connections.close();
    }
}
