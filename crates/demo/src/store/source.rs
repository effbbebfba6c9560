//! Where an image comes from: one repository of one registry, with one account.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, USER_AGENT};
use http::{Method, Request, Response, StatusCode};
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use prewarm_api::reference::ImageRef;
use prewarm_credentials::Credential;
use prewarm_runtime::serve::{Refusal, Request as Asked};

use super::manifest::Descriptor;
use super::state::Root;

type Client = legacy::Client<HttpConnector, Empty<Bytes>>;

/// How many bytes a connection buffers. More would leave the registry before the node's link has room for them.
const BUFFER: usize = 16 * 1024;

/// How many idle connections a node keeps: in a large demo, file descriptors are scarce and connections are cheap.
const MAX_IDLE: usize = 1;

/// The media types of manifests and indexes.
const ACCEPTED: &str = "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, \
                        application/vnd.docker.distribution.manifest.list.v2+json, \
                        application/vnd.docker.distribution.manifest.v2+json";

/// The two kinds of content in a registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Manifests and indexes.
    Manifest,
    /// Configs and layers.
    Blob,
}

/// One repository.
#[derive(Clone)]
pub(super) struct Source {
    node: Node,
    address: SocketAddr,
    /// The URL up to and including the repository's name.
    url: String,
    /// What a request to a mirror says: whose repository it is.
    query: String,
    authorization: Option<String>,
}

/// The node that asks.
#[derive(Clone)]
pub(super) struct Node {
    client: Client,
    name: String,
}

impl Node {
    pub fn new(name: String) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_recv_buffer_size(Some(BUFFER));
        connector.set_nodelay(true);
        let mut builder = legacy::Client::builder(TokioExecutor::new());
        let client = builder.http1_max_buf_size(BUFFER).pool_max_idle_per_host(MAX_IDLE).build(connector);
        Self { client, name }
    }
}

impl Source {
    /// Finds the registry of an image. Only loopback addresses can be reached.
    pub fn find(
        node: &Node,
        hosts: &BTreeMap<String, SocketAddr>,
        reference: &ImageRef,
        authorization: Option<String>,
    ) -> Result<Self, Refusal> {
        let host = reference.registry();
        let known = hosts.get(host).copied().or_else(|| literal(host));
        let trouble = match known {
            Some(address) if address.ip().is_loopback() => {
                return Ok(Self { authorization, ..Self::at(address, node, reference) });
            }
            Some(address) => format!("dial tcp {address}: connect: network is unreachable"),
            None => format!("dial tcp: lookup {host}: no such host"),
        };
        let url = format!("https://{host}/v2/{}/manifests/{}", reference.repository(), reference.tag());
        Err(Refusal::NoAnswer { request: Asked { method: "HEAD", url }, trouble })
    }

    /// The mirrors of an image's registry.
    pub fn mirrored(node: &Node, mirrors: SocketAddr, reference: &ImageRef) -> Self {
        Self { query: format!("?ns={}", reference.registry()), ..Self::at(mirrors, node, reference) }
    }

    fn at(address: SocketAddr, node: &Node, reference: &ImageRef) -> Self {
        let url = format!("http://{address}/v2/{}", reference.repository());
        Self { node: node.clone(), address, url, query: String::new(), authorization: None }
    }

    /// What a tag or a digest refers to.
    pub async fn resolve(&self, reference: &str) -> Result<Root, Refusal> {
        let request = self.request("HEAD", Kind::Manifest, reference);
        let answer = self.ask(&request).await?;
        match answer.status() {
            StatusCode::OK => root(answer.headers()).ok_or_else(|| odd(request, &answer)),
            StatusCode::NOT_FOUND => Err(Refusal::NotFound),
            _ => Err(self.refusal(request, &answer)),
        }
    }

    /// Starts to download content.
    pub async fn fetch(&self, kind: Kind, digest: &str) -> Result<Incoming, Refusal> {
        let request = self.request("GET", kind, digest);
        let answer = self.ask(&request).await?;
        match answer.status() {
            StatusCode::OK => Ok(answer.into_body()),
            _ => Err(self.refusal(request, &answer)),
        }
    }

    fn request(&self, method: &'static str, kind: Kind, name: &str) -> Asked {
        let kind = match kind {
            Kind::Manifest => "manifests",
            Kind::Blob => "blobs",
        };
        Asked { method, url: format!("{}/{kind}/{name}{}", self.url, self.query) }
    }

    async fn ask(&self, asked: &Asked) -> Result<Response<Incoming>, Refusal> {
        let method = if asked.method == "HEAD" { Method::HEAD } else { Method::GET };
        let mut request = Request::builder().method(method).uri(&asked.url).header(ACCEPT, ACCEPTED);
        request = request.header(USER_AGENT, &self.node.name);
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        let no_answer = |trouble: String| Refusal::NoAnswer { request: asked.clone(), trouble };
        let request = request.body(Empty::new()).map_err(|error| no_answer(error.to_string()))?;
        let answer = self.node.client.request(request).await;
        answer.map_err(|error| no_answer(trouble(&error, self.address)))
    }

    fn refusal(&self, request: Asked, answer: &Response<Incoming>) -> Refusal {
        match (answer.status(), &self.authorization) {
            (StatusCode::UNAUTHORIZED, None) => Refusal::NoCredentials,
            (StatusCode::UNAUTHORIZED, Some(_)) => Refusal::WrongCredentials,
            _ => odd(request, answer),
        }
    }
}

/// The header for a credential, if it is meant for this registry. A credential without an address is meant for every
/// registry.
pub(super) fn authorization(credential: &Credential, reference: &ImageRef) -> Option<String> {
    let address = credential.server_address.as_str();
    let host = address.split_once("://").map_or(address, |(_, rest)| rest);
    let host = host.split('/').next().unwrap_or(host);
    let asked = match reference.registry() {
        "docker.io" => "registry-1.docker.io",
        other => other,
    };
    if credential.username.is_empty() || !(host.is_empty() || host == asked) {
        return None;
    }
    let shown = format!("{}:{}", credential.username, credential.password.reveal());
    Some(format!("Basic {}", STANDARD.encode(shown)))
}

/// A host that is an address already.
fn literal(host: &str) -> Option<SocketAddr> {
    match host.strip_prefix("localhost:") {
        Some(port) => Some(SocketAddr::from((Ipv4Addr::LOCALHOST, port.parse().ok()?))),
        None => host.parse().ok(),
    }
}

fn root(headers: &HeaderMap) -> Option<Root> {
    let text = |name: &str| headers.get(name)?.to_str().ok();
    let digest = text("docker-content-digest")?.to_owned();
    let size = text(CONTENT_LENGTH.as_str())?.parse().ok()?;
    let descriptor = Descriptor { digest, size };
    let media_type = text(CONTENT_TYPE.as_str())?.to_owned();
    descriptor.is_sound().then_some(Root { descriptor, media_type })
}

fn odd(request: Asked, answer: &Response<Incoming>) -> Refusal {
    Refusal::OddAnswer { request, status: answer.status().to_string() }
}

/// The error in the words of Go's client.
fn trouble(error: &legacy::Error, address: SocketAddr) -> String {
    let mut source = Some(error as &dyn std::error::Error);
    while let Some(error) = source {
        match error.downcast_ref::<io::Error>().map(io::Error::kind) {
            Some(io::ErrorKind::ConnectionRefused) => {
                return format!("dial tcp {address}: connect: connection refused");
            }
            Some(io::ErrorKind::ConnectionReset) => {
                return format!("read tcp {address}: read: connection reset by peer");
            }
            _ => source = error.source(),
        }
    }
    "EOF".to_owned()
}
