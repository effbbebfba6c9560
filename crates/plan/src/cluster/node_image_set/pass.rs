//! The pass over a NodeImageSet: it says what its ImagePrefetch wants of its node and how far that is, or goes.

use std::collections::BTreeMap;

use jiff::Timestamp;
use prewarm_api::names::NODE_IMAGE_SET_FINALIZER;
use prewarm_api::ofen::{NodeImageSet, NodeImageSetSpec};
use serde_json::{Value, json};

use super::record::{NodeSet, Sets};
use super::status::{notices, status};
use super::{ORPHAN_AFTER, spec};
use crate::cluster::command::{Command, Settled, Verb, Write};
use crate::cluster::demands::parts;
use crate::cluster::demands::standing::Stage;
use crate::cluster::guard::{guarded, remove_finalizer_named, replace_status};
use crate::cluster::image_prefetch::{ImageState, LONGEST_SEED_PATIENCE};
use crate::cluster::interface::{Pass, STATUS_INTERVAL};
use crate::cluster::kind::Subject;
use crate::cluster::node_image::node::Want;
use crate::cluster::{Kernel, Kind, Target};
use crate::object::{NodeName, Uid};
use crate::time::{after, earliest};

impl Pass for Sets {
    type Id = Uid;

    fn pass(kernel: &mut Kernel, uid: &Uid, now: Timestamp, commands: &mut Vec<Command>) {
        kernel.set_pass(uid, now, commands);
    }

    fn settle(kernel: &mut Kernel, uid: &Uid, settled: Settled) {
        kernel.settle_set(uid, settled);
    }
}

/// What becomes of a set.
enum Fate {
    /// It goes.
    Goes,
    /// It is to say this, and how far these images are.
    Says(Box<NodeImageSet>, Vec<(String, ImageState)>),
    /// It is a person's; only its status is written.
    ByHand(Vec<(String, ImageState)>),
    /// It stays as it is: its node has not begun in this generation, or not everything is known.
    Stays,
}

impl Kernel {
    fn set_pass(&mut self, uid: &Uid, now: Timestamp, commands: &mut Vec<Command>) {
        let Some(set) = self.sets.all.get(uid) else { return };
        self.passes.count(Subject::NodeImageSet);
        let is_by_hand = set.owner.is_none();
        let mut wake_at = self.note_orphan(uid, now);
        if is_by_hand {
            wake_at = earliest(wake_at, self.want_by_hand(uid, now));
        }
        let fate = self.fate(uid, now);
        let Some(set) = self.sets.all.get_mut(uid) else { return };
        if set.attempts.is_blocked(now) {
            wake_at = earliest(wake_at, set.attempts.pause_ends());
            return self.agenda.wake(Target::NodeImageSet(uid.clone()), wake_at);
        }
        let (verb, at) = set.write(fate, now);
        wake_at = earliest(wake_at, at);
        if let Some((verb, events)) = verb {
            if let Some(at) = set.attempts.repeats_at(verb.fingerprint(), now) {
                wake_at = earliest(wake_at, Some(at));
            } else {
                set.begin(&verb, now);
                self.events.extend(events);
                commands.push(Command::Write(Write { ticket: set.ticket(uid), verb }));
            }
        }
        self.agenda.wake(Target::NodeImageSet(uid.clone()), wake_at);
    }

    /// Notes since when the node of a set does not exist, and says when that is long enough.
    fn note_orphan(&mut self, uid: &Uid, now: Timestamp) -> Option<Timestamp> {
        let set = self.sets.all.get_mut(uid)?;
        let exists = self.nodes.all.get(set.node()).is_some_and(|node| node.facts.is_some());
        set.orphan_since = set.orphan_since.or(Some(now)).filter(|_| !exists);
        set.orphan_since.map(|since| after(since, ORPHAN_AFTER)).filter(|at| *at > now)
    }

