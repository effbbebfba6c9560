//! What is observed of AdvancedCronJobs and of objects that may be their runs becomes records.

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use prewarm_api::kruise::{ADVANCED_CRON_JOB, API_VERSION, AdvancedCronJob, TemplateKind};

use super::child::Child;
use super::crons::{Home, RunKey};
use super::record::Cron;
use crate::cluster::interface::{About, Observe, Writes, owned};
use crate::cluster::{Kernel, Target};
use crate::object::store::Admission;
use crate::object::version::{leaves_dependents, version};
use crate::object::{ObjectKey, OwnerKey, Uid};

impl Observe for AdvancedCronJob {
    const ABOUT: About =
        About { can_be_left_out: true, ..About::new(API_VERSION, ADVANCED_CRON_JOB, Writes::Status) };

    fn metadata(&self) -> Option<&ObjectMeta> {
        Some(&self.metadata)
    }

    fn observe(self, kernel: &mut Kernel, _now: Timestamp) {
        kernel.observe_cron(self);
    }

    fn forget(kernel: &mut Kernel, key: &ObjectKey, uid: Option<&str>) {
        kernel.forget_cron(key, uid);
    }

    fn held(kernel: &Kernel) -> Vec<(ObjectKey, Uid)> {
        owned(kernel.crons.all.held())
    }
}

/// A Job is nothing but a run: that is observed of every kind that cron jobs make.
impl Observe for (ObjectKey, Option<Child>) {
    const ABOUT: About = About::new("batch/v1", "Job", Writes::Nothing);

    fn key(&self, _config_namespace: &str) -> ObjectKey {
        self.0.clone()
    }

    fn observe(self, _kernel: &mut Kernel, _now: Timestamp) {}

    fn forget(_kernel: &mut Kernel, _key: &ObjectKey, _uid: Option<&str>) {}

    fn listed(kernel: &mut Kernel, namespace: &str) {
        kernel.know_jobs(namespace);
    }

    fn unwatched(kernel: &mut Kernel, namespace: &str) {
        kernel.unwatch_runs(namespace);
    }

    fn namespaces(kernel: &Kernel) -> BTreeSet<String> {
        kernel.run_namespaces()
    }
}

impl Kernel {
    /// An AdvancedCronJob is like this.
    fn observe_cron(&mut self, mut object: AdvancedCronJob) {
        object.metadata.managed_fields = None;
        let Some(uid) = object.metadata.uid.as_deref().map(Uid::from) else { return };
        let key = ObjectKey::of(&object.metadata);
        let admission = self.crons.all.admit(&key, &uid, version(&object.metadata));
        if let Admission::Replaces(other) = &admission {
            self.forget_cron(&key, Some(&other.clone()));
        }
        match (admission, self.crons.all.get_mut(&uid)) {
            (Admission::Stale, _) => return,
            (Admission::Known, Some(cron)) => cron.renew(object),
            _ => {
                self.crons.all.insert(uid.clone(), Cron::new(object));
            }
        }
        self.agenda.mark(Target::Cron(uid));
    }

    /// An AdvancedCronJob is gone. With a UID, only if it is still that one.
    fn forget_cron(&mut self, key: &ObjectKey, uid: Option<&str>) {
        if let Some((held, cron)) = self.crons.all.forget(key, uid) {
            // One that is gone by its name alone may only be unreadable.
            if uid.is_some() && !leaves_dependents(&cron.object.metadata) {
                self.abandon_runs(&OwnerKey::new(&cron.key.namespace, &held));
            }
            self.agenda.drop_target(Target::Cron(held.clone()));
            // Whoever watches for its sake looks whether that is still needed.
            self.agenda.mark(Target::Cron(held));
        }
    }

    /// The cron job of these runs is gone, and the garbage collector is about to take them and what they made.
    fn abandon_runs(&mut self, cron: &OwnerKey) {
        let runs = self.crons.runs_of(cron).values();
        let lists = runs.filter(|run| run.kind == TemplateKind::ImageListPullJob);
        let lists: Vec<Uid> = lists.map(|run| run.uid.clone()).collect();
        for list in lists {
            self.abandon_list(&OwnerKey::new(&cron.namespace, &list));
        }
    }

    /// An object that may be a run is like this; `None` if no cron job controls it.
    pub(in crate::cluster) fn observe_run(&mut self, key: &RunKey, run: Option<Child>) {
        let Some(run) = run else { return self.forget_run(key, None) };
        let homes = self.crons.homes.entry(key.kind).or_default();
        let is_held = |home: &Home| {
            self.crons.runs.get(&home.owner()).and_then(|runs| runs.get(&run.name)) == Some(&run)
        };
        match homes.admit(&key.key, &run.uid, &run.resource_version) {
            Admission::Stale => return,
            Admission::Known if homes.named(&key.key).is_some_and(is_held) => return,
            Admission::Known | Admission::Replaces(_) => self.forget_run(key, None),
            Admission::New => {}
        }
        let (key, version) = (key.clone(), run.resource_version.clone());
        let home = Home { key: key.key, version, cron: run.owner.clone() };
        let owner = home.owner();
        self.crons.homes.entry(key.kind).or_default().insert(run.uid.clone(), home);
        self.agenda.mark(Target::Cron(run.owner.clone()));
        self.crons.runs.entry(owner).or_default().insert(run.name.clone(), run);
    }

    /// An object that may be a run is gone. With a UID, only if it is still that one.
    pub(in crate::cluster) fn forget_run(&mut self, key: &RunKey, uid: Option<&str>) {
        let homes = self.crons.homes.entry(key.kind).or_default();
        let Some((_, home)) = homes.forget(&key.key, uid) else { return };
        let owner = home.owner();
        if let Some(runs) = self.crons.runs.get_mut(&owner) {
            runs.remove(key.key.name.as_str());
            if runs.is_empty() {
                self.crons.runs.remove(&owner);
            }
        }
        self.agenda.mark(Target::Cron(home.cron));
    }
}
