//! The credentials of one run: a certificate for loopback, its authority, and the token for clients.

use std::sync::Arc;

use rand::TryRng as _;
use rand::rngs::SysRng;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

type Fault = Box<dyn std::error::Error + Send + Sync>;

/// The random bytes in a token.
const TOKEN_BYTES: usize = 32;
/// The names by which clients may reach the server.
const NAMES: [&str; 3] = ["127.0.0.1", "::1", "localhost"];

pub struct Keys {
    /// The authority's certificate, as PEM.
    pub authority: String,
    /// The bearer token of clients.
    pub token: String,
    pub acceptor: TlsAcceptor,
}

/// Keeps the token out of logs.
impl std::fmt::Debug for Keys {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Keys").finish_non_exhaustive()
    }
}

impl Keys {
    /// Makes new keys. The randomness is the system's: a seed that repeats a run must not repeat its secrets.
    pub fn generate() -> Result<Self, Fault> {
        let mut parameters = named("prewarm embedded authority");
        parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        // The authority's key is dropped at the end of this function, so it never signs anything else.
        let authority = CertifiedIssuer::self_signed(parameters, KeyPair::generate()?)?;
        Ok(Self { token: token()?, acceptor: acceptor(&authority)?, authority: authority.pem() })
    }

    /// Whether a token is the right one, in a time that does not depend on where it differs.
    pub fn admits(&self, token: &[u8]) -> bool {
        let expected = self.token.as_bytes();
        expected.len() == token.len()
            && expected.iter().zip(token).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
    }
}

fn acceptor(authority: &CertifiedIssuer<'_, KeyPair>) -> Result<TlsAcceptor, Fault> {
    let names = CertificateParams::new(NAMES.map(str::to_owned))?;
    let mut parameters = named("prewarm embedded server");
    parameters.subject_alt_names = names.subject_alt_names;
    parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate()?;
    let certificate = parameters.signed_by(&key, authority)?;
    let key = PrivateKeyDer::try_from(key.serialize_der())?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn token() -> Result<String, Fault> {
    use base64::Engine as _;
    let mut bytes = [0; TOKEN_BYTES];
    SysRng.try_fill_bytes(&mut bytes)?;
    Ok(base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes))
}

fn named(common_name: &str) -> CertificateParams {
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name.push(DnType::CommonName, common_name);
    parameters
}
