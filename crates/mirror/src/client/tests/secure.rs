//! TLS with the mirror's own authority and with a certificate of ours.

use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use super::*;

/// An authority and what it issues.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new(name: &str) -> Self {
        let mut parameters = CertificateParams::default();
        parameters.distinguished_name.push(rcgen::DnType::CommonName, name);
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(parameters, KeyPair::generate().unwrap()).unwrap())
    }

    fn issue(&self, host: &str) -> (CertificateDer<'static>, KeyPair, String) {
        let key = KeyPair::generate().unwrap();
        let parameters = CertificateParams::new(vec![host.to_owned()]).unwrap();
        let certificate = parameters.signed_by(&key, &self.0).unwrap();
        (certificate.der().clone(), key, certificate.pem())
    }

    fn server(&self, host: &str) -> ServerConfig {
        let (certificate, key, _) = self.issue(host);
        config(certificate, &key, None)
    }

    /// A server that wants certificates of this authority.
    fn strict_server(&self, host: &str) -> ServerConfig {
        let (certificate, key, _) = self.issue(host);
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).unwrap();
        config(certificate, &key, Some(roots))
    }
}

fn config(
    certificate: CertificateDer<'static>,
    key: &KeyPair,
    clients: Option<RootCertStore>,
) -> ServerConfig {
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(roots) => {
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.build().unwrap())
        }
    };
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    builder.with_single_cert(vec![certificate], key).unwrap()
}

fn answer(_: &Seen) -> Reply {
    Reply::new(200, b"{}")
}

/// Mirrors of one host with these lines. Files are put beside the file.
fn mirrors(node: &Node, host: &str, lines: &str, files: &[(&str, &str)]) -> Mirrors {
    let directory = node.directory.path().join("docker.io");
    fs::create_dir_all(&directory).unwrap();
    for (name, text) in files {
        fs::write(directory.join(Path::new(name)), text).unwrap();
    }
    node.mirrors(&format!("[host.\"{host}\"]\n{lines}\n"))
}

async fn ask(mirrors: &Mirrors) -> Result<Found, FetchError> {
    mirrors.manifest("a", Wanted::Tag("v1")).await
}

#[tokio::test]
async fn a_mirror_is_trusted_by_the_authority_of_its_table() {
    let (node, authority) = (Node::new(), Authority::new("mirrors"));
    let mirror = Mirror::secure(authority.server("127.0.0.1"), answer).await;
    let pem = authority.0.pem();
    let trusting = mirrors(&node, &mirror.https(), "ca = \"ca.pem\"", &[("ca.pem", pem.as_str())]);
    assert_eq!(ask(&trusting).await.unwrap().mirror, mirror.https());

    let other = Authority::new("others").0.pem();
    for (lines, pem) in [("", pem.as_str()), ("ca = \"ca.pem\"", other.as_str())] {
        let doubting = mirrors(&node, &mirror.https(), lines, &[("ca.pem", pem)]);
        assert_eq!(ask(&doubting).await.unwrap_err().class(), FailureClass::Tls);
    }
}

#[tokio::test]
async fn a_certificate_for_another_host_is_not_accepted_unless_verification_is_skipped() {
    let (node, authority) = (Node::new(), Authority::new("mirrors"));
    let mirror = Mirror::secure(authority.server("other.example"), answer).await;
    let pem = authority.0.pem();
    let files = [("ca.pem", pem.as_str())];
    let strict = mirrors(&node, &mirror.https(), "ca = \"ca.pem\"", &files);
    assert_eq!(ask(&strict).await.unwrap_err().class(), FailureClass::Tls);
    let lenient = mirrors(&node, &mirror.https(), "ca = \"ca.pem\"\nskip_verify = true", &files);
    assert!(ask(&lenient).await.is_ok());
}

