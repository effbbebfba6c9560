//! What is heard.

use prewarm_api::kruise::AdvancedCronJob;

use super::entry::Cron;
use super::{Crons, Home, RunKey};
use crate::advanced_cron_job::child::Child;
use crate::ledger::hear::is_newer;
use crate::object::{ObjectKey, Uid};

impl Crons {
    /// An AdvancedCronJob is like this.
    pub fn hear_cron(&mut self, mut object: AdvancedCronJob) {
        object.metadata.managed_fields = None;
        let Some(uid) = object.metadata.uid.as_deref().map(Uid::from) else { return };
        let key = ObjectKey::of(&object.metadata);
        if let Some(other) = self.uids.get(&key).filter(|other| **other != uid) {
            if is_newer(version(&self.entries[other].object), version(&object)) {
                return;
            }
            self.lose_cron(&key, None);
        }
        match self.entries.get_mut(&uid) {
            Some(cron) if is_newer(version(&cron.object), version(&object)) => return,
            Some(cron) => cron.renew(object),
            None => {
                self.entries.insert(uid.clone(), Cron::new(object));
                self.uids.insert(key, uid.clone());
            }
        }
        self.dirty.insert(uid);
    }

    /// An AdvancedCronJob is gone. With a UID, only if it is still that one.
    pub fn lose_cron(&mut self, key: &ObjectKey, uid: Option<&str>) {
        let held = self.uids.get(key).filter(|held| uid.is_none_or(|uid| *uid == ***held)).cloned();
        if let Some(held) = held {
            self.uids.remove(key);
            self.entries.remove(&held);
            self.timers.set(held.clone(), None);
            // Whoever watches for its sake looks whether that is still needed.
            self.dirty.insert(held);
        }
    }

    /// An object that may be a run is like this; `None` if no cron job controls it.
    pub fn hear_run(&mut self, key: &RunKey, run: Option<Child>) {
        let Some(run) = run else { return self.forget_run(key) };
        if self.gone.has(&run.uid) {
            return;
        }
        if let Some(home) = self.homes.get(key) {
            let held = self.runs_of(&home.cron).get(&run.name);
            let is_old = |held: &Child| is_newer(&held.resource_version, &run.resource_version);
            if held.is_some_and(|held| is_old(held) || *held == run) {
                return;
            }
            self.forget_run(key);
        }
        let home = Home { cron: run.owner.clone(), uid: run.uid.clone() };
        self.dirty.insert(run.owner.clone());
        self.runs.entry(run.owner.clone()).or_default().insert(run.name.clone(), run);
        self.homes.insert(key.clone(), home);
    }

    /// An object that may be a run is gone. With a UID, only if it is still that one.
    pub fn lose_run(&mut self, key: &RunKey, uid: Option<&str>) {
        let Some(home) = self.homes.get(key) else { return };
        if uid.is_none_or(|uid| *uid == *home.uid) {
            self.gone.add(home.uid.clone());
            self.forget_run(key);
        }
    }

    pub(super) fn forget_run(&mut self, key: &RunKey) {
        let Some(Home { cron, .. }) = self.homes.remove(key) else { return };
        if let Some(runs) = self.runs.get_mut(&cron) {
            runs.remove(key.key.name.as_str());
            if runs.is_empty() {
                self.runs.remove(&cron);
            }
        }
        self.dirty.insert(cron);
    }
}

fn version(cron: &AdvancedCronJob) -> &str {
    cron.metadata.resource_version.as_deref().unwrap_or_default()
}