    fn fate(&self, uid: &Uid, now: Timestamp) -> Fate {
        let Some(set) = self.sets.all.get(uid) else { return Fate::Stays };
        let Some(owner) = &set.owner else {
            let is_orphan = set.orphan_since.is_some_and(|since| after(since, ORPHAN_AFTER) <= now);
            return if is_orphan { Fate::Goes } else { Fate::ByHand(self.states(&set.parts, set.node())) };
        };
        if !self.known.contains(&Kind::ImagePrefetch) || self.quarantine.has(Kind::ImagePrefetch, owner) {
            return Fate::Stays;
        }
        let prefetch = self.prefetches.all.named(owner).filter(|prefetch| !prefetch.is_terminating());
        let Some(prefetch) = prefetch else { return Fate::Goes };
        let Some(selected) = &prefetch.selected else { return Fate::Stays };
        if !selected.contains(set.node()) {
            return Fate::Goes;
        }
        match prefetch.begun.get(set.node()) {
            Some(begun) if self.is_shown(prefetch, &set.node().into(), begun) => {
                let wanted = spec::new(prefetch, set.node(), begun.role);
                Fate::Says(Box::new(wanted), self.states(&prefetch.parts, set.node()))
            }
            _ => Fate::Stays,
        }
    }

    fn states(&self, parts: &[parts::Part], node: &str) -> Vec<(String, ImageState)> {
        parts.iter().map(|part| (part.text.clone(), self.image_state(part, node))).collect()
    }

    /// What a set that was made by hand wants of its node.
    fn want_by_hand(&mut self, uid: &Uid, now: Timestamp) -> Option<Timestamp> {
        let (mut wake_at, gave_up) = self.gave_up(uid, now);
        let set = self.sets.all.get(uid)?;
        let node: NodeName = set.node().into();
        let mut wanted = Vec::new();
        for demand in parts::demands(&set.parts).into_keys() {
            let Some(roll) = self.demands.get(demand).and_then(|record| record.roll.as_ref()) else {
                continue;
            };
            let mut wants: Vec<(NodeName, Want)> = Vec::new();
            wants.extend(roll.to_withdraw().into_iter().map(|node| (node, Want::Withdraw)));
            let is_allowed = self.demands.get(demand).is_some_and(|record| record.refusal.is_none());
            if is_allowed {
                wants.extend(roll.to_renew(usize::MAX, now).into_iter().map(|node| (node, Want::Renew)));
            }
            if is_allowed && roll.waiting().first(1).contains(&node) {
                wants.push((node.clone(), Want::Grant));
            }
            let again_at = gave_up.get(demand).map(|since| after(*since, LONGEST_SEED_PATIENCE));
            if is_allowed && again_at.is_some_and(|at| at <= now) {
                wants.push((node.clone(), Want::Ask));
            }
            wake_at = earliest(wake_at, roll.next_renewal(now));
            wanted.push((demand.clone(), wants));
        }
        for (demand, wants) in wanted {
            self.note_wants(&demand, wants, now);
        }
        self.sets.all.get_mut(uid)?.gave_up = gave_up;
        wake_at
    }

    /// For which of its images the node has given up, since when, and when the next of them is asked for again. Without a limit
    /// there is no end.
    fn gave_up(&self, uid: &Uid, now: Timestamp) -> (Option<Timestamp>, BTreeMap<Uid, Timestamp>) {
        let (mut wake_at, mut gave_up) = (None, BTreeMap::new());
        let set = self.sets.all.get(uid);
        let Some(set) = set.filter(|set| set.object.spec.image_download_retry_limit.is_none()) else {
            return (wake_at, gave_up);
        };
        for (demand, part) in parts::demands(&set.parts) {
            let standing = self.standing_of(demand, set.node());
            let has_failed = standing.is_some_and(|one| one.stage == Stage::Failed);
            if has_failed && !self.is_refused(part, set.node()) {
                let since = set.gave_up.get(demand).copied().unwrap_or(now);
                wake_at = earliest(wake_at, Some(after(since, LONGEST_SEED_PATIENCE)).filter(|at| *at > now));
                gave_up.insert(demand.clone(), since);
            }
        }
        (wake_at, gave_up)
    }
}

type Events = Vec<crate::cluster::Event>;

