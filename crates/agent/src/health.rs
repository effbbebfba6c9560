//! Whether the agent is of use, for the probes: it has seen its NodeImage, and its runtime answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use prewarm_process::http::Checks;
use prewarm_process::pulse::Pulse;

/// What is known about the agent's use. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Health {
    has_synced: Arc<AtomicBool>,
    has_runtime: Arc<AtomicBool>,
    /// Whether its loop turns.
    pub pulse: Pulse,
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

    /// The check of life.
    pub fn alive(&self) -> Checks {
        let (checks, pulse) = (Checks::default(), self.pulse.clone());
        checks.register("loop", move || pulse.check());
        checks
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
