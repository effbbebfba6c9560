//! What the long-running commands have in common: the flags of their operation, the client, the stop signal, and the
//! answers to probes.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args as ClapArgs;
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use prewarm_process::http::{self, Answers};
use prewarm_process::log;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// Flags that every long-running command has.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Operation")]
pub struct Operation {
    /// The cluster's kubeconfig; otherwise KUBECONFIG, the pod's service account, or ~/.kube/config
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// How the log is written: human or json
    #[arg(long, env = "PREWARM_LOG_FORMAT", value_name = "FORMAT", default_value = "human")]
    log_format: log::Format,
    /// What is logged: error, warn, info, debug, trace, or filters such as `info,kube=debug`
    #[arg(long, env = "PREWARM_LOG", value_name = "LEVEL", default_value = "info")]
    log_level: String,
}

impl Operation {
    /// Starts the log as the flags have it.
    pub fn start_log(&self) -> anyhow::Result<()> {
        Ok(log::start(self.log_format, &self.log_level)?)
    }

    /// A client of the cluster that the flags or the surroundings name.
    pub async fn client(&self) -> anyhow::Result<Client> {
        Client::try_from(self.config().await?).context("building the client of the cluster")
    }

    async fn config(&self) -> anyhow::Result<kube::Config> {
        let Some(path) = &self.kubeconfig else {
            return kube::Config::infer().await.context(
                "finding the cluster: run in a pod with a service account, set KUBECONFIG, or give --kubeconfig",
            );
        };
        let file = Kubeconfig::read_from(path).with_context(|| format!("reading {}", path.display()))?;
        kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
            .await
            .with_context(|| format!("using {}", path.display()))
    }
}

/// Serves the answers in the background, at this address.
pub async fn answer(listen: SocketAddr, answers: Answers) -> anyhow::Result<()> {
    let listener = TcpListener::bind(listen)
        .await
        .with_context(|| format!("listening on {listen}; choose another address with --listen"))?;
    tokio::spawn(http::serve(listener, answers));
    Ok(())
}

/// Ends with SIGTERM or SIGINT.
pub fn stop_signal() -> anyhow::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate()).context("listening for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("listening for SIGINT")?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Reads a time, such as `10s`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let parsed: jiff::SignedDuration =
        text.parse().map_err(|_| format!("{text:?} is no time; write it like 10s or 500ms"))?;
    Duration::try_from(parsed).map_err(|_| "a time cannot be negative".to_owned())
}
