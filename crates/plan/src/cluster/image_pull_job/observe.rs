//! What is observed of ImagePullJobs becomes records. Nothing is decided here; what has changed is marked.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use prewarm_api::kruise::{API_VERSION, IMAGE_PULL_JOB, ImagePullJob};

use super::record::Job;
use crate::cluster::demands::DemandRecord;
use crate::cluster::interface::{About, Observe, Writes, owned};
use crate::cluster::{Kernel, Target};
use crate::object::store::Admission;
use crate::object::version::version;
use crate::object::{ObjectKey, OwnerKey, Uid};

impl Observe for ImagePullJob {
    const ABOUT: About = About {
        is_needed: true,
        can_be_left_out: true,
        makes_demands: true,
        ..About::new(API_VERSION, IMAGE_PULL_JOB, Writes::Both)
    };

    fn metadata(&self) -> Option<&ObjectMeta> {
        Some(&self.metadata)
    }

    fn key(&self, _config_namespace: &str) -> ObjectKey {
        ObjectKey::of(&self.metadata)
    }

    fn observe(self, kernel: &mut Kernel, _now: Timestamp) {
        kernel.observe_job(self);
    }

    fn forget(kernel: &mut Kernel, key: &ObjectKey, uid: Option<&str>) {
        kernel.forget_job(key, uid);
    }

    fn held(kernel: &Kernel) -> Vec<(ObjectKey, Uid)> {
        owned(kernel.jobs.all.held())
    }

    fn released(kernel: &mut Kernel, key: &ObjectKey, uid: Uid) {
        kernel.demands.find_entries_of(uid);
        kernel.mark_sources_of(key);
    }

    fn visits(kernel: &Kernel, key: &ObjectKey) -> Option<u64> {
        let uid = kernel.jobs.all.uid(key)?;
        Some(kernel.demands.get(uid)?.roll.as_ref()?.visits())
    }
}

impl Kernel {
    /// An ImagePullJob is like this.
    fn observe_job(&mut self, mut object: ImagePullJob) {
        object.metadata.managed_fields = None;
        let Some(uid) = object.metadata.uid.as_deref().map(|uid| self.shared.text::<Uid>(uid)) else {
            return;
        };
        let key = ObjectKey::of(&object.metadata);
        let admission = self.jobs.all.admit(&key, &uid, version(&object.metadata));
        if let Admission::Replaces(other) = &admission {
            self.forget_job(&key, Some(&other.clone()));
        }
        let is_new_spec = match (admission, self.jobs.all.get_mut(&uid)) {
            (Admission::Stale, _) => return,
            (Admission::Known, Some(job)) => job.renew(object),
            _ => {
                self.jobs.all.insert(uid.clone(), Job::new(object));
                true
            }
        };
        self.place_job(&uid, is_new_spec);
    }

    /// Brings everything that depends on a job in line with it.
    fn place_job(&mut self, uid: &Uid, is_new_spec: bool) {
        let Some(job) = self.jobs.all.get(uid) else { return };
        let statement = job.statement(uid, is_new_spec);
        if let Some(list) = job.list() {
            self.agenda.mark(Target::List(list.uid.clone()));
            self.jobs.children.entry(list).or_default().insert(uid.clone());
        }
        let is_terminating = job.is_terminating();
        self.place_demand(uid, statement);
        if is_terminating {
            // What is kept for a while after its end goes with it.
            let sources = self.demands.get(uid).map(DemandRecord::sources).unwrap_or_default();
            self.agenda.mark_all(sources.into_iter().map(Target::Source));
        }
    }

    /// An ImagePullJob is gone. With a UID, only if it is still that one.
    fn forget_job(&mut self, key: &ObjectKey, uid: Option<&str>) {
        let Some((held, job)) = self.jobs.all.forget(key, uid) else { return };
        self.forget_demand(&held);
        if let Some(list) = job.list() {
            self.forget_child(&list, &held);
        }
        self.agenda.drop_target(Target::Job(held));
    }

    /// The list of these children is gone, and the garbage collector is about to take them one by one. They leave all nodes
    /// at once, so that each node is written once.
    pub(in crate::cluster) fn abandon_children(&mut self, list: &OwnerKey) {
        let children: Vec<Uid> = self.jobs.children.get(list).into_iter().flatten().cloned().collect();
        for uid in children {
            let Some(job) = self.jobs.all.get_mut(&uid) else { continue };
            if !std::mem::replace(&mut job.is_abandoned, true) {
                self.abandon_demand(&uid);
            }
        }
    }

    fn forget_child(&mut self, list: &OwnerKey, child: &Uid) {
        if let Some(children) = self.jobs.children.get_mut(list) {
            children.remove(child);
            if children.is_empty() {
                self.jobs.children.remove(list);
            }
        }
        self.agenda.mark(Target::List(list.uid.clone()));
    }
}
