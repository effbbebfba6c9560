//! Finds the runtime and finds it again: an agent waits for its runtime, however long that takes.

use std::time::Duration;

use prewarm_process::log::chain;
use prewarm_runtime::{ConnectError, Runtime};
use tracing::{info, warn};

use crate::config::RuntimeChoice;
use crate::health::Health;

/// The pause after the first failure; it doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// The longest pause between two tries.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Returns a runtime that answers. It never gives up.
pub async fn connect(choice: &RuntimeChoice, health: &Health) -> Runtime {
    let mut pause = FIRST_PAUSE;
    let mut last = String::new();
    loop {
        match connect_once(choice).await {
            Ok(runtime) => {
                info!(runtime = %runtime.version(), "the container runtime answers");
                return runtime;
            }
            Err(error) => {
                // The same sentence every ten seconds would only fill the log.
                let text = chain(&error);
                health.waits_for_runtime(&text);
                if text != last {
                    warn!(error = %text, "waiting for the container runtime");
                    last = text;
                }
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

async fn connect_once(choice: &RuntimeChoice) -> Result<Runtime, ConnectError> {
    match choice {
        RuntimeChoice::Given(endpoint) | RuntimeChoice::Simulated(endpoint, _) => {
            Runtime::connect(endpoint).await
        }
        RuntimeChoice::In(directory) => Runtime::detect(directory).await,
    }
}
