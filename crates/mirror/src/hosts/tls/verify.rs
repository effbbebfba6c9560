//! Whom a mirror's certificate is trusted by. Content is verified by its digest whatever is decided here; what is at stake
//! are the headers that a mirror is sent, and what a tag stands for.

use std::sync::Arc;

use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::client::verify_server_name;
use tokio_rustls::rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};

/// The usual verification, and besides the very certificates that `ca` names: people make certificates that are their
/// own authority, which Go accepts and webpki does not.
#[derive(Debug)]
pub(super) struct Trusted {
    pub usual: Arc<WebPkiServerVerifier>,
    pub own: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for Trusted {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let usual = self.usual.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        if !usual.as_ref().is_err_and(is_about_trust) || !self.own.iter().any(|own| own == end_entity) {
            return usual;
        }
        verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.usual.supported_verify_schemes()
    }
}

/// Whether a certificate was refused for its issuer, and not for its time or its name.
fn is_about_trust(error: &Error) -> bool {
    use CertificateError::{Expired, ExpiredContext, NotValidForName, NotValidForNameContext};
    use CertificateError::{NotValidYet, NotValidYetContext, Revoked};
    match error {
        Error::InvalidCertificate(error) => !matches!(
            error,
            Expired
                | ExpiredContext { .. }
                | NotValidYet
                | NotValidYetContext { .. }
                | NotValidForName
                | NotValidForNameContext { .. }
                | Revoked
        ),
        _ => false,
    }
}

/// `skip_verify`: whoever answers is taken for the mirror.
#[derive(Debug)]
pub(super) struct Anything(pub Arc<CryptoProvider>);

impl ServerCertVerifier for Anything {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
