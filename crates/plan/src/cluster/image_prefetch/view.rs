//! Where the nodes of an ImagePrefetch are, read off its demands and the entries of NodeImages.

use std::sync::Arc;

use jiff::Timestamp;
use prewarm_api::kruise::FailureClass;

use super::record::{Begun, Prefetch};
use super::wave::{Holds, Progress};
use crate::cluster::Kernel;
use crate::cluster::demands::parts::Part;
use crate::cluster::demands::roll::ACKNOWLEDGE_WITHIN;
use crate::cluster::demands::standing::{Need, Stage, Standing};
use crate::cluster::node_image::entry::Share;
use crate::cluster::node_image::record::TagRecord;
use crate::demand::Role;
use crate::object::{NodeName, Uid};
use crate::time::after;

/// How far one image is on a node, in the words of the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageState {
    /// Nothing has begun.
    Waiting,
    /// It is being pulled.
    InProgress,
    /// It is there.
    Downloaded,
    /// It could not be pulled, for this reason; that is tried again.
    Failed(String),
    /// No mirror has it yet.
    NotYet(String),
}

impl Kernel {
    /// Where a node is for a demand.
    pub(in crate::cluster) fn standing_of(&self, demand: &str, node: &str) -> Option<&Standing> {
        self.demands.get(demand)?.roll.as_ref()?.standing(node)
    }

    /// How far one image is on a node.
    pub(in crate::cluster) fn image_state(&self, part: &Part, node: &str) -> ImageState {
        if part.image.is_none() {
            let why = format!("{}: not an image reference", part.text);
            return ImageState::Failed(why);
        }
        let Some(standing) = self.standing_of(&part.uid, node) else { return ImageState::Waiting };
        let refusal = self.demands.get(&part.uid).and_then(|record| record.refusal.clone());
        if let Some(refusal) = refusal.filter(|_| standing.stage == Stage::Waiting) {
            return ImageState::Failed(refusal);
        }
        if let Some((class, words)) = &standing.trouble {
            let is_temporary = self.asks_mirrors(part, node) && *class == FailureClass::NotFound;
            let words = words.to_string();
            return if is_temporary { ImageState::NotYet(words) } else { ImageState::Failed(words) };
        }
        match (standing.stage, standing.need) {
            (Stage::Succeeded, Some(Need::Renew(_))) => ImageState::Waiting,
            (Stage::Succeeded, _) => ImageState::Downloaded,
            (Stage::Acknowledged { has_started: true }, _) => ImageState::InProgress,
            (Stage::Failed, _) => ImageState::Failed(self.failure_of(part, node)),
            _ => ImageState::Waiting,
        }
    }

    /// Why a node failed for good: it did not answer, or its entry is not taken.
    fn failure_of(&self, part: &Part, node: &str) -> String {
        let key = part.image.as_ref();
        let refusal = key.and_then(|key| self.nodes.all.get(node)?.refusal(key)).map(str::to_owned);
        refusal.unwrap_or_else(|| {
            "the entry cannot be written to the node, or its agent does not answer".to_owned()
        })
    }

    /// The entry of an image on a node.
    pub(in crate::cluster) fn tag_of(&self, part: &Part, node: &str) -> Option<&TagRecord> {
        let image = self.nodes.all.get(node)?.image.as_ref()?;
        image.tag(part.image.as_ref()?).map(|(_, tag)| tag)
    }

    fn asks_mirrors(&self, part: &Part, node: &str) -> bool {
        self.tag_of(part, node).is_some_and(|tag| tag.mirrors.is_some())
    }

    /// What an image stands for on a node that asked the registry for it.
    pub(super) fn resolved(&self, part: &Part, node: &str) -> Option<(Option<Timestamp>, Arc<str>)> {
        let status = self.tag_of(part, node)?.current()?;
        Some((status.completed_at, status.digest.clone()?))
    }

    /// The same of a node that was told which digest to take.
    pub(super) fn pinned(&self, part: &Part, node: &str) -> Option<Arc<str>> {
        self.tag_of(part, node)?.mirrors.as_ref()?.digest.clone()
    }

