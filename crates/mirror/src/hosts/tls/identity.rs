//! Which of our certificates a mirror is shown.

use std::sync::Arc;

use memchr::memmem;
use tokio_rustls::rustls::SignatureScheme;
use tokio_rustls::rustls::client::ResolvesClientCert;
use tokio_rustls::rustls::sign::CertifiedKey;

/// Certificates of ours with their keys, in the order of the file.
#[derive(Debug)]
pub(super) struct Identities(pub Vec<Arc<CertifiedKey>>);

impl ResolvesClientCert for Identities {
    /// The first that was issued by somebody whom the mirror names, else the first of all, if its key can sign.
    fn resolve(&self, issuers: &[&[u8]], schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        let fitting: Vec<_> =
            self.0.iter().filter(|pair| pair.key.choose_scheme(schemes).is_some()).collect();
        let named = fitting.iter().find(|pair| issuers.iter().any(|issuer| is_issued_by(pair, issuer)));
        named.or(fitting.first()).map(|pair| Arc::clone(pair))
    }

    fn has_certs(&self) -> bool {
        !self.0.is_empty()
    }
}

/// Whether a certificate of the chain has this name in it. The name is compared as it is encoded, so there is nothing to
/// parse; at worst another certificate of ours is shown.
fn is_issued_by(pair: &CertifiedKey, issuer: &[u8]) -> bool {
    !issuer.is_empty() && pair.cert.iter().any(|certificate| memmem::find(certificate, issuer).is_some())
}
