//! What the long-running commands share: their flags, the client, the stop signal, and the answers to probes.

use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args as ClapArgs;
use kube::Client;
use prewarm_process::http::{self, Answers, Checks, Metrics};
use prewarm_process::{client, log};
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

use crate::reach::Reach;

/// Flags that every long-running command has. `PORT` is the port it listens on by default.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Operation")]
pub struct Operation<const PORT: u16> {
    /// Where /healthz, /readyz and /metrics are served
    #[arg(long, env = "PREWARM_LISTEN", value_name = "ADDRESS", default_value_t = loopback(PORT))]
    listen: SocketAddr,
    /// How the log is written: human or json
    #[arg(long, env = "PREWARM_LOG_FORMAT", value_name = "FORMAT", default_value = "human")]
    log_format: log::Format,
    /// What is logged: error, warn, info, debug, trace, or filters such as `info,kube=debug`
    #[arg(long, env = "PREWARM_LOG", value_name = "LEVEL", default_value = "info")]
    log_level: String,
    #[command(flatten)]
    reach: Reach,
}

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// What a long-running command consists of, apart from its own loop.
pub struct Parts<W> {
    /// The checks behind /healthz and /readyz.
    pub health: Checks,
    pub readiness: Checks,
    /// The text of /metrics.
    pub metrics: Metrics,
    /// Writes events until the last sender is gone.
    pub event_writer: W,
}

impl<const PORT: u16> Operation<PORT> {
    /// Starts the log and runs the command to its end.
    pub fn run<T>(
        &self,
        runtime: &mut Builder,
        command: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<T> {
        log::start(self.log_format, &self.log_level)?;
        block_on(runtime, command)
    }

    /// Answers probes and scrapes, and runs the loop until it ends after a signal or with an error. An error ends the
    /// process at once; otherwise the last events are written first.
    pub async fn serve<E, L>(
        &self,
        parts: Parts<impl Future<Output = ()> + Send + 'static>,
        start: impl FnOnce(Stop) -> L,
    ) -> anyhow::Result<Result<(), E>>
    where
        L: Future<Output = Result<(), E>>,
    {
        let Parts { health, readiness, metrics, event_writer } = parts;
        self.answer(Answers { health, readiness, metrics }).await?;
        let event_writer = tokio::spawn(event_writer);
        let end = start(Box::pin(stop_signal()?)).await;
        if end.is_ok() {
            // The loop is gone and with it the last sender, so the writer empties its queue and ends.
            event_writer.await.context("writing the last events")?;
        }
        Ok(end)
    }

    async fn answer(&self, answers: Answers) -> anyhow::Result<()> {
        let listener = TcpListener::bind(self.listen)
            .await
            .with_context(|| format!("listening on {}; choose another address with --listen", self.listen))?;
        tokio::spawn(http::serve(listener, answers));
        Ok(())
    }

    /// A client of the cluster that the flags or the environment name.
    pub async fn client(&self) -> anyhow::Result<Client> {
        let (config, _) = self.reach.config().await?;
        client::connect(config).context("building the client of the cluster")
    }
}

/// Runs a future on a runtime of its own.
pub fn block_on<T>(
    runtime: &mut Builder,
    future: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    runtime.enable_all().build().context("starting up")?.block_on(future)
}

/// Ends when the process is asked to stop.
pub type Stop = Pin<Box<dyn Future<Output = ()> + Send>>;

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

/// Parses a duration such as `10s`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let parsed: jiff::SignedDuration =
        text.parse().map_err(|_| format!("{text:?} is not a duration; write it like 10s or 500ms"))?;
    Duration::try_from(parsed).map_err(|_| "a duration cannot be negative".to_owned())
}