    /// How far a node is. `failing` is since when it has been failing, as far as is known.
    pub(super) fn progress(&self, prefetch: &Prefetch, node: &NodeName, now: Timestamp) -> Progress {
        let Some(begun) = prefetch.begun.get(node) else { return Progress::Idle };
        let since = prefetch.failing.get(node).copied().unwrap_or(now);
        let mut is_done = true;
        for part in &prefetch.parts {
            let standing = self.standing_of(&part.uid, node);
            let is_untold = begun.untold.contains_key(&part.uid);
            match standing {
                _ if part.image.is_none() => return Progress::Failing(since),
                // A person has written that mirrors alone are asked: this node brings no answer of the registry.
                _ if begun.role == Role::Seed && self.asks_mirrors(part, node) => {
                    return Progress::Failing(since);
                }
                Some(one) if fails(one, now) => return Progress::Failing(since),
                Some(Standing { stage: Stage::Succeeded, .. }) if !is_untold => {}
                _ => is_done = false,
            }
        }
        match (is_done, self.is_able(node) && !prefetch.is_stalled(node, now)) {
            (true, _) => Progress::Done,
            (false, true) => Progress::Busy,
            // A node that is not ready cannot go on, whatever it said last.
            (false, false) => Progress::Failing(since),
        }
    }

    /// Whether the registry refuses what a node asks for, for a reason that is the same on every other node.
    pub(super) fn is_refused_by_registry(&self, prefetch: &Prefetch, node: &str) -> bool {
        let is_refused = |part: &Part| {
            let trouble = self.standing_of(&part.uid, node).and_then(|one| one.trouble.as_ref());
            let class = trouble.map(|(class, _)| *class);
            part.image.is_none()
                || matches!(class, Some(FailureClass::NotFound | FailureClass::Unauthorized))
                || matches!(class, Some(FailureClass::InvalidReference))
        };
        prefetch.begun.contains_key(node) && prefetch.parts.iter().any(is_refused)
    }

    /// Whether a node has lost an image so often that it is asked for it only later (kruise W13).
    pub(super) fn is_resting(&self, prefetch: &Prefetch, node: &str, now: Timestamp) -> bool {
        let rests = |part: &Part| {
            let need = self.standing_of(&part.uid, node).and_then(|one| one.need);
            matches!(need, Some(Need::Renew(at)) if at > now)
        };
        prefetch.parts.iter().any(rests)
    }

    /// What a node has of the images, also if it has not begun in this generation.
    pub(super) fn holds(&self, prefetch: &Prefetch, node: &str, now: Timestamp) -> Holds {
        let asks = |part: &Part| {
            let standing = self.standing_of(&part.uid, node).filter(|one| !fails(one, now));
            let stage = standing.map(|one| one.stage);
            let is_open = matches!(stage, Some(Stage::Granted(_) | Stage::Acknowledged { .. }));
            is_open && self.tag_of(part, node).is_some_and(|tag| tag.mirrors.is_none())
        };
        match () {
            () if self.has_images(prefetch, node) => Holds::All,
            () if prefetch.parts.iter().any(asks) => Holds::OnTheWay,
            () => Holds::Nothing,
        }
    }

    /// Whether the node is ready and has a NodeImage. A write that failed once does not exclude it.
    pub(super) fn is_able(&self, node: &str) -> bool {
        let node = self.nodes.all.get(node).filter(|node| node.live_image().is_some());
        node.and_then(|node| node.model()).is_some_and(|facts| facts.is_ready)
    }

    /// Whether the node's entry says what was decided for one of its images.
    pub(in crate::cluster) fn is_told(&self, part: &Part, node: &str, version: Option<i64>) -> bool {
        let tag = self.tag_of(part, node).filter(|tag| tag.is_owned_by(&part.uid));
        tag.is_some_and(|tag| version.is_none_or(|version| tag.version > version))
    }

