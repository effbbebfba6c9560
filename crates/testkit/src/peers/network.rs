//! Sockets on a node's network for code of the test. A socket stays in the namespace that it was made in, so a thread goes
//! there, makes it, and ends.

use std::fs::File;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use tokio::sync::oneshot;

use crate::node::Node;

/// How long a connection to another node may take.
const LIMIT: Duration = Duration::from_secs(2);

/// A node's network.
#[derive(Clone)]
pub struct Network {
    namespace: PathBuf,
}

impl Network {
    pub fn of(node: &Node) -> Self {
        Self { namespace: node.network_namespace() }
    }

    pub async fn listen(&self, address: SocketAddr) -> io::Result<tokio::net::TcpListener> {
        let listener = self.inside(move || TcpListener::bind(address)).await?;
        listener.set_nonblocking(true)?;
        tokio::net::TcpListener::from_std(listener)
    }

    pub async fn connect(&self, address: SocketAddr) -> io::Result<tokio::net::TcpStream> {
        let stream = self.inside(move || TcpStream::connect_timeout(&address, LIMIT)).await?;
        stream.set_nonblocking(true)?;
        tokio::net::TcpStream::from_std(stream)
    }

    async fn inside<T: Send + 'static>(
        &self,
        make: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let namespace = self.namespace.clone();
        let (send, socket) = oneshot::channel();
        thread::spawn(move || {
            let enter = || {
                let namespace = File::open(namespace)?;
                move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
                make()
            };
            let _nobody_waits = send.send(enter());
        });
        socket.await.map_err(io::Error::other)?
    }
}
