//! Whether the agent is of use, for the probes: it has seen its NodeImage, and its runtime answers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use prewarm_process::http::Checks;
use prewarm_process::pulse::Pulse;

const NO_ANSWER: &str = "the container runtime does not answer";

/// What is known about the agent's use. Clones share it.
#[derive(Clone, Debug)]
pub struct Health {
    has_synced: Arc<AtomicBool>,
    /// What keeps it from its runtime; nothing if that answers.
    runtime_trouble: Arc<Mutex<Option<String>>>,
    /// What a reader should know although it works.
    remark: Arc<Mutex<Option<String>>>,
    /// Whether its loop still runs.
    pub pulse: Pulse,
}

impl Default for Health {
    fn default() -> Self {
        Self {
            has_synced: Arc::default(),
            runtime_trouble: Arc::new(Mutex::new(Some(NO_ANSWER.to_owned()))),
            remark: Arc::default(),
            pulse: Pulse::default(),
        }
    }
}

impl Health {
    /// The NodeImage, or its absence, was seen.
    pub fn synced(&self) {
        self.has_synced.store(true, Ordering::Relaxed);
    }

    /// The runtime answers.
    pub fn has_runtime(&self) {
        self.set_trouble(None);
    }

    /// It answers no more.
    pub fn forget_runtime(&self) {
        self.set_trouble(Some(NO_ANSWER.to_owned()));
    }

    /// It cannot be reached, for this reason.
    pub fn waits_for_runtime(&self, reason: &str) {
        self.set_trouble(Some(format!("{NO_ANSWER}: {reason}")));
    }

    /// What a reader should know although it works; nothing if all is well.
    pub fn set_remark(&self, remark: Option<String>) {
        *self.remark.lock().unwrap_or_else(PoisonError::into_inner) = remark;
    }

    fn set_trouble(&self, trouble: Option<String>) {
        *self.runtime_trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }

    /// The check of life.
    pub fn alive(&self) -> Checks {
        let (checks, pulse) = (Checks::default(), self.pulse.clone());
        checks.register("loop", move || pulse.check());
        checks
    }

    /// The checks of readiness.
    pub fn checks(&self) -> Checks {
        let remark = self.remark.clone();
        let remark =
            move || remark.lock().unwrap_or_else(PoisonError::into_inner).clone().unwrap_or_default();
        let checks = Checks::default().with_remark(remark);
        let (synced, trouble) = (self.has_synced.clone(), self.runtime_trouble.clone());
        checks.register("nodeimage", move || {
            let trouble = "the NodeImage could not be read yet";
            if synced.load(Ordering::Relaxed) { Ok(()) } else { Err(trouble.to_owned()) }
        });
        checks.register("runtime", move || {
            let trouble = trouble.lock().unwrap_or_else(PoisonError::into_inner).clone();
            trouble.map_or(Ok(()), Err)
        });
        checks
    }
}