    /// The images whose entries have to be written when a node gets a role, each with the entry's present version.
    pub(super) fn untold(&self, prefetch: &Prefetch, node: &NodeName, role: Role) -> Begun {
        let tells = |part: &&Part| {
            let Some(tag) = self.tag_of(part, node).filter(|tag| tag.is_owned_by(&part.uid)) else {
                return true;
            };
            let has_failed = self.standing_of(&part.uid, node).is_some_and(|one| one.stage == Stage::Failed);
            let digest = tag.current().and_then(|status| status.digest.as_ref());
            let pinned = prefetch.digests.get(&part.uid);
            let is_other = digest.zip(pinned).is_some_and(|(digest, pinned)| digest != pinned);
            role == Role::Seed || has_failed || is_other
        };
        let version = |part: &Part| {
            self.tag_of(part, node).filter(|tag| tag.is_owned_by(&part.uid)).map(|tag| tag.version)
        };
        let readable = prefetch.parts.iter().filter(|part| part.image.is_some());
        let untold = readable.filter(tells).map(|part| (part.uid.clone(), version(part))).collect();
        Begun { role, untold }
    }

    /// Whether a node's NodeImageSet may say its role: a restarted controller takes the set as proof that the entries were written.
    /// Entries that cannot be written are not waited for, so that the set can report that.
    pub(in crate::cluster) fn is_shown(&self, prefetch: &Prefetch, node: &NodeName, begun: &Begun) -> bool {
        let open = |part: &&Part| begun.untold.contains_key(&part.uid);
        prefetch.parts.iter().filter(open).all(|part| self.cannot_be_told(part, node, begun))
    }

    fn cannot_be_told(&self, part: &Part, node: &NodeName, begun: &Begun) -> bool {
        begun.untold.get(&part.uid).is_some_and(Option::is_none) && self.is_refused(part, node)
    }

    /// Whether the entry of an image cannot be written to a node: it is not taken, or there is no room.
    pub(in crate::cluster) fn is_refused(&self, part: &Part, node: &str) -> bool {
        let held = self.nodes.all.get(node).zip(part.image.as_ref());
        held.is_some_and(|(node, key)| {
            node.refusal(key).is_some() || node.crowded.get(key, &part.uid).is_some()
        })
    }

    /// Whether the node has the image but the registry refused this demand's credentials, so that the agent has stopped asking.
    pub(super) fn is_refused_there(&self, demand: &str, node: &str) -> bool {
        let is_over = self.standing_of(demand, node).is_some_and(|one| one.stage == Stage::Failed);
        let part = || self.demands.get(demand)?.demand.image.as_ref();
        let tag = || self.nodes.all.get(node)?.image.as_ref()?.tag(part()?)?.1.current();
        is_over && tag().is_some_and(|status| matches!(status.share(demand), Share::Refused(_)))
    }

    /// The images of a node whose entries are not written yet; they are asked for until they are.
    pub(super) fn still_untold(
        &self,
        prefetch: &Prefetch,
        node: &NodeName,
        begun: &Begun,
    ) -> Vec<(Uid, bool)> {
        let parts = prefetch.parts.iter().filter_map(|part| Some((part, *begun.untold.get(&part.uid)?)));
        let open = parts.filter(|(part, version)| !self.is_told(part, node, *version));
        open.map(|(part, version)| (part.uid.clone(), version.is_some())).collect()
    }
}

/// Whether a node holds no place in a wave: it retries, gave up, or does not answer.
fn fails(standing: &Standing, now: Timestamp) -> bool {
    let is_silent = |since| after(since, ACKNOWLEDGE_WITHIN) <= now;
    match standing.stage {
        _ if standing.trouble.is_some() => true,
        Stage::Failed | Stage::Crowded(_) => true,
        Stage::Granted(since) => is_silent(since),
        Stage::Succeeded => matches!(standing.need, Some(Need::Renew(_))),
        Stage::Waiting | Stage::Telling | Stage::Acknowledged { .. } => false,
    }
}
