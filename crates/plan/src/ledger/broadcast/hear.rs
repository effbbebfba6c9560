//! What is heard.

use prewarm_api::kruise::BroadcastJob;

use super::job::Broadcast;
use super::{Broadcasts, Home};
use crate::broadcast_job::fitness::{NodeFacts, misfit};
use crate::broadcast_job::is_over;
use crate::broadcast_job::pod::Pod;
use crate::broadcast_job::roll::{NodeStanding, Roll};
use crate::ledger::hear::is_newer;
use crate::object::{NodeName, ObjectKey, Uid};

impl Broadcasts {
    /// A Node is like this. Only jobs whose pods fit it otherwise than before are woken (kruise R110).
    pub fn hear_node(&mut self, name: &NodeName, facts: NodeFacts) {
        if self.nodes.get(name) == Some(&facts) {
            return;
        }
        for (uid, job) in self.jobs.iter_mut().filter(|(_, job)| !is_over(&job.object)) {
            if job.roll.set_node(name, standing(job, name, &facts)) {
                self.dirty.insert(uid.clone());
            }
        }
        self.nodes.insert(name.clone(), facts);
    }

    /// A Node is gone.
    pub fn lose_node(&mut self, name: &NodeName) {
        self.nodes.remove(name);
        for (uid, job) in &mut self.jobs {
            if job.roll.set_node(name, NodeStanding::Absent) {
                self.dirty.insert(uid.clone());
            }
        }
    }

    /// A BroadcastJob is like this.
    pub fn hear_job(&mut self, mut object: BroadcastJob) {
        object.metadata.managed_fields = None;
        let Some(uid) = object.metadata.uid.as_deref().map(Uid::from) else { return };
        let key = ObjectKey::of(&object.metadata);
        if let Some(other) = self.uids.get(&key).filter(|other| **other != uid) {
            if is_newer(version(&self.jobs[other].object), version(&object)) {
                return;
            }
            self.lose_job(&key, None);
        }
        let has_changed = match self.jobs.get_mut(&uid) {
            Some(job) if is_newer(version(&job.object), version(&object)) => return,
            Some(job) => job.renew(object),
            None => {
                self.jobs.insert(uid.clone(), Broadcast::new(object));
                self.uids.insert(key, uid.clone());
                true
            }
        };
        if has_changed {
            self.enroll(&uid);
        }
        self.dirty.insert(uid);
    }

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
        let orphans = self.orphans.remove(uid).unwrap_or_default();
        for pod in held.into_pods().chain(orphans.into_values()) {
            job.roll.put(pod);
        }
    }

    /// A BroadcastJob is gone. With a UID, only if it is still that one.
    pub fn lose_job(&mut self, key: &ObjectKey, uid: Option<&str>) {
        let Some(held) = self.uids.get(key).filter(|held| uid.is_none_or(|uid| uid == &***held)).cloned()
        else {
            return;
        };
        self.uids.remove(key);
        self.timers.set(held.clone(), None);
        self.dirty.remove(&held);
        if let Some(job) = self.jobs.remove(&held) {
            let pods = job.roll.into_pods().map(|pod| (pod.name.clone(), pod)).collect();
            self.orphans.insert(held, pods);
        }
    }

    /// A pod of a BroadcastJob is like this.
    pub fn hear_pod(&mut self, namespace: &str, pod: Pod) {
        if self.gone.has(&pod.uid) {
            return;
        }
        let key = ObjectKey { namespace: namespace.to_owned(), name: pod.name.to_string() };
        if let Some(home) = self.homes.get(&key) {
            let held = self.pod(home, &pod.name);
            if held
                .is_some_and(|held| is_newer(&held.resource_version, &pod.resource_version) || *held == pod)
            {
                return;
            }
            self.forget_pod(&key);
        }
        let home = Home { job: pod.owner.clone(), node: pod.node.clone(), uid: pod.uid.clone() };
        match self.jobs.get_mut(&pod.owner) {
            Some(job) => {
                self.dirty.insert(pod.owner.clone());
                job.roll.put(pod);
            }
            None => {
                self.orphans.entry(pod.owner.clone()).or_default().insert(pod.name.clone(), pod);
            }
        }
        self.homes.insert(key, home);
    }

    fn pod(&self, home: &Home, name: &str) -> Option<&Pod> {
        match self.jobs.get(&home.job) {
            Some(job) => job.roll.pod(&home.node, name),
            None => self.orphans.get(&home.job)?.get(name),
        }
    }

    /// A pod is gone. With a UID, only if it is still that one.
    pub fn lose_pod(&mut self, namespace: &str, name: &str, uid: Option<&str>) {
        let key = ObjectKey { namespace: namespace.to_owned(), name: name.to_owned() };
        // Names come back, also at once; UIDs do not.
        if let Some(uid) = uid {
            self.gone.add(uid.into());
        }
        if self.homes.get(&key).is_some_and(|home| uid.is_none_or(|uid| *uid == *home.uid)) {
            self.forget_pod(&key);
        }
    }

    fn forget_pod(&mut self, key: &ObjectKey) {
        let Some(Home { job: owner, node, .. }) = self.homes.remove(key) else { return };
        let name = key.name.as_str();
        match self.jobs.get_mut(&owner) {
            Some(job) => {
                job.roll.remove(&node, name);
                self.dirty.insert(owner);
            }
            None => {
                if let Some(pods) = self.orphans.get_mut(&owner) {
                    pods.remove(name);
                    if pods.is_empty() {
                        self.orphans.remove(&owner);
                    }
                }
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

fn version(job: &BroadcastJob) -> &str {
    job.metadata.resource_version.as_deref().unwrap_or_default()
}
