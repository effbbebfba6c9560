//! What a mirror's TLS needs: authorities that it is trusted by, and the certificate that it knows us by.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::ServerCertVerifier;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::address::Scheme;
use super::problem::Reason;
use super::table::Table;

mod identity;
mod verify;

/// The most bytes of a file with certificates or a key.
pub(super) const MAX_PEM_BYTES: u64 = 1024 * 1024;

/// How a mirror is spoken to.
#[derive(Clone, Debug)]
pub(crate) enum Tls {
    Without,
    With(Arc<ClientConfig>),
    /// The address is `http`, but there is something for TLS: containerd tries TLS first.
    First(Arc<ClientConfig>),
}

impl Tls {
    /// Reads the files of a table.
    pub fn read(table: &Table, scheme: Scheme) -> Result<Self, Reason> {
        table.headers.0.as_ref().map_err(Reason::clone)?;
        let is_plain =
            table.address.as_ref().is_some_and(|address| address.port == Scheme::Http.usual_port());
        match scheme {
            Scheme::Https => Ok(Self::With(config(table)?)),
            Scheme::Http if table.has_tls() && !is_plain => Ok(Self::First(config(table)?)),
            Scheme::Http => Ok(Self::Without),
        }
    }

    /// For a host that a mirror redirects to: the trust of its table without our certificate.
    pub fn of_stranger(table: &Table) -> Result<Self, Reason> {
        config(&Table { client: None, ..table.clone() }).map(Self::With)
    }
}

fn config(table: &Table) -> Result<Arc<ClientConfig>, Reason> {
    let provider = Arc::new(ring::default_provider());
    let verifier = verifier(table, &provider)?;
    let identities = table.client.iter().flatten();
    let identities: Vec<_> =
        identities.map(|pair| identity(pair, &provider)).collect::<Result<_, Reason>>()?;
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider has suites of both versions")
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    Ok(Arc::new(builder.with_client_cert_resolver(Arc::new(identity::Identities(identities)))))
}

fn verifier(table: &Table, provider: &Arc<CryptoProvider>) -> Result<Arc<dyn ServerCertVerifier>, Reason> {
    if table.skip_verify == Some(true) {
        return Ok(Arc::new(verify::Anything(Arc::clone(provider))));
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let mut own = Vec::new();
    for path in table.ca.iter().flatten() {
        let certificates = certificates("ca", path)?;
        let (added, _) = roots.add_parsable_certificates(certificates.iter().cloned());
        if added == 0 {
            return Err(Reason::NoPem { field: "ca", path: path.clone(), what: "certificate" });
        }
        own.extend(certificates);
    }
    let usual = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider)).build();
    let usual = usual.map_err(|_| Reason::NoRoots)?;
    Ok(Arc::new(verify::Trusted { usual, own }))
}

fn identity(
    (path, key): &(PathBuf, Option<PathBuf>),
    provider: &CryptoProvider,
) -> Result<Arc<CertifiedKey>, Reason> {
    let certificates = certificates("client", path)?;
    let key_path = key.as_ref().unwrap_or(path);
    let key = PrivateKeyDer::from_pem_slice(&read("client", key_path)?);
    let key =
        key.map_err(|_| Reason::NoPem { field: "client", path: key_path.clone(), what: "private key" })?;
    let pair = CertifiedKey::from_der(certificates, key, provider);
    let pair = pair.map_err(|error| Reason::ClientPair { path: path.clone(), why: error.to_string() })?;
    Ok(Arc::new(pair))
}

fn certificates(field: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, Reason> {
    let none = || Reason::NoPem { field, path: path.to_owned(), what: "certificate" };
    let bytes = read(field, path)?;
    let read = CertificateDer::pem_slice_iter(&bytes).collect::<Result<Vec<_>, _>>().map_err(|_| none())?;
    if read.is_empty() { Err(none()) } else { Ok(read) }
}

fn read(field: &'static str, path: &Path) -> Result<Vec<u8>, Reason> {
    let bytes = read_bounded(path).map_err(|error| Reason::UnreadableFile {
        field,
        path: path.to_owned(),
        why: error.to_string(),
    })?;
    bytes.ok_or_else(|| Reason::LargeFile { field, path: path.to_owned() })
}

fn read_bounded(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_PEM_BYTES + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= MAX_PEM_BYTES).then_some(bytes))
}
