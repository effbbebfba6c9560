//! Finds the runtime and finds it again: an agent waits for its runtime, however long that takes. Which of several is the node's is
//! decided in `prewarm-plan`.

use std::path::Path;
use std::time::Duration;

use prewarm_plan::agent::node_runtime::{Answering, NoneAgrees, choose};
use prewarm_process::log::chain;
use prewarm_runtime::{ConnectError, Runtime};
use tokio::sync::watch;
use tracing::{info, warn};

use crate::config::RuntimeChoice;
use crate::health::Health;

/// The pause after the first failure; it doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// The longest pause between two tries.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// A search for the runtime. It never gives up.
pub struct Search {
    choice: RuntimeChoice,
    /// The runtime that the node's kubelet reports; nothing while the NodeImage does not say it.
    reported: watch::Receiver<Option<String>>,
    /// The socket on which the node's runtime answered before.
    used: Option<String>,
    health: Health,
    pause: Duration,
    /// Why there was none the last time, in words; empty before the first look.
    last: String,
}

/// A runtime that answers, and what it was compared with.
pub struct Found {
    pub runtime: Runtime,
    pub reported: Option<String>,
}

/// Why there is no runtime yet.
#[derive(Debug, thiserror::Error)]
pub enum NoRuntime {
    /// None answers.
    #[error("none answers")]
    Unanswered(#[source] ConnectError),
    /// Those that answer are others.
    #[error("none that answers is the node's")]
    NotTheNodes(#[source] NoneAgrees),
}

impl Search {
    pub fn new(
        choice: RuntimeChoice,
        reported: watch::Receiver<Option<String>>,
        used: Option<String>,
        health: Health,
    ) -> Self {
        Self { choice, reported, used, health, pause: FIRST_PAUSE, last: String::new() }
    }

    /// A runtime that answers, or why there is none, if that is another reason than the last time.
    pub async fn next(&mut self) -> Result<Found, NoRuntime> {
        loop {
            if !self.last.is_empty() {
                self.rest().await;
            }
            let reported = self.reported.borrow_and_update().clone();
            match self.look(reported.as_deref()).await {
                Ok(runtime) => {
                    info!(name = %runtime.name(), version = %runtime.version(), "the container runtime answers");
                    return Ok(Found { runtime, reported });
                }
                Err(reason) => {
                    // The same sentence every ten seconds would only fill the log.
                    let text = reason.sentence();
                    self.health.waits_for_runtime(&text);
                    if text != self.last {
                        warn!(error = %text, "waiting for the container runtime");
                        self.last = text;
                        return Err(reason);
                    }
                }
            }
        }
    }

    /// Waits until it is worth looking again.
    async fn rest(&mut self) {
        tokio::select! {
            () = tokio::time::sleep(self.pause) => {}
            // The sender ends with the agent, and then nothing is waited for.
            Ok(()) = self.reported.changed() => {}
        }
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }

    async fn look(&self, reported: Option<&str>) -> Result<Runtime, NoRuntime> {
        let found = match (&self.choice, reported) {
            (RuntimeChoice::Given(endpoint) | RuntimeChoice::Simulated(endpoint, _), _) => {
                Runtime::connect(endpoint).await
            }
            (RuntimeChoice::In(directory), None) => Runtime::detect(directory).await,
            (RuntimeChoice::In(directory), Some(reported)) => return self.compare(directory, reported).await,
        };
        found.map_err(NoRuntime::Unanswered)
    }

    async fn compare(&self, directory: &Path, reported: &str) -> Result<Runtime, NoRuntime> {
        let mut runtimes = Runtime::all(directory).await.map_err(NoRuntime::Unanswered)?;
        let answering: Vec<Answering> = runtimes.iter().map(answering).collect();
        let place = choose(reported, &answering, self.used.as_deref()).map_err(NoRuntime::NotTheNodes)?;
        Ok(runtimes.swap_remove(place))
    }
}

/// A runtime, as it is compared.
pub fn answering(runtime: &Runtime) -> Answering {
    Answering {
        socket: runtime.place().to_owned(),
        name: runtime.name().to_owned(),
        version: runtime.version().to_owned(),
    }
}

impl NoRuntime {
    /// What is in the way, in one sentence.
    fn sentence(&self) -> String {
        match self {
            Self::Unanswered(error) => chain(error),
            Self::NotTheNodes(error) => chain(error),
        }
    }
}
