//! Whether the controller is of use, for the probes: it leads and knows the cluster, or it stands by.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prewarm_plan::cluster::Kind;
use prewarm_process::http::Checks;
use prewarm_process::pulse::Pulse;

/// What is known about the controller's use. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Health {
    state: Arc<AtomicU8>,
    /// Kinds that the API server does not know.
    undefined: Arc<Mutex<BTreeSet<Kind>>>,
    /// What a reader should know although it works.
    remark: Arc<Mutex<Option<String>>>,
    /// That somebody else manages the same kinds.
    rival: Arc<Mutex<Option<String>>>,
    /// Whether the loop of a leader turns.
    pub pulse: Pulse,
}

const NO_DEFINITIONS: &str = "the API server does not know NodeImages; apply the definitions: prewarm crds | kubectl apply \
                              --server-side --force-conflicts -f -";

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

    /// The API server does not know this kind.
    pub fn lacks(&self, kind: Kind) {
        lock(&self.undefined).insert(kind);
    }

    /// It knows this kind.
    pub fn has(&self, kind: Kind) {
        lock(&self.undefined).remove(&kind);
    }

    /// What a reader should know although it works; nothing if all is well.
    pub fn set_remark(&self, remark: Option<String>) {
        *lock(&self.remark) = remark;
    }

    /// That somebody else manages the same kinds; nothing if nobody does.
    pub fn set_rival(&self, rival: Option<String>) {
        *lock(&self.rival) = rival;
    }

    /// The check of life.
    pub fn alive(&self) -> Checks {
        let (checks, pulse) = (Checks::default(), self.pulse.clone());
        checks.register("loop", move || pulse.check());
        checks
    }

    /// The checks of readiness.
    pub fn checks(&self) -> Checks {
        let (state, role) = (self.state.clone(), self.state.clone());
        let remarks = [self.remark.clone(), self.rival.clone()];
        let checks = Checks::default().with_remark(move || {
            let role = if role.load(Ordering::Relaxed) == STANDBY { "standby" } else { "leader" };
            let remarks = remarks.iter().filter_map(|remark| lock(remark).clone());
            std::iter::once(role.to_owned()).chain(remarks).collect::<Vec<_>>().join("; ")
        });
        checks.register("caches", move || match state.load(Ordering::Relaxed) {
            SYNCING => Err("the cluster's objects have not all been read yet".to_owned()),
            _ => Ok(()),
        });
        let undefined = self.undefined.clone();
        checks.register("definitions", move || {
            // The other kinds can be left out.
            let is_there = !lock(&undefined).contains(&Kind::NodeImage);
            if is_there { Ok(()) } else { Err(NO_DEFINITIONS.to_owned()) }
        });
        checks
    }
}

fn lock<T>(held: &Mutex<T>) -> MutexGuard<'_, T> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
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

    #[test]
    fn without_the_definition_of_node_images_nothing_can_be_done() {
        let health = Health::default();
        health.leads();
        health.synced();
        health.lacks(Kind::BroadcastJob);
        assert_eq!(says(&health).0, [], "who does not use it need not have it");
        health.lacks(Kind::NodeImage);
        assert_eq!(says(&health).0, [("definitions", NO_DEFINITIONS.to_owned())]);
        health.has(Kind::NodeImage);
        assert_eq!(says(&health).0, []);
    }

    #[test]
    fn what_a_reader_should_know_stands_beside_who_leads() {
        let health = Health::default();
        health.set_remark(Some("fields are lost".to_owned()));
        assert_eq!(says(&health).1, Some("standby; fields are lost".to_owned()));
        health.set_rival(Some("another manages them, too".to_owned()));
        assert_eq!(says(&health).1, Some("standby; fields are lost; another manages them, too".to_owned()));
        health.set_rival(None);
        health.set_remark(None);
        assert_eq!(says(&health).1, Some("standby".to_owned()));
    }
}
