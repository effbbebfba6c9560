//! Whether the agent is of use, for the probes: it has seen its NodeImage, and its runtime answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use prewarm_process::http::Checks;

/// What is known about the agent's use. Clones share it. Alive it is as long as it answers at all.
#[derive(Clone, Debug, Default)]
pub struct Health {
    has_synced: Arc<AtomicBool>,
    has_runtime: Arc<AtomicBool>,
}

impl Health {
    /// The NodeImage, or its absence, was seen.
    pub fn synced(&self) {
        self.has_synced.store(true, Ordering::Relaxed);
    }

    /// The runtime answers, or does not.
    pub fn runtime(&self, is_there: bool) {
        self.has_runtime.store(is_there, Ordering::Relaxed);
    }

    /// The checks of readiness.
    pub fn checks(&self) -> Checks {
        let checks = Checks::default();
        let (synced, runtime) = (self.has_synced.clone(), self.has_runtime.clone());
        checks.register("nodeimage", move || says(&synced, "the NodeImage could not be read yet"));
        checks.register("runtime", move || says(&runtime, "the container runtime does not answer"));
        checks
    }
}

fn says(flag: &AtomicBool, complaint: &str) -> Result<(), String> {
    if flag.load(Ordering::Relaxed) { Ok(()) } else { Err(complaint.to_owned()) }
}
