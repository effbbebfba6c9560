//! What became of commands.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use prewarm_api::kruise::{ImageListPullJob, ImagePullJob, NodeImage, PullPhase};
use prewarm_api::names::event::{CHILD_REFUSED, PULL_IMAGE_FAILED};

use super::command::{Outcome, Telling};
use super::node::Refused;
use super::record::TagRecord;
use super::{Ledger, Target, reference, turn_list};
use crate::node_image::Verdict;
use crate::object::ObjectKey;
use crate::object::{ImageKey, NodeName, Uid};

impl Ledger {
    /// A NodeImage was written, or not. `jitter` is a random number from 0 to 1.
    pub fn node_image_outcome(
        &mut self,
        name: &str,
        outcome: Outcome<NodeImage>,
        now: Timestamp,
        jitter: f64,
    ) {
        let name: NodeName = self.shared.text(name);
        let Some(node) = self.nodes.get_mut(&name) else { return };
        let was_failing = node.attempts.is_failing();
        let (carried, concerned) = node.land();
        let addressed = node.addressed.take();
        match outcome {
            Outcome::Written(object) => {
                node.attempts.succeed();
                node.taken();
                if !node.has_lost(&object) {
                    self.hear_node_image(object, now);
                    self.tell_verdicts(&name);
                }
            }
            Outcome::Gone => {
                node.attempts.succeed();
                if addressed.is_some() {
                    self.lose_node_image(&name, addressed.as_deref());
                }
            }
            Outcome::Collided(object) => {
                node.attempts.collide(now, jitter);
                if !node.has_lost(&object) {
                    self.hear_node_image(*object, now);
                }
            }
            Outcome::Refused(reason) => match node.refused(&carried, &reason) {
                Refused::Whole => node.attempts.fail(now, jitter),
                Refused::Split => node.attempts.succeed(),
                Refused::Entry(key) => {
                    node.attempts.succeed();
                    self.restand_image(&key, &name);
                    self.tell_refusal(&name, &key, &reason);
                }
            },
            Outcome::Failed => node.attempts.fail(now, jitter),
        }
        let node = self.nodes.get_mut(&name);
        let is_failing = node.is_some_and(|node| {
            node.judging.clear();
            node.attempts.is_failing()
        });
        if was_failing == is_failing {
            for uid in concerned {
                self.restand(&uid, &name);
            }
            self.soil(Target::Node(name));
        } else {
            self.regard(&name);
        }
    }

    fn tell_refusal(&mut self, name: &NodeName, key: &ImageKey, reason: &str) {
        let note = format!("{}:{} cannot be written to this node: {reason}", key.name, key.tag);
        let about = reference::node_image(name, self.nodes.get(name));
        self.tell(Telling { about, is_warning: true, reason: PULL_IMAGE_FAILED, note });
    }

    /// Tells of the verdicts that were written (kruise R18). Those that did not hold any more were not.
    fn tell_verdicts(&mut self, name: &NodeName) {
        let held = self.nodes.get_mut(name);
        let verdicts = held.map(|node| std::mem::take(&mut node.judging)).unwrap_or_default();
        let image = self.nodes.get(name).and_then(|node| node.image.clone());
        let holds = |verdict: &Verdict| {
            let tag = image.as_ref().and_then(|image| image.tag(&verdict.key)).map(|(_, tag)| tag);
            let status = tag.and_then(TagRecord::current).filter(|status| status.version == verdict.version);
            status.is_some_and(|status| status.phase == PullPhase::Failed)
        };
        let node_image = reference::node_image(name, self.nodes.get(name));
        for Verdict { key, message, owners, .. } in verdicts.into_iter().filter(holds) {
            let note = format!("{}:{} on node {name}: {message}", key.name, key.tag);
            for about in owners.into_iter().chain([node_image.clone()]) {
                self.tell(Telling { about, is_warning: true, reason: PULL_IMAGE_FAILED, note: note.clone() });
            }
        }
    }

