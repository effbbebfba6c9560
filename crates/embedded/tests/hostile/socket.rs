//! A client that speaks TLS properly and everything above it as it likes.

use std::sync::Arc;
use std::time::Duration;

use prewarm_embedded::Serving;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// How long an answer may take on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

pub struct Socket(TlsStream<TcpStream>);

impl Socket {
    pub async fn connect(serving: &Serving) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(serving.authority().as_bytes()).unwrap()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let stream = TcpStream::connect(serving.address()).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        Self(TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap())
    }

    /// Sends what it can. Whether the other side still listens shows in its answer.
    pub async fn send(&mut self, bytes: &[u8]) -> bool {
        self.0.write_all(bytes).await.is_ok() && self.0.flush().await.is_ok()
    }

    /// Everything until the other side closes the connection.
    pub async fn rest(&mut self) -> String {
        let mut text = Vec::new();
        // A connection that is reset has sent everything it had.
        let read = tokio::time::timeout(PATIENCE, self.0.read_to_end(&mut text)).await;
        let _ended = read.expect("the server neither answers nor closes the connection");
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Both directions separately, for bodies that are refused while they are sent.
    pub fn split(
        self,
    ) -> (tokio::io::ReadHalf<TlsStream<TcpStream>>, tokio::io::WriteHalf<TlsStream<TcpStream>>) {
        tokio::io::split(self.0)
    }
}
