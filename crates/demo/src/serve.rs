//! A server on loopback over plain HTTP, as the registry and the mirrors are. What is answered is theirs.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;

/// How many bytes a connection buffers. More would leave the sender before the node's link has room for them.
const BUFFER: u32 = 16 * 1024;
/// How many connections wait to be accepted.
const BACKLOG: u32 = 1024;
/// The pause after a connection that could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// The bytes of one chunk of a body: few enough that many downloads all progress within a second.
pub const CHUNK: usize = 16 * 1024;

/// What is sent. A body that ends early breaks its connection.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;

/// A running server. Dropping it ends it and everything that it is sending.
pub struct Server {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Server {
    /// Starts it on a free port. It has to be called inside a tokio runtime.
    pub fn start<A, F>(answer: A) -> io::Result<Self>
    where
        A: Fn(Parts) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Response<Body>> + Send + 'static,
    {
        let socket = TcpSocket::new_v4()?;
        socket.set_send_buffer_size(BUFFER)?;
        socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        let listener = socket.listen(BACKLOG)?;
        let address = listener.local_addr()?;
        Ok(Self { address, task: tokio::spawn(accept(listener, answer)) })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Accepts connections until it is dropped, which ends all of them.
async fn accept<A, F>(listener: TcpListener, answer: A)
where
    A: Fn(Parts) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                match accepted {
                    Ok((stream, _)) => drop(connections.spawn(converse(stream, answer.clone()))),
                    // A connection that ended before it was accepted does not matter. If too many files are open,
                    // trying again at once would not help.
                    Err(_gone) => sleep(ACCEPT_PAUSE).await,
                }
            }
            Some(_ended) = connections.join_next() => {}
        }
    }
}

async fn converse<A, F>(stream: TcpStream, answer: A)
where
    A: Fn(Parts) -> F + Send + Sync,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    // Chunks are small and leave when the link allows it, so the kernel must not wait for more of them. A connection
    // that does not support this is slower, but works.
    let _result = stream.set_nodelay(true);
    let service = service_fn(|request: Request<Incoming>| {
        let answered = answer(request.into_parts().0);
        async { Ok::<_, Infallible>(answered.await) }
    });
    let buffer = usize::try_from(BUFFER).expect("a small number fits");
    let connection =
        http1::Builder::new().max_buf_size(buffer).serve_connection(TokioIo::new(stream), service);
    // A client that disconnects knows that it did.
    let _ended = connection.await;
}
