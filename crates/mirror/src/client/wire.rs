//! Connections to mirrors, plain and over TLS, and what it means if there is none.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use prewarm_api::text::{chain, cut, plain};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{self, ClientConfig};

use super::failure::Failure;
use crate::hosts::{Address, Tls};

/// The longest text of another library in a failure.
const MAX_TEXT: usize = 200;

/// Something that HTTP can be spoken over.
pub(super) trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Wire for T {}

/// How long a connection may take: to be there, and then to agree on TLS.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    pub dial: Duration,
    pub handshake: Duration,
}

/// Connects, with everything that has to be agreed on before a request.
pub(super) async fn connect(address: &Address, tls: &Tls, limits: Limits) -> Result<Box<dyn Wire>, Failure> {
    match tls {
        Tls::Without => plainly(address, limits).await,
        Tls::With(config) => secure(address, config, limits).await,
        Tls::First(config) => match secure(address, config, limits).await {
            // The address says `http`, so whoever does not speak TLS there is spoken to without.
            Err(Failure::Tls(why)) if !is_distrust(&why) => plainly(address, limits).await,
            other => other,
        },
    }
}

async fn plainly(address: &Address, limits: Limits) -> Result<Box<dyn Wire>, Failure> {
    dial(address, limits).await.map(|stream| Box::new(stream) as Box<dyn Wire>)
}

async fn dial(address: &Address, limits: Limits) -> Result<TcpStream, Failure> {
    let unreached = |error: io::Error| Failure::Unreached(shown(&error));
    let dialling = TcpStream::connect((address.host.as_str(), address.port));
    let dialled = timeout(limits.dial, dialling).await.map_err(|_| Failure::Unconnected(limits.dial))?;
    let stream = dialled.map_err(unreached)?;
    stream.set_nodelay(true).map_err(unreached)?;
    Ok(stream)
}

async fn secure(
    address: &Address,
    config: &Arc<ClientConfig>,
    limits: Limits,
) -> Result<Box<dyn Wire>, Failure> {
    let name = ServerName::try_from(address.host.clone());
    let name = name.map_err(|_| Failure::Tls("its name cannot stand in a certificate".to_owned()))?;
    let stream = dial(address, limits).await?;
    let handshake = TlsConnector::from(Arc::clone(config)).connect(name, stream);
    let secured = timeout(limits.handshake, handshake).await;
    let secured = secured.map_err(|_| Failure::Unconnected(limits.handshake))?;
    secured.map(|stream| Box::new(stream) as Box<dyn Wire>).map_err(|error| Failure::Tls(shown(&error)))
}

/// The failure that an error of the HTTP library means. Alerts of TLS arrive late: a mirror that wants a certificate
/// says so after the handshake.
pub(super) fn failure(error: &hyper::Error, otherwise: Failure) -> Failure {
    let first: &(dyn Error + 'static) = error;
    let causes = std::iter::successors(Some(first), |error| (*error).source());
    let tls = causes.filter_map(|cause| cause.downcast_ref::<io::Error>()).find_map(|cause| {
        let inner = cause.get_ref()?;
        inner.is::<rustls::Error>().then(|| inner.to_string())
    });
    tls.map_or(otherwise, |text| Failure::Tls(cut(&plain(&text), MAX_TEXT)))
}

/// Another library's error for a message.
pub(super) fn shown(error: &(dyn Error + 'static)) -> String {
    cut(&plain(&chain(error)), MAX_TEXT)
}

/// Whether TLS was spoken and a side did not trust the other, which no other way of speaking may heal.
fn is_distrust(why: &str) -> bool {
    why.contains("certificate") || why.contains("alert")
}
