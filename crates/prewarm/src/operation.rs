//! What the long-running commands have in common: the flags of their operation, the client, the stop signal, and the
//! answers to probes.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args as ClapArgs;
use kube::Client;
use prewarm_process::http::{self, Answers};
use prewarm_process::log;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::reach::Reach;

/// Flags that every long-running command has.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Operation")]
pub struct Operation {
    /// How the log is written: human or json
    #[arg(long, env = "PREWARM_LOG_FORMAT", value_name = "FORMAT", default_value = "human")]
    log_format: log::Format,
    /// What is logged: error, warn, info, debug, trace, or filters such as `info,kube=debug`
    #[arg(long, env = "PREWARM_LOG", value_name = "LEVEL", default_value = "info")]
    log_level: String,
    #[command(flatten)]
    reach: Reach,
}

impl Operation {
    /// Starts the log as the flags have it.
    pub fn start_log(&self) -> anyhow::Result<()> {
        Ok(log::start(self.log_format, &self.log_level)?)
    }

    /// A client of the cluster that the flags or the surroundings name.
    pub async fn client(&self) -> anyhow::Result<Client> {
        let (config, _) = self.reach.config().await?;
        Client::try_from(config).context("building the client of the cluster")
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
