//! A real registry on the bed's bridge, for generated images.

mod body;
pub mod fault;
mod login;
mod proxy;
mod serve;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU16, Ordering};

use anyhow::{Context as _, ensure};
use http::header::{CONTENT_TYPE, LOCATION};
use http::{Method, Request, StatusCode};
use prewarm_bed::inside::{self, BRIDGE_ADDRESS};
use prewarm_bed::programs;

pub use login::Challenge;
pub use proxy::FaultProxy;

use crate::http::{Answer, send};
use crate::image::{Artifact, Blob, Manifest};
use crate::process::Process;
use crate::wait;

/// Where image names of a node can lead: a registry, something in front of one, or any address with its scheme.
pub trait Upstream {
    fn url(&self) -> String;
}

impl Upstream for str {
    fn url(&self) -> String {
        self.to_owned()
    }
}

impl Upstream for Registry {
    fn url(&self) -> String {
        format!("http://{}", self.host)
    }
}

/// A running registry without authentication, over plain HTTP. Dropping it ends it.
pub struct Registry {
    pub process: Process,
    host: String,
}

impl Registry {
    /// Starts an empty one.
    pub async fn start() -> anyhow::Result<Self> {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let host = format!("{BRIDGE_ADDRESS}:{}", 5000 + number);
        let directory = inside::directory(&format!("registry-{number}"))?;
        let process = Process::start("registry", command(&host, &directory)?, &directory)?;
        let registry = Self { process, host };
        registry.ready().await?;
        Ok(registry)
    }

    /// Waits until it answers, after a start, a restart or a thaw.
    pub async fn ready(&self) -> anyhow::Result<()> {
        wait::until("the registry", async || {
            self.process.check()?;
            let answer = self.request(Method::GET, "/v2/", Vec::new(), "").await;
            Ok(answer.is_ok_and(|answer| answer.status == StatusCode::OK).then_some(()))
        })
        .await
    }

    /// Address and port, as image references have it.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The full reference of a tag.
    pub fn reference(&self, name: &str, tag: &str) -> String {
        format!("{}/{name}:{tag}", self.host)
    }

    /// Stores an image or an index under these tags. What is stored already is not sent again.
    pub async fn push(&self, name: &str, tags: &[&str], artifact: &Artifact) -> anyhow::Result<()> {
        for blob in &artifact.blobs {
            self.push_blob(name, blob).await.with_context(|| format!("pushing a blob of {name}"))?;
        }
        for manifest in &artifact.manifests {
            self.push_manifest(name, &manifest.blob.digest, manifest).await?;
        }
        for tag in tags {
            self.push_manifest(name, tag, artifact.root()).await?;
        }
        Ok(())
    }

    async fn push_blob(&self, name: &str, blob: &Blob) -> anyhow::Result<()> {
        let path = format!("/v2/{name}/blobs/{}", blob.digest);
        if self.request(Method::HEAD, &path, Vec::new(), "").await?.status == StatusCode::OK {
            return Ok(());
        }
        let uploads = format!("/v2/{name}/blobs/uploads/");
        let started = self.request(Method::POST, &uploads, Vec::new(), "").await?;
        expect(&started, StatusCode::ACCEPTED)?;
        let location = started.headers.get(LOCATION).context("the registry names no place for the upload")?;
        let location = location.to_str().context("the place for the upload is no text")?;
        let path = location.find("/v2/").map(|start| &location[start..]).context("the place has no path")?;
        let separator = if path.contains('?') { '&' } else { '?' };
        let path = format!("{path}{separator}digest={}", blob.digest);
        let stored = self.request(Method::PUT, &path, blob.bytes.clone(), "application/octet-stream").await?;
        expect(&stored, StatusCode::CREATED)
    }

    async fn push_manifest(&self, name: &str, reference: &str, manifest: &Manifest) -> anyhow::Result<()> {
        let path = format!("/v2/{name}/manifests/{reference}");
        let stored =
            self.request(Method::PUT, &path, manifest.blob.bytes.clone(), manifest.media_type).await?;
        expect(&stored, StatusCode::CREATED).with_context(|| format!("pushing {name} {reference}"))
    }

    async fn request(&self, method: Method, path: &str, body: Vec<u8>, kind: &str) -> anyhow::Result<Answer> {
        let mut request = Request::builder().method(method).uri(format!("http://{}{path}", self.host));
        if !kind.is_empty() {
            request = request.header(CONTENT_TYPE, kind);
        }
        send(request.body(body).context("building a request")?).await
    }
}

fn command(host: &str, directory: &Path) -> anyhow::Result<Command> {
    let storage = directory.join("storage");
    let config = directory.join("config.yml");
    let text = format!(
        "version: 0.1\n\
         log: {{level: error, accesslog: {{disabled: true}}}}\n\
         storage: {{filesystem: {{rootdirectory: {}}}, delete: {{enabled: true}}}}\n\
         http: {{addr: \"{host}\", secret: bed}}\n",
        storage.display()
    );
    fs::write(&config, text).context("writing the registry's config")?;
    let mut command = Command::new(programs::locate("registry")?);
    // Otherwise it sends traces to a collector that does not exist, and logs each failure.
    command.arg("serve").arg(config).env("OTEL_TRACES_EXPORTER", "none");
    Ok(command)
}

fn expect(answer: &Answer, status: StatusCode) -> anyhow::Result<()> {
    ensure!(
        answer.status == status,
        "the registry answered {}: {}",
        answer.status,
        String::from_utf8_lossy(&answer.body)
    );
    Ok(())
}
