//! Whether the controller is of use, for the probes: it leads and knows the cluster, or it stands by.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use prewarm_process::http::Checks;
use prewarm_process::pulse::Pulse;

/// What is known about the controller's use. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Health {
    state: Arc<AtomicU8>,
    /// Whether the loop of a leader turns.
    pub pulse: Pulse,
}

/// Stands by: another leads.
const STANDBY: u8 = 0;
/// Leads, but has not heard of everything yet.
const SYNCING: u8 = 1;
/// Leads and knows the cluster.
const SYNCED: u8 = 2;

impl Health {
    /// It leads from here on.
    pub fn leads(&self) {
        self.state.store(SYNCING, Ordering::Relaxed);
    }

    /// It has heard of everything.
    pub fn synced(&self) {
        self.state.store(SYNCED, Ordering::Relaxed);
    }

    /// The check of life.
    pub fn alive(&self) -> Checks {
        let (checks, pulse) = (Checks::default(), self.pulse.clone());
        checks.register("loop", move || pulse.check());
        checks
    }

    /// The checks of readiness.
    pub fn checks(&self) -> Checks {
        let (state, remark) = (self.state.clone(), self.state.clone());
        let checks = Checks::default().with_remark(move || match remark.load(Ordering::Relaxed) {
            STANDBY => "standby".to_owned(),
            _ => "leader".to_owned(),
        });
        checks.register("caches", move || match state.load(Ordering::Relaxed) {
            SYNCING => Err("the cluster's objects have not all been read yet".to_owned()),
            _ => Ok(()),
        });
        checks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(health: &Health) -> (Vec<(&'static str, String)>, Option<String>) {
        (health.checks().failing(), health.checks().remark())
    }

    #[test]
    fn a_process_that_stands_by_is_ready_and_says_so() {
        assert_eq!(says(&Health::default()), (vec![], Some("standby".to_owned())));
    }

    #[test]
    fn a_leader_is_ready_once_it_has_read_everything() {
        let health = Health::default();
        health.leads();
        let complaint = "the cluster's objects have not all been read yet".to_owned();
        assert_eq!(says(&health).0, [("caches", complaint)]);
        health.clone().synced();
        assert_eq!(says(&health), (vec![], Some("leader".to_owned())));
    }
}