    /// An ImagePullJob was written, or not.
    pub fn job_outcome(
        &mut self,
        key: &ObjectKey,
        uid: &Uid,
        outcome: Outcome<ImagePullJob>,
        now: Timestamp,
        jitter: f64,
    ) {
        let Some(job) = self.jobs.get_mut(uid) else { return };
        match outcome {
            // With the last finalizer goes the object, although the answer still shows it.
            Outcome::Written(object) if has_ended(&object.metadata) => {
                job.attempts.succeed();
                self.end_job(key, uid);
            }
            Outcome::Written(object) => {
                job.attempts.succeed();
                self.hear_job(object);
            }
            Outcome::Gone => {
                job.attempts.succeed();
                self.end_job(key, uid);
            }
            Outcome::Collided(object) => {
                job.attempts.collide(now, jitter);
                self.hear_job(*object);
            }
            Outcome::Refused(_) | Outcome::Failed => {
                // What was not written need not wait for its second.
                job.written_at = None;
                job.attempts.fail(now, jitter);
            }
        }
        self.soil(Target::Job(uid.clone()));
    }

    /// An ImageListPullJob was written, or not.
    pub fn list_outcome(
        &mut self,
        key: &ObjectKey,
        uid: &Uid,
        outcome: Outcome<ImageListPullJob>,
        now: Timestamp,
        jitter: f64,
    ) {
        let Some(list) = self.lists.get_mut(uid) else { return };
        match outcome {
            Outcome::Written(object) => {
                list.attempts.succeed();
                self.hear_list(object);
            }
            Outcome::Gone => {
                list.attempts.succeed();
                self.lose_list(key, Some(uid));
            }
            Outcome::Collided(object) => {
                list.attempts.collide(now, jitter);
                self.hear_list(*object);
            }
            Outcome::Refused(_) | Outcome::Failed => list.attempts.fail(now, jitter),
        }
        self.soil(Target::List(uid.clone()));
    }

    /// A child of a list was made, or not.
    pub fn child_created(
        &mut self,
        list_uid: &Uid,
        child: &ImagePullJob,
        outcome: Outcome<ImagePullJob>,
        now: Timestamp,
        jitter: f64,
    ) {
        let name = child.metadata.name.clone().unwrap_or_default();
        if let Some(list) = self.lists.get_mut(list_uid) {
            list.creating.remove(&name);
            match &outcome {
                Outcome::Written(_) | Outcome::Collided(_) => {
                    list.refused.remove(&child.spec.image);
                    list.child_attempts.succeed();
                    list.created += usize::from(matches!(outcome, Outcome::Written(_)));
                }
                Outcome::Refused(reason) => {
                    let is_news = list.refused.insert(child.spec.image.clone(), reason.clone()).as_ref()
                        != Some(reason);
                    list.child_attempts.fail(now, jitter);
                    list.batch = 1;
                    if is_news {
                        let note = format!("no ImagePullJob for {}: {reason}", child.spec.image);
                        let about = turn_list::reference(&list.object);
                        self.tellings.push(Telling { about, is_warning: true, reason: CHILD_REFUSED, note });
                    }
                }
                Outcome::Gone | Outcome::Failed => list.child_attempts.fail(now, jitter),
            }
        }
        match outcome {
            Outcome::Written(object) => self.hear_job(object),
            Outcome::Collided(object) => self.hear_job(*object),
            Outcome::Gone | Outcome::Refused(_) | Outcome::Failed => {}
        }
        self.soil(Target::List(list_uid.clone()));
    }

    /// A child of a list was deleted, or not.
    pub fn child_deleted(
        &mut self,
        list_uid: &Uid,
        key: &ObjectKey,
        uid: &str,
        outcome: Outcome<ImagePullJob>,
        now: Timestamp,
        jitter: f64,
    ) {
        if let Some(list) = self.lists.get_mut(list_uid) {
            list.deleting.remove(uid);
            match &outcome {
                Outcome::Written(_) | Outcome::Gone => {
                    list.child_attempts.succeed();
                    list.deleted += 1;
                }
                Outcome::Collided(_) | Outcome::Refused(_) | Outcome::Failed => {
                    list.child_attempts.fail(now, jitter);
                }
            }
        }
        match outcome {
            // It is on its way out and waits for its finalizer.
            Outcome::Written(object) => self.hear_job(object),
            Outcome::Gone => self.end_job(key, uid),
            Outcome::Collided(_) | Outcome::Refused(_) | Outcome::Failed => {}
        }
        self.soil(Target::List(list_uid.clone()));
    }
}

/// Whether an object that is being deleted has nothing left to wait for.
fn has_ended(metadata: &ObjectMeta) -> bool {
    metadata.deletion_timestamp.is_some() && metadata.finalizers.as_ref().is_none_or(Vec::is_empty)
}