#[tokio::test]
async fn a_certificate_that_is_its_own_authority_is_trusted_if_it_is_named() {
    let node = Node::new();
    let key = KeyPair::generate().unwrap();
    let mut parameters = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let certificate = parameters.self_signed(&key).unwrap();
    let mirror = Mirror::secure(config(certificate.der().clone(), &key, None), answer).await;
    let pem = certificate.pem();
    let named = mirrors(&node, &mirror.https(), "ca = \"ca.pem\"", &[("ca.pem", pem.as_str())]);
    assert!(ask(&named).await.is_ok());
    let unnamed = mirrors(&node, &mirror.https(), "", &[]);
    assert_eq!(ask(&unnamed).await.unwrap_err().class(), FailureClass::Tls);
}

#[tokio::test]
async fn a_mirror_that_wants_a_certificate_is_shown_the_one_that_its_authority_issued() {
    let (node, authority) = (Node::new(), Authority::new("mirrors"));
    let mirror = Mirror::secure(authority.strict_server("127.0.0.1"), answer).await;
    let (_, key, certificate) = authority.issue("node");
    let (_, other_key, other_certificate) = Authority::new("others").issue("node");
    let (ca, key) = (authority.0.pem(), key.serialize_pem());
    let other = format!("{other_certificate}{}", other_key.serialize_pem());
    let files = [
        ("ca.pem", ca.as_str()),
        ("node.crt", certificate.as_str()),
        ("node.key", key.as_str()),
        ("other.pem", other.as_str()),
    ];
    let lines = "ca = \"ca.pem\"\nclient = [[\"other.pem\", \"\"], [\"node.crt\", \"node.key\"]]";
    assert!(ask(&mirrors(&node, &mirror.https(), lines, &files)).await.is_ok());

    for lines in ["ca = \"ca.pem\"", "ca = \"ca.pem\"\nclient = \"other.pem\""] {
        let error = ask(&mirrors(&node, &mirror.https(), lines, &files)).await.unwrap_err();
        assert_eq!(error.class(), FailureClass::Tls, "{error}");
        assert!(error.to_string().contains("`client`"), "{error}");
    }
}

#[tokio::test]
async fn a_plain_address_with_something_for_tls_is_tried_with_tls_first() {
    let (node, authority) = (Node::new(), Authority::new("mirrors"));
    let pem = authority.0.pem();
    let files = [("ca.pem", pem.as_str())];
    let secure = Mirror::secure(authority.server("127.0.0.1"), answer).await;
    assert!(ask(&mirrors(&node, &secure.http(), "ca = \"ca.pem\"", &files)).await.is_ok());
    let plain = Mirror::start(answer).await;
    let plain_too = mirrors(&node, &plain.http(), "ca = \"ca.pem\"", &files);
    assert!(ask(&plain_too).await.is_ok());
}

#[tokio::test]
async fn a_mirror_that_never_agrees_on_tls_is_left() {
    let node = Node::new();
    let deaf = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = format!("https://{}", deaf.local_addr().unwrap());
    let mirrors = mirrors(&node, &host, "dial_timeout = \"1h\"", &[]);
    let passing = async {
        let (mut stream, _) = deaf.accept().await.unwrap();
        // The first byte of a handshake: by then its time is counted.
        tokio::io::AsyncReadExt::read_u8(&mut stream).await.unwrap();
        tokio::time::advance(PATIENCE.connect + Duration::from_millis(1)).await;
        stream
    };
    let (answer, _stream) = join!(ask(&mirrors), passing);
    assert_eq!(failures(&answer.unwrap_err()), [Failure::Unconnected(PATIENCE.connect)]);
}

#[tokio::test]
async fn a_mirror_that_does_not_speak_tls_is_said_so() {
    let node = Node::new();
    let plain = Mirror::start(answer).await;
    let error = ask(&mirrors(&node, &plain.https(), "", &[])).await.unwrap_err();
    assert_eq!(error.class(), FailureClass::Tls, "{error}");
}
