//! What is observed of ImagePullJobs becomes records. Nothing is decided here; what has changed is marked.

use std::collections::BTreeSet;

use prewarm_api::kruise::ImagePullJob;

use super::jobs::no_image;
use super::record::Job;
use super::roll::Roll;
use crate::cluster::{Kernel, Target};
use crate::object::store::Admission;
use crate::object::version::version;
use crate::object::{ObjectKey, Uid};

impl Kernel {
    /// An ImagePullJob is like this.
    pub(in crate::cluster) fn observe_job(&mut self, mut object: ImagePullJob) {
        object.metadata.managed_fields = None;
        let Some(uid) = object.metadata.uid.as_deref().map(|uid| self.shared.text::<Uid>(uid)) else {
            return;
        };
        let key = ObjectKey::of(&object.metadata);
        let admission = self.jobs.all.admit(&key, &uid, version(&object.metadata));
        if let Admission::Replaces(other) = &admission {
            self.forget_job(&key, Some(&other.clone()));
        }
        let (had_roll, is_new_spec) = match (admission, self.jobs.all.get_mut(&uid)) {
            (Admission::Stale, _) => return,
            (Admission::Known, Some(job)) => {
                let (image, had_roll) = (job.demand.image.clone(), job.roll.is_some());
                let is_new_spec = job.renew(object);
                self.jobs.unlist(image, &uid);
                (had_roll, is_new_spec)
            }
            _ => {
                self.jobs.all.insert(uid.clone(), Job::new(object));
                (false, true)
            }
        };
        self.place_job(&uid, had_roll, is_new_spec);
    }

    /// Brings everything that depends on a job in line with it.
    fn place_job(&mut self, uid: &Uid, had_roll: bool, is_new_spec: bool) {
        let Some(job) = self.jobs.all.get(uid) else { return };
        let (image, is_active) = (job.demand.image.clone(), job.is_active());
        if let Some(list) = job.list_uid().map(Uid::from) {
            self.jobs.children.entry(list.clone()).or_default().insert(uid.clone());
            self.agenda.mark(Target::List(list));
        }
        if is_active {
            self.jobs.by_image.entry(image.unwrap_or_else(no_image)).or_default().insert(uid.clone());
            if !had_roll || is_new_spec {
                self.claim_sources(uid);
                self.count_pods(uid);
                self.enroll(uid);
            }
        } else if had_roll || is_new_spec {
            self.dismiss(uid);
            self.claim_sources(uid);
        }
        self.agenda.mark(Target::Job(uid.clone()));
    }

    /// Looks where every node is for a job.
    fn enroll(&mut self, uid: &Uid) {
        if let Some(job) = self.jobs.all.get_mut(uid) {
            job.roll = Some(Roll::default());
        }
        self.update_standings(uid);
    }

    /// An ImagePullJob is gone. With a UID, only if it is still that one.
    pub(in crate::cluster) fn forget_job(&mut self, key: &ObjectKey, uid: Option<&str>) {
        let held = self.jobs.all.uid(key).filter(|held| uid.is_none_or(|uid| *uid == ***held)).cloned();
        if let Some(held) = &held {
            self.dismiss(held);
        }
        let Some((held, job)) = self.jobs.all.forget(key, uid) else { return };
        self.jobs.unlist(job.demand.image.clone(), &held);
        self.unclaim_sources(&job.key, &BTreeSet::new());
        if let Some(list) = job.list_uid().map(Uid::from) {
            self.forget_child(&list, &held);
        }
        self.agenda.drop_target(Target::Job(held.clone()));
        self.jobs.left.insert(held);
    }

    /// The list of these children is gone, and the garbage collector is about to take them one by one. They leave all nodes
    /// at once, so that each node is written once.
    pub(in crate::cluster) fn abandon_children(&mut self, list: &Uid) {
        let children: Vec<Uid> = self.jobs.children.get(list).into_iter().flatten().cloned().collect();
        for uid in children {
            let Some(job) = self.jobs.all.get_mut(&uid) else { continue };
            let image = job.demand.image.clone();
            if std::mem::replace(&mut job.is_abandoned, true) {
                continue;
            }
            self.jobs.unlist(image, &uid);
            self.dismiss(&uid);
            self.claim_sources(&uid);
            // A child that is over has entries, too.
            self.jobs.left.insert(uid.clone());
            self.agenda.mark(Target::Job(uid));
        }
    }

    fn forget_child(&mut self, list: &Uid, child: &Uid) {
        if let Some(children) = self.jobs.children.get_mut(list) {
            children.remove(child);
            if children.is_empty() {
                self.jobs.children.remove(list);
            }
        }
        self.agenda.mark(Target::List(list.clone()));
    }

    /// A job is over: its nodes look whether they still need what it wanted.
    fn dismiss(&mut self, uid: &Uid) {
        let Some(job) = self.jobs.all.get_mut(uid) else { return };
        let Some(roll) = job.roll.take() else { return };
        // A job that was edited may have entries of another image on nodes that it no longer selects.
        if job.object.metadata.generation != Some(1) {
            self.jobs.left.insert(uid.clone());
        }
        self.agenda.mark_all(roll.nodes().cloned().map(Target::Node));
    }
}
