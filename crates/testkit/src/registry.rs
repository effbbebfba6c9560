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

use anyhow::Context as _;
use http::StatusCode;
use prewarm_bed::inside::{self, BRIDGE_ADDRESS};
use prewarm_bed::programs;

pub use login::Challenge;
pub use proxy::FaultProxy;

use crate::http::get;
use crate::image::Artifact;
use crate::image::push::Repository;
use crate::process::Process;
use crate::wait;

/// What image names of a node can refer to: a registry, something in front of one, or any address with its scheme.
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
    /// Starts an empty registry.
    pub async fn start() -> anyhow::Result<Self> {
        Self::configured("").await
    }

    /// Starts a mirror that fetches from this registry what it is asked for and does not have.
    pub async fn pull_through(upstream: &(impl Upstream + ?Sized)) -> anyhow::Result<Self> {
        Self::configured(&format!("proxy: {{remoteurl: \"{}\"}}\n", upstream.url())).await
    }

    async fn configured(lines: &str) -> anyhow::Result<Self> {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let host = format!("{BRIDGE_ADDRESS}:{}", 5000 + number);
        let directory = inside::directory(&format!("registry-{number}"))?;
        let process = Process::start("registry", command(&host, &directory, lines)?, &directory)?;
        let registry = Self { process, host };
        registry.ready().await?;
        Ok(registry)
    }

    /// Waits until it answers, after a start, a restart or a thaw.
    pub async fn ready(&self) -> anyhow::Result<()> {
        wait::until("the registry", async || {
            self.process.check()?;
            let status = get(&format!("http://{}/v2/", self.host)).await;
            Ok(status.is_ok_and(|status| status == StatusCode::OK).then_some(()))
        })
        .await
    }

    /// The address and port, as in image references.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The full reference of a tag.
    pub fn reference(&self, name: &str, tag: &str) -> String {
        format!("{}/{name}:{tag}", self.host)
    }

    /// Stores an image or an index under these tags. What is stored already is not sent again.
    pub async fn push(&self, name: &str, tags: &[&str], artifact: &Artifact) -> anyhow::Result<()> {
        let repository = Repository::plain(&self.host, name, None);
        repository.push(tags, artifact).await.with_context(|| format!("pushing {name}"))
    }
}

fn command(host: &str, directory: &Path, lines: &str) -> anyhow::Result<Command> {
    let storage = directory.join("storage");
    let config = directory.join("config.yml");
    let text = format!(
        "version: 0.1\n\
         log: {{level: error, accesslog: {{disabled: true}}}}\n\
         storage: {{filesystem: {{rootdirectory: {}}}, delete: {{enabled: true}}}}\n\
         http: {{addr: \"{host}\", secret: bed}}\n{lines}",
        storage.display()
    );
    fs::write(&config, text).context("writing the registry's config")?;
    let mut command = Command::new(programs::locate("registry")?);
    // Otherwise it would send traces to a collector that does not exist, and log each failure.
    command.arg("serve").arg(config).env("OTEL_TRACES_EXPORTER", "none");
    Ok(command)
}
