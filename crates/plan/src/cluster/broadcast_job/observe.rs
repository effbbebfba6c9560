//! What is observed of BroadcastJobs, their pods and nodes becomes records.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use prewarm_api::kruise::{API_VERSION, BROADCAST_JOB, BroadcastJob, TemplateKind};

use super::fitness::{NodeFacts, misfit};
use super::is_over;
use super::jobs::{Broadcasts, Home};
use super::pod::Pod;
use super::record::Broadcast;
use super::roll::{NodeStanding, Roll};
use crate::cluster::interface::{About, Observe, Writes, owned};
use crate::cluster::{Kernel, Target};
use crate::object::store::Admission;
use crate::object::version::version;
use crate::object::{NodeName, ObjectKey, OwnerKey, Uid};

impl Observe for BroadcastJob {
    const ABOUT: About =
        About { can_be_left_out: true, ..About::new(API_VERSION, BROADCAST_JOB, Writes::Both) };

    fn metadata(&self) -> Option<&ObjectMeta> {
        Some(&self.metadata)
    }

    fn observe(self, kernel: &mut Kernel, _now: Timestamp) {
        kernel.observe_broadcast(self);
    }

    fn forget(kernel: &mut Kernel, key: &ObjectKey, uid: Option<&str>) {
        kernel.forget_broadcast(key, uid);
    }

    fn held(kernel: &Kernel) -> Vec<(ObjectKey, Uid)> {
        owned(kernel.broadcasts.jobs.held())
    }

    fn listed(kernel: &mut Kernel, _namespace: &str) {
        kernel.know_runs(TemplateKind::BroadcastJob);
        kernel.know_broadcasts();
    }

    fn visits(kernel: &Kernel, key: &ObjectKey) -> Option<u64> {
        Some(kernel.broadcasts.jobs.named(key)?.roll.visits())
    }
}

/// What is written of pods is written for their jobs.
impl Observe for (ObjectKey, Pod) {
    const ABOUT: About = About::new("v1", "Pod", Writes::Nothing);

    fn key(&self, _config_namespace: &str) -> ObjectKey {
        self.0.clone()
    }

    fn observe(self, kernel: &mut Kernel, _now: Timestamp) {
        let (key, pod) = self;
        kernel.observe_broadcast_pod(&key, pod);
    }

    fn forget(kernel: &mut Kernel, key: &ObjectKey, uid: Option<&str>) {
        kernel.forget_broadcast_pod(key, uid);
    }

    fn held(kernel: &Kernel) -> Vec<(ObjectKey, Uid)> {
        owned(kernel.broadcasts.homes.held())
    }

    fn listed(kernel: &mut Kernel, _namespace: &str) {
        kernel.know_broadcasts();
    }
}

impl Kernel {
    /// A Node is like this. Only jobs whose pods fit it otherwise than before are marked (kruise R110).
    pub(in crate::cluster) fn observe_fitness(&mut self, name: &NodeName, facts: NodeFacts) {
        if self.broadcasts.nodes.get(name) == Some(&facts) {
            return;
        }
        for (uid, job) in self.broadcasts.jobs.iter_mut().filter(|(_, job)| !is_over(&job.object)) {
            if job.roll.set_node(name, standing(job, name, &facts)) {
                self.agenda.mark(Target::Broadcast(uid.clone()));
            }
        }
        self.broadcasts.nodes.insert(name.clone(), facts);
    }

    /// A Node is gone.
    pub(in crate::cluster) fn forget_fitness(&mut self, name: &NodeName) {
        self.broadcasts.nodes.remove(name);
        for (uid, job) in self.broadcasts.jobs.iter_mut() {
            if job.roll.set_node(name, NodeStanding::Absent) {
                self.agenda.mark(Target::Broadcast(uid.clone()));
            }
        }
    }

    /// A BroadcastJob is like this.
    fn observe_broadcast(&mut self, mut object: BroadcastJob) {
        object.metadata.managed_fields = None;
        let Some(uid) = object.metadata.uid.as_deref().map(Uid::from) else { return };
        let key = ObjectKey::of(&object.metadata);
        let admission = self.broadcasts.jobs.admit(&key, &uid, version(&object.metadata));
        if let Admission::Replaces(other) = &admission {
            self.forget_broadcast(&key, Some(&other.clone()));
        }
        let has_changed = match (admission, self.broadcasts.jobs.get_mut(&uid)) {
            (Admission::Stale, _) => return,
            (Admission::Known, Some(job)) => job.renew(object),
            _ => {
                self.broadcasts.jobs.insert(uid.clone(), Broadcast::new(object));
                true
            }
        };
        if has_changed {
            self.broadcasts.enroll(&uid);
        }
        self.agenda.mark(Target::Broadcast(uid));
    }

