//! The agent as it is deployed: as user nobody, without capabilities, on the node's network.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::{env, fs};

use anyhow::{Context as _, bail, ensure};
use prewarm_bed::{commands, inside};
use prewarm_testkit::binary::{BINARY_VARIABLE, given_or};
use prewarm_testkit::{Node, Process, measure, wait};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::cluster::Cluster;

/// The user and group of the shipped pod, and its only further group: root's, to which the runtime's socket belongs.
const USER: &str = "65532";
const FURTHER_GROUP: &str = "0";

const PORT: u16 = 10221;

/// A running agent. Dropping it kills it.
pub struct Agent {
    pub process: Process,
    address: String,
}

impl Agent {
    /// Starts the agent of a node.
    pub async fn start(cluster: &Cluster, node: &Node, flags: &[&str]) -> anyhow::Result<Self> {
        Self::start_on(cluster, node, &node.socket(), flags).await
    }

    /// Starts it with another path to the runtime.
    pub async fn start_on(
        cluster: &Cluster,
        node: &Node,
        socket: &Path,
        flags: &[&str],
    ) -> anyhow::Result<Self> {
        let mut command = as_nobody(node)?;
        command.arg(binary()?).arg("agent").args(["--node-name", node.name()]);
        command.arg("--runtime-endpoint").arg(format!("unix://{}", socket.display()));
        command.arg("--kubeconfig").arg(cluster.kubeconfig(node.name()).await?);
        command.arg("--listen").arg(format!("0.0.0.0:{PORT}"));
        if !flags.contains(&"--log-level") {
            command.args(["--log-level", "info,prewarm=debug,prewarm_agent=debug"]);
        }
        command.args(flags);
        let process = Process::start("agent", command, node.directory())?;
        Ok(Self { process, address: format!("{}:{PORT}", address(node)?) })
    }

    /// Waits until it is ready.
    pub async fn ready(&self) -> anyhow::Result<()> {
        wait::until("the agent", async || {
            self.process.check()?;
            let answer = self.answer("/readyz").await;
            Ok(answer.is_ok_and(|answer| answer.starts_with("HTTP/1.1 200")).then_some(()))
        })
        .await
    }

    /// Its metrics, as Prometheus reads them.
    pub async fn metrics(&self) -> anyhow::Result<String> {
        self.answer("/metrics").await
    }

    /// One counter. Its labels are part of the name.
    pub async fn counter(&self, name: &str) -> anyhow::Result<u64> {
        let metrics = self.metrics().await?;
        let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.with_context(|| format!("there is no {name}"))?.parse().context("a counter is a number")
    }

    /// Fails if the API server refused a request, because then its role lacks a right.
    pub fn was_refused_nothing(&self) -> anyhow::Result<()> {
        let log = self.process.log();
        match log.lines().find(|line| line.to_lowercase().contains("forbidden")) {
            Some(line) => bail!("the agent's role lacks a right: {line}"),
            None => Ok(()),
        }
    }

    /// Its peak memory in MiB.
    pub fn peak_mebibytes(&self) -> anyhow::Result<f64> {
        let pid = self.process.id().context("the agent is not running")?;
        measure::peak_resident_mib(pid)
    }

    async fn answer(&self, path: &str) -> anyhow::Result<String> {
        let mut stream = TcpStream::connect(&self.address).await?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: agent\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    }
}

/// Whether this is the shipped program; a test build is three times as large.
pub fn is_shipped() -> bool {
    env::var_os(BINARY_VARIABLE).is_some()
}

/// A command that runs on the node as nobody and without privileges.
pub fn as_nobody(node: &Node) -> anyhow::Result<Command> {
    let setpriv = commands::find("setpriv").context("setpriv is missing: run `cargo xtask tools`")?;
    let mut command = node.command(&setpriv);
    command.args(["--reuid", USER, "--regid", USER, "--groups", FURTHER_GROUP, "--no-new-privs"]);
    command.args(["--bounding-set", "-all", "--inh-caps", "-all", "--"]);
    Ok(command)
}

/// A copy of the binary that every user may run: the checkout may be closed to others.
pub fn binary() -> anyhow::Result<&'static Path> {
    static COPY: OnceLock<PathBuf> = OnceLock::new();
    if COPY.get().is_none() {
        let original = given_or(env!("CARGO_BIN_EXE_prewarm"));
        // Two tests may start at once; each makes its own copy until one is chosen.
        let number = std::thread::current().id();
        let copy = inside::directory("program")?.join(format!("prewarm-{number:?}"));
        fs::copy(&original, &copy).with_context(|| format!("copying {}", original.display()))?;
        let _another_was_first = COPY.set(copy);
    }
    COPY.get().map(PathBuf::as_path).context("a copy was made")
}

/// The node's address on the bed's network.
pub fn address(node: &Node) -> anyhow::Result<String> {
    let ip = commands::find("ip").context("ip is missing")?;
    let output = node.command(&ip).args(["-4", "-o", "address", "show", "dev", "eth0"]).output()?;
    ensure!(output.status.success(), "ip: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout)?;
    let mut words = text.split_whitespace().skip_while(|word| *word != "inet");
    let address = words.nth(1).and_then(|address| address.split('/').next());
    Ok(address.context("the node has no address")?.to_owned())
}
