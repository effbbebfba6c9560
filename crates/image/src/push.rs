//! Sends images to a registry with the requests of the OCI distribution specification. Crates for that are clients for
//! everything a registry can do; this needs four requests.

use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, LOCATION, WWW_AUTHENTICATE};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, ResponseFuture};
use hyper_util::rt::TokioExecutor;
use serde_json::Value;
use tokio::sync::Mutex;

use crate::artifact::{Artifact, Blob, Manifest};
use crate::referrer;

/// How long one request may take. The largest is the upload of a layer.
const LIMIT: Duration = Duration::from_mins(5);
/// The longest answer that is read.
const MAX_ANSWER_BYTES: usize = 4 * 1024 * 1024;
/// The media types of manifests and indexes.
const ACCEPTED: &str =
    "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, */*";
/// How much of a refusal is shown.
const MAX_EXCERPT_CHARS: usize = 300;
/// The header by which a registry announces that it lists referrers itself.
const SUBJECT: &str = "oci-subject";

/// Why an image could not be pushed. Nothing of a login is in it.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    #[error("{what}: {reason}")]
    Unreachable { what: String, reason: String },
    #[error("{what}: no answer within {} s", LIMIT.as_secs())]
    Late { what: String },
    #[error("{what}: the registry answers {status}: {words}")]
    Refused { what: String, status: StatusCode, words: String },
    #[error("{what}: the registry wants a login; name a user and a password")]
    LoginMissing { what: String },
    #[error("no certificates of authorities are found on this machine: {0}")]
    NoRoots(std::io::Error),
    #[error("{what}: {reason}")]
    Unclear { what: String, reason: &'static str },
}

/// The account that pushes.
pub struct Login {
    pub user: String,
    pub password: String,
}

/// How a registry is reached.
enum Wire {
    Plain(Client<HttpConnector, Full<Bytes>>),
    Tls(Client<HttpsConnector<HttpConnector>, Full<Bytes>>),
}

impl Wire {
    fn request(&self, request: Request<Full<Bytes>>) -> ResponseFuture {
        match self {
            Self::Plain(client) => client.request(request),
            Self::Tls(client) => client.request(request),
        }
    }
}

/// A repository of a registry.
pub struct Repository {
    wire: Wire,
    base: String,
    name: String,
    login: Option<Login>,
    /// The authorization header that the registry asked for.
    authorization: Mutex<Option<String>>,
}

struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Repository {
    /// The repository of this name at a registry's host.
    pub fn new(host: &str, name: &str, login: Option<Login>) -> Result<Self, PushError> {
        let connector = HttpsConnectorBuilder::new().with_native_roots().map_err(PushError::NoRoots)?;
        // The realm of tokens may be at any address.
        let connector = connector.https_or_http().enable_http1().build();
        let wire = Wire::Tls(Client::builder(TokioExecutor::new()).build(connector));
        Ok(Self::reached_by(wire, format!("https://{host}"), name, login))
    }

    /// The same without TLS, for a registry on this machine or in a test.
    pub fn plain(host: &str, name: &str, login: Option<Login>) -> Self {
        let wire = Wire::Plain(Client::builder(TokioExecutor::new()).build_http());
        Self::reached_by(wire, format!("http://{host}"), name, login)
    }

    fn reached_by(wire: Wire, base: String, name: &str, login: Option<Login>) -> Self {
        Self { wire, base, name: name.to_owned(), login, authorization: Mutex::default() }
    }

    /// Stores an image or an index under these tags. What is stored already is not sent again.
    pub async fn push(&self, tags: &[&str], artifact: &Artifact) -> Result<(), PushError> {
        for blob in &artifact.blobs {
            self.push_blob(blob).await?;
        }
        for manifest in &artifact.manifests {
            self.push_manifest(&manifest.blob.digest, manifest).await?;
        }
        for tag in tags {
            self.push_manifest(tag, artifact.root()).await?;
        }
        Ok(())
    }

    /// Stores a referrer of an image. If the registry does not list referrers itself, the list is stored under the tag
    /// that clients look for.
    pub async fn refer(&self, subject: &Artifact, referrer: &Artifact) -> Result<(), PushError> {
        for blob in &referrer.blobs {
            self.push_blob(blob).await?;
        }
        let answer = self.push_manifest(referrer.digest(), referrer.root()).await?;
        if answer.headers.contains_key(SUBJECT) {
            return Ok(());
        }
        let tag = referrer::tag(subject.digest());
        let earlier = self.request(Method::GET, &self.manifest_path(&tag), &[], "").await?;
        let earlier = (earlier.status == StatusCode::OK).then_some(earlier.body);
        self.push_manifest(&tag, &referrer::list(earlier.as_deref(), referrer)).await.map(drop)
    }

    fn manifest_path(&self, reference: &str) -> String {
        format!("/v2/{}/manifests/{reference}", self.name)
    }

    /// Reads a manifest by its tag or digest.
    pub async fn manifest(&self, reference: &str) -> Result<Vec<u8>, PushError> {
        Ok(self.expect(Method::GET, &self.manifest_path(reference), &[], "", StatusCode::OK).await?.body)
    }

    async fn push_blob(&self, blob: &Blob) -> Result<(), PushError> {
        let path = format!("/v2/{}/blobs/{}", self.name, blob.digest);
        let there = self.request(Method::HEAD, &path, &[], "").await?;
        if there.status == StatusCode::OK {
            return Ok(());
        }
        let uploads = format!("/v2/{}/blobs/uploads/", self.name);
        let started = self.expect(Method::POST, &uploads, &[], "", StatusCode::ACCEPTED).await?;
        let unclear =
            || PushError::Unclear { what: uploads.clone(), reason: "no place for the upload is named" };
        let place =
            started.headers.get(LOCATION).and_then(|place| place.to_str().ok()).ok_or_else(unclear)?;
        let path = place.find("/v2/").map(|start| &place[start..]).ok_or_else(unclear)?;
        let separator = if path.contains('?') { '&' } else { '?' };
        let path = format!("{path}{separator}digest={}", blob.digest);
        let kind = "application/octet-stream";
        self.expect(Method::PUT, &path, &blob.bytes, kind, StatusCode::CREATED).await.map(drop)
    }

    async fn push_manifest(&self, reference: &str, manifest: &Manifest) -> Result<Answer, PushError> {
        let path = self.manifest_path(reference);
        let Manifest { blob, media_type } = manifest;
        self.expect(Method::PUT, &path, &blob.bytes, media_type, StatusCode::CREATED).await
    }

    async fn expect(
        &self,
        method: Method,
        path: &str,
        body: &[u8],
        kind: &str,
        wanted: StatusCode,
    ) -> Result<Answer, PushError> {
        let what = format!("{method} {}{path}", self.base);
        let answer = self.request(method, path, body, kind).await?;
        if answer.status == wanted {
            return Ok(answer);
        }
        let words = String::from_utf8_lossy(&answer.body).chars().take(MAX_EXCERPT_CHARS).collect();
        Err(PushError::Refused { what, status: answer.status, words })
    }

    /// Sends a request, and once more with credentials if the registry asks for them.
    async fn request(
        &self,
        method: Method,
        path: &str,
        body: &[u8],
        kind: &str,
    ) -> Result<Answer, PushError> {
        let url = format!("{}{path}", self.base);
        let known = self.authorization.lock().await.clone();
        let answer = self.send(&method, &url, body, kind, known.as_deref()).await?;
        if answer.status != StatusCode::UNAUTHORIZED {
            return Ok(answer);
        }
        let header = self.answer_challenge(&format!("{method} {url}"), &answer.headers).await?;
        *self.authorization.lock().await = Some(header.clone());
        self.send(&method, &url, body, kind, Some(&header)).await
    }

    /// The header that a challenge asks for.
    async fn answer_challenge(&self, what: &str, headers: &HeaderMap) -> Result<String, PushError> {
        let challenge =
            headers.get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let missing = || PushError::LoginMissing { what: what.to_owned() };
        let basic = self.login.as_ref().map(Login::header);
        let Some(asked) = challenge.strip_prefix("Bearer ") else { return basic.ok_or_else(missing) };
        let parameter = |name: &str| {
            let (_, rest) = asked.split_once(&format!("{name}=\""))?;
            rest.split_once('"').map(|(value, _)| value)
        };
        let unclear = |reason| PushError::Unclear { what: what.to_owned(), reason };
        let realm = parameter("realm").ok_or_else(|| unclear("the challenge names no realm"))?;
        let service = parameter("service").unwrap_or_default();
        let url = format!("{realm}?service={service}&scope=repository:{}:pull,push", self.name);
        let answer = self.send(&Method::GET, &url, &[], "", basic.as_deref()).await?;
        if answer.status != StatusCode::OK {
            return Err(missing());
        }
        let answer: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let token = answer["token"].as_str().or(answer["access_token"].as_str());
        token.map(|token| format!("Bearer {token}")).ok_or_else(|| unclear("the answer has no token"))
    }

    async fn send(
        &self,
        method: &Method,
        url: &str,
        body: &[u8],
        kind: &str,
        authorization: Option<&str>,
    ) -> Result<Answer, PushError> {
        let what = format!("{method} {url}");
        let unreachable = |reason: String| PushError::Unreachable { what: what.clone(), reason };
        let mut request = Request::builder().method(method).uri(url).header(ACCEPT, ACCEPTED);
        if !kind.is_empty() {
            request = request.header(CONTENT_TYPE, kind);
        }
        if let Some(value) = authorization {
            request = request.header(AUTHORIZATION, value);
        }
        let body = Full::new(Bytes::copy_from_slice(body));
        let request = request.body(body).map_err(|error| unreachable(error.to_string()))?;
        let exchange = async {
            let response = self.wire.request(request).await.map_err(|error| unreachable(causes(&error)))?;
            let (head, body) = response.into_parts();
            let body = Limited::new(body, MAX_ANSWER_BYTES).collect().await;
            let body = body.map_err(|error| unreachable(error.to_string()))?.to_bytes().to_vec();
            Ok(Answer { status: head.status, headers: head.headers, body })
        };
        match tokio::time::timeout(LIMIT, exchange).await {
            Ok(answer) => answer,
            Err(_) => Err(PushError::Late { what }),
        }
    }
}

impl Login {
    fn header(&self) -> String {
        format!("Basic {}", BASE64_STANDARD.encode(format!("{}:{}", self.user, self.password)))
    }
}

/// An error with its causes: the client's own message alone is "client error (Connect)".
fn causes(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        words = format!("{words}: {inner}");
        cause = inner.source();
    }
    words
}