impl NodeSet {
    /// What is written to it now, with the events that go along, and when to look again for the sake of what is not.
    fn write(&self, fate: Fate, now: Timestamp) -> (Option<(Verb, Events)>, Option<Timestamp>) {
        let metadata = &self.object.metadata;
        if self.is_terminating() {
            // The program that used to be on the node waits no more.
            let change = remove_finalizer_named(metadata, NODE_IMAGE_SET_FINALIZER);
            return (change.map(|change| (Verb::Patch(guarded(metadata, change), 0), Vec::new())), None);
        }
        let images = match fate {
            Fate::Stays => return (None, None),
            Fate::Goes => return (Some((Verb::Delete, Vec::new())), None),
            Fate::Says(wanted, images) => {
                let change = self.difference(&wanted);
                if !change.is_empty() {
                    return (Some((Verb::Patch(guarded(metadata, change), 0), Vec::new())), None);
                }
                images
            }
            Fate::ByHand(images) => images,
        };
        self.write_status(&images, now)
    }

    fn write_status(
        &self,
        images: &[(String, ImageState)],
        now: Timestamp,
    ) -> (Option<(Verb, Events)>, Option<Timestamp>) {
        let old = self.object.status.as_ref();
        let ignores_secrets = self.owner.is_none() && self.object.spec.image_pull_secrets.is_some();
        let generation = self.object.metadata.generation.unwrap_or_default();
        let new = status(old, images, ignores_secrets, generation, now);
        let again_at = self.echo.again_at().filter(|at| *at > now);
        let new = Some(new).filter(|new| old != Some(new)).or_else(|| self.echo.again(now));
        let Some(new) = new else { return (None, again_at) };
        let is_over = new.available_images == new.desired_images;
        let quiet_until = self.written_at.map(|at| at + STATUS_INTERVAL).filter(|at| *at > now && !is_over);
        if quiet_until.is_some() {
            return (None, quiet_until);
        }
        let events = notices(old, &new, self.node()).into_iter().map(|notice| notice.about(self.reference()));
        let verb = Verb::PatchStatus(guarded(&self.object.metadata, replace_status(json!(new))));
        (Some((verb, events.collect())), again_at)
    }

    fn begin(&mut self, verb: &Verb, now: Timestamp) {
        self.attempts.begin(verb.fingerprint());
        if let Verb::PatchStatus(operations) = verb {
            self.written_at = Some(now);
            let sent = operations.last().map(|operation| operation["value"].clone());
            if let Some(sent) = sent.and_then(|sent| serde_json::from_value(sent).ok()) {
                self.echo.begin(sent);
            }
        }
    }

    /// What has to be done so that it says what its ImagePrefetch wants. Fields of a newer version stay.
    fn difference(&self, wanted: &NodeImageSet) -> Vec<Value> {
        let mut operations = Vec::new();
        let mut labels = self.object.metadata.labels.clone().unwrap_or_default();
        labels.extend(wanted.metadata.labels.clone().unwrap_or_default());
        if self.object.metadata.labels.as_ref() != Some(&labels) {
            operations.push(json!({"op": "add", "path": "/metadata/labels", "value": labels}));
        }
        // It has no meaning where the ImagePrefetch decides, and whoever wrote it may keep it.
        let limit = self.object.spec.image_download_retry_limit;
        let wanted = NodeImageSetSpec { image_download_retry_limit: limit, ..wanted.spec.clone() };
        if self.object.spec != wanted {
            operations.extend(fields(&self.object.spec, &wanted));
        }
        operations
    }
}

/// The fields of a spec that differ, each as an operation of its own.
fn fields(old: &NodeImageSetSpec, new: &NodeImageSetSpec) -> Vec<Value> {
    let (old, new) = (json!(old), json!(new));
    let (Value::Object(old), Value::Object(new)) = (&old, &new) else { return Vec::new() };
    let removed = old.keys().filter(|name| !new.contains_key(*name));
    let removed = removed.map(|name| json!({"op": "remove", "path": format!("/spec/{name}")}));
    let changed = new.iter().filter(|(name, value)| old.get(*name) != Some(value));
    let changed =
        changed.map(|(name, value)| json!({"op": "add", "path": format!("/spec/{name}"), "value": value}));
    removed.chain(changed).collect()
}