    /// A BroadcastJob is gone. With a UID, only if it is still that one.
    fn forget_broadcast(&mut self, key: &ObjectKey, uid: Option<&str>) {
        if let Some((held, job)) = self.broadcasts.jobs.forget(key, uid) {
            let pods = job.roll.into_pods().map(|pod| (pod.name.clone(), pod)).collect();
            self.broadcasts.orphans.insert(OwnerKey::new(&key.namespace, &held), pods);
            self.agenda.drop_target(Target::Broadcast(held));
        }
    }

    /// A pod is like this. One that no job controls is of no interest.
    fn observe_broadcast_pod(&mut self, key: &ObjectKey, pod: Pod) {
        if pod.owner.is_empty() {
            return self.forget_broadcast_pod(key, None);
        }
        match self.broadcasts.homes.admit(key, &pod.uid, &pod.resource_version) {
            Admission::Stale => return,
            Admission::Known if self.broadcasts.pod(key) == Some(&pod) => return,
            Admission::Known | Admission::Replaces(_) => self.forget_broadcast_pod(key, None),
            Admission::New => {}
        }
        let home = Home {
            key: key.clone(),
            version: pod.resource_version.clone(),
            job: pod.owner.clone(),
            node: pod.node.clone(),
        };
        let owner = home.owner();
        self.broadcasts.homes.insert(pod.uid.clone(), home);
        if let Some(job) = self.broadcasts.job_mut(&owner) {
            job.roll.put(pod);
            self.agenda.mark(Target::Broadcast(owner.uid));
        } else {
            self.broadcasts.orphans.entry(owner).or_default().insert(pod.name.clone(), pod);
        }
    }

    /// A pod is gone. With a UID, only if it is still that one.
    fn forget_broadcast_pod(&mut self, key: &ObjectKey, uid: Option<&str>) {
        let Some((_, home)) = self.broadcasts.homes.forget(key, uid) else { return };
        let owner = home.owner();
        match self.broadcasts.job_mut(&owner) {
            Some(job) => {
                job.roll.remove(&home.node, &key.name);
                self.agenda.mark(Target::Broadcast(home.job));
            }
            None => self.broadcasts.forget_orphan(&owner, &key.name),
        }
    }
}

impl Broadcasts {
    /// Fills a job's roll anew. For a job that is over, only its pods matter.
    fn enroll(&mut self, uid: &Uid) {
        let Some(job) = self.jobs.get_mut(uid) else { return };
        let restart_limit = job.object.spec.failure_policy.restart_limit.unwrap_or(0);
        let held = std::mem::replace(&mut job.roll, Roll::new(restart_limit));
        if !is_over(&job.object) {
            for (name, facts) in &self.nodes {
                let standing = standing(job, name, facts);
                job.roll.set_node(name, standing);
            }
        }
        let owner = OwnerKey::new(&job.key.namespace, uid);
        let orphans = self.orphans.remove(&owner).unwrap_or_default();
        for pod in held.into_pods().chain(orphans.into_values()) {
            job.roll.put(pod);
        }
    }

    fn pod(&self, key: &ObjectKey) -> Option<&Pod> {
        let home = self.homes.named(key)?;
        match self.jobs.get(&home.job).filter(|job| job.key.namespace == key.namespace) {
            Some(job) => job.roll.pod(&home.node, &key.name),
            None => self.orphans.get(&home.owner())?.get(key.name.as_str()),
        }
    }

    /// The job of a pod: one with that UID in another namespace is none.
    fn job_mut(&mut self, owner: &OwnerKey) -> Option<&mut Broadcast> {
        self.jobs.get_mut(&owner.uid).filter(|job| job.key.namespace == owner.namespace)
    }

    fn forget_orphan(&mut self, job: &OwnerKey, name: &str) {
        if let Some(pods) = self.orphans.get_mut(job) {
            pods.remove(name);
            if pods.is_empty() {
                self.orphans.remove(job);
            }
        }
    }
}

/// Whether a job's pods fit a node. Nothing is known to fit as long as the template cannot be read.
fn standing(job: &Broadcast, name: &str, facts: &NodeFacts) -> NodeStanding {
    match &job.shape {
        Ok(shape) => misfit(shape, name, facts).map_or(NodeStanding::Fits, NodeStanding::Misfit),
        Err(_) => NodeStanding::Absent,
    }
}
