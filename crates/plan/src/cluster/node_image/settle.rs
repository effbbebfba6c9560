//! What follows from the outcome of a write to a NodeImage.

use jiff::Timestamp;
use prewarm_api::kruise::{NodeImage, PullPhase};
use prewarm_api::names::event::PULL_IMAGE_FAILED;

use super::node::{Node, Refused};
use super::record::TagRecord;
use super::silence::Verdict;
use crate::cluster::command::{Notice, Outcome, Target};
use crate::cluster::{Kernel, Object, reference};
use crate::object::{ImageKey, NodeName};

impl Kernel {
    /// A NodeImage was written, or not.
    pub(super) fn settle_node_image(
        &mut self,
        name: &NodeName,
        outcome: Outcome<Object>,
        now: Timestamp,
        jitter: f64,
    ) {
        let Some(node) = self.nodes.all.get_mut(name) else { return };
        let was_failing = node.attempts.is_failing();
        let (carried, concerned) = node.land();
        let addressed = node.addressed.take();
        match outcome {
            Outcome::Written(object) => {
                node.attempts.succeed(now);
                node.taken();
                if let Some(image) = held_image(object, node) {
                    self.observe_node_image(image, now);
                    self.record_verdicts(name);
                }
            }
            Outcome::Gone => {
                node.attempts.succeed(now);
                if addressed.is_some() {
                    self.forget_node_image(name, addressed.as_deref());
                }
            }
            Outcome::Collided(object) => {
                node.attempts.collide(now, jitter);
                if let Some(image) = held_image(object, node) {
                    self.observe_node_image(image, now);
                }
            }
            Outcome::Refused(reason) => match node.refused(&carried, &reason) {
                Refused::Whole => node.attempts.fail(now, jitter),
                Refused::Split => node.attempts.succeed(now),
                Refused::Entry(key) => {
                    node.attempts.succeed(now);
                    node.crowded.room_changed();
                    self.entry_changed(&key, name);
                    self.record_refusal(name, &key, &reason);
                }
            },
            Outcome::Failed(_) => {
                outcome.pause(&mut node.attempts, now, jitter);
                let complaint = outcome.complaint(&mut node.attempts, now);
                let about = reference::node_image(name, Some(node));
                self.complain(about, complaint, now);
            }
        }
        let node = self.nodes.all.get_mut(name);
        let is_failing = node.is_some_and(|node| {
            node.judging.clear();
            node.attempts.is_failing()
        });
        if was_failing == is_failing {
            for uid in concerned {
                self.update_standing(&uid, name);
            }
            self.agenda.mark(Target::Node(name.clone()));
        } else {
            self.node_changed(name);
        }
    }

    fn record_refusal(&mut self, name: &NodeName, key: &ImageKey, reason: &str) {
        let note = format!("{}:{} cannot be written to this node: {reason}", key.name, key.tag);
        let about = reference::node_image(name, self.nodes.all.get(name));
        self.events.push(Notice::warning(PULL_IMAGE_FAILED, note).about(about));
    }

    /// Records the verdicts that were written (kruise R18). Those that did not hold any more were not.
    fn record_verdicts(&mut self, name: &NodeName) {
        let Some(node) = self.nodes.all.get_mut(name) else { return };
        let verdicts = std::mem::take(&mut node.judging);
        let holds = |verdict: &Verdict| {
            let tag = node.image.as_ref().and_then(|image| image.tag(&verdict.key)).map(|(_, tag)| tag);
            let status = tag.and_then(TagRecord::current).filter(|status| status.version == verdict.version);
            status.is_some_and(|status| status.phase == PullPhase::Failed)
        };
        let node_image = reference::node_image(name, Some(node));
        for Verdict { key, message, owners, .. } in verdicts.into_iter().filter(holds) {
            let sentence = format!("{}:{} on node {name}: {message}", key.name, key.tag);
            for about in owners.into_iter().chain([node_image.clone()]) {
                self.events.push(Notice::warning(PULL_IMAGE_FAILED, sentence.clone()).about(about));
            }
        }
    }
}

/// The NodeImage that an answer shows, unless it is known to be gone.
fn held_image(object: Object, node: &Node) -> Option<NodeImage> {
    let Object::NodeImage(image) = object else { return None };
    (!node.has_forgotten(&image)).then_some(*image)
}
