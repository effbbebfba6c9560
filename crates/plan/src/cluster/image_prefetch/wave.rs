//! Who begins, and who asks the registry (ofen R6, R7, without its weaknesses).
//!
//! First a few nodes ask the registry. When one of them has the images, the others ask mirrors, never more at once than nodes that
//! have the images already: each of these can serve one more, so that a wave is twice as large as the one before. A node that
//! fails holds no place of a wave, and one that asks the registry and fails is followed by another one. If the last node that had
//! the images loses them, one that only mirrors served asks the registry.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::record::place_of;
use super::{LONGEST_SEED_PATIENCE, MIRROR_PATIENCE, SEED_PATIENCE};
use crate::demand::Role;
use crate::object::{NodeName, NodeZone};
use crate::time::{after, earliest};

/// If the registry refuses what this many nodes ask for, the next node is not asked: it would be refused as well.
const MOST_REFUSED: usize = 3;

/// One of the selected nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate fact about the node")]
pub struct Place {
    /// Its name.
    pub node: NodeName,
    /// Where it stands.
    pub zone: NodeZone,
    /// Whether it can be told to pull.
    pub is_able: bool,
    /// Whether the last write to it went wrong: others come first.
    pub is_doubtful: bool,
    /// What it has of the images, whoever asked for them.
    pub holds: Holds,
    /// What it asks, if it has begun.
    pub role: Option<Role>,
    /// How far it is.
    pub progress: Progress,
    /// Whether the registry refuses what it asks for, as it would refuse any other node.
    pub is_refused: bool,
    /// Whether it loses the images again and again, and is left alone for a while.
    pub is_resting: bool,
}

/// What a node has of the images.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Holds {
    /// Not all, and it is not asking the registry for them.
    #[default]
    Nothing,
    /// It is asking the registry for them, as an earlier generation wanted.
    OnTheWay,
    /// All, so that asking for them costs next to nothing.
    All,
}

/// How far a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Nothing was asked of it.
    Idle,
    /// It works.
    Busy,
    /// It retries, or does not answer, since this time.
    Failing(Timestamp),
    /// It has all images.
    Done,
}

/// How many begin at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many ask the registry (`--image-pull-node-limit`).
    pub seeds: usize,
    /// How many begin first (`--max-concurrent-nodeimageset-creations`).
    pub first: usize,
}

/// What has happened in this generation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Past {
    /// Whether the registry has given the images to a node.
    pub is_verified: bool,
    /// How many nodes asked the registry without success and ask mirrors instead.
    pub demoted: usize,
}

/// What happens next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Next {
    /// Nodes that get a role, or another one.
    pub roles: BTreeMap<NodeName, Role>,
    /// Whether the registry has given the images to a node of this generation.
    pub is_verified: bool,
    /// When to look again although nothing has changed.
    pub wake_at: Option<Timestamp>,
}

/// Decides.
pub fn next(places: &[Place], past: Past, limits: Limits, salt: &str, now: Timestamp) -> Next {
    let crowd = Crowd::of(places, now);
    // A node that asks mirrors was only told to after the registry had been asked.
    let is_verified = past.is_verified
        || places.iter().any(|place| place.role == Some(Role::Mirror))
        || crowd.seeds.iter().any(|place| place.progress == Progress::Done);
    let mut next = Next { is_verified, ..Next::default() };
    let mut queue = Queue::new(places, salt);
    let most = match () {
        () if !is_verified => limits.seeds.min(limits.first).max(1),
        () if crowd.done == 0 => limits.seeds.max(1),
        // Mirrors serve the images: who has failed to ask the registry is not replaced.
        () => limits.seeds.max(1).saturating_sub(past.demoted),
    };
    add_seeds(&crowd, &mut queue, most, now, &mut next);
    if is_verified && crowd.done > 0 {
        // Nobody has to ask the registry any more, so whoever fails to may ask mirrors.
        let fails = |place: &&&Place| matches!(place.progress, Progress::Failing(_));
        next.roles.extend(crowd.seeds.iter().filter(fails).map(|place| (place.node.clone(), Role::Mirror)));
        let free = crowd.done.saturating_sub(crowd.busy + crowd.recent.len() + queue.begun);
        for node in queue.take(free) {
            next.roles.insert(node, Role::Mirror);
        }
        next.wake_at =
            earliest(next.wake_at, crowd.recent.iter().map(|at| after(*at, MIRROR_PATIENCE)).min());
    } else if is_verified && next.roles.is_empty() {
        promote(places, &crowd, salt, now, &mut next);
    }
    next
}

/// The places by what they do.
struct Crowd<'a> {
    seeds: Vec<&'a Place>,
    done: usize,
    busy: usize,
    /// Since when nodes fail to get the images from mirrors that began to fail a moment ago. They keep their places that long, or a
    /// mirror that is slow to notice what its neighbours have would let all nodes begin at once.
    recent: Vec<Timestamp>,
}

impl<'a> Crowd<'a> {
    fn of(places: &'a [Place], now: Timestamp) -> Self {
        let count = |wanted: Progress| places.iter().filter(|place| place.progress == wanted).count();
        let recent = places.iter().filter_map(|place| match (place.role, place.progress) {
            (Some(Role::Mirror), Progress::Failing(since)) => Some(since),
            _ => None,
        });
        Self {
            seeds: places.iter().filter(|place| place.role == Some(Role::Seed)).collect(),
            done: count(Progress::Done),
            busy: count(Progress::Busy),
            recent: recent.filter(|since| after(*since, MIRROR_PATIENCE) > now).collect(),
        }
    }
}

/// Chooses further nodes that ask the registry, if there are too few that do it well.
fn add_seeds(crowd: &Crowd, queue: &mut Queue, most: usize, now: Timestamp, next: &mut Next) {
    let mut failing: Vec<Timestamp> = Vec::new();
    let (mut healthy, mut refused) = (0, 0);
    for seed in &crowd.seeds {
        match seed.progress {
            Progress::Failing(since) => {
                failing.push(since);
                refused += usize::from(seed.is_refused);
            }
            Progress::Idle | Progress::Busy | Progress::Done => healthy += 1,
        }
    }
    let patience = patience(failing.len());
    let is_patient = |since: &Timestamp| after(*since, patience) > now;
    // Whoever has begun to fail a moment ago may still do it.
    let patient = failing.iter().filter(|since| is_patient(since)).count();
    let ends = failing.iter().filter(|since| is_patient(since)).map(|since| after(*since, patience));
    // If every node that asks the registry fails, the next one begins when the last of them has had its time.
    next.wake_at = if healthy == 0 { ends.max() } else { ends.min() };
    let is_waiting = patient > 0 && healthy == 0;
    let is_refused = refused >= MOST_REFUSED && refused == failing.len();
    let is_served = next.is_verified && crowd.done > 0 && !failing.is_empty();
    if is_waiting || is_refused || is_served {
        return;
    }
    for node in queue.take(most.saturating_sub(healthy + patient)) {
        next.roles.insert(node, Role::Seed);
    }
}

/// Nobody has the images any more, nobody is getting them, and no further node is there to ask the registry: one that asks mirrors
/// in vain asks the registry instead.
fn promote(places: &[Place], crowd: &Crowd, salt: &str, now: Timestamp, next: &mut Next) {
    let is_over = crowd.seeds.iter().all(|seed| seed.is_refused || next.wake_at.is_none());
    if crowd.busy > 0 || !is_over {
        return;
    }
    let patience = patience(crowd.seeds.len().saturating_add(1));
    let mut due: Vec<&Place> = Vec::new();
    for place in places.iter().filter(|place| place.role == Some(Role::Mirror)) {
        let Progress::Failing(since) = place.progress else { continue };
        if !place.is_able || place.is_resting {
            continue;
        }
        let at = after(since, patience);
        if at <= now {
            due.push(place);
        } else {
            next.wake_at = earliest(next.wake_at, Some(at));
        }
    }
    let first = due.iter().min_by_key(|place| (place.is_doubtful, place_of(salt, &place.node), &place.node));
    next.roles.extend(first.map(|place| (place.node.clone(), Role::Seed)));
}

/// How long a node may fail before another one asks the registry in its stead, and before it is asked again itself if nothing goes
/// on there.
pub(super) fn patience(failing: usize) -> std::time::Duration {
    let doublings = u32::try_from(failing.saturating_sub(1)).unwrap_or(u32::MAX).min(16);
    SEED_PATIENCE.saturating_mul(2_u32.saturating_pow(doublings)).min(LONGEST_SEED_PATIENCE)
}

/// The nodes that have not begun, in the order in which they do: from the zone that has begun least.
struct Queue<'a> {
    waiting: Vec<&'a Place>,
    served: BTreeMap<&'a NodeZone, usize>,
    begun: usize,
}

impl<'a> Queue<'a> {
    fn new(places: &'a [Place], salt: &str) -> Self {
        let mut waiting: Vec<&Place> =
            places.iter().filter(|place| place.role.is_none() && place.is_able).collect();
        waiting.sort_by_key(|place| (place.is_doubtful, place_of(salt, &place.node), place.node.clone()));
        let mut served = BTreeMap::new();
        for place in places.iter().filter(|place| place.role.is_some()) {
            *served.entry(&place.zone).or_default() += 1;
        }
        Self { waiting, served, begun: 0 }
    }

    /// First nodes that have the images, since asking the registry for what is there costs one request. Then nodes that are asking
    /// the registry already.
    fn take(&mut self, most: usize) -> BTreeSet<NodeName> {
        let mut taken = BTreeSet::new();
        for holds in [Holds::All, Holds::OnTheWay, Holds::Nothing] {
            let alike: Vec<&Place> =
                self.waiting.iter().copied().filter(|place| place.holds == holds).collect();
            taken.extend(self.spread(&alike, most - taken.len()));
        }
        self.waiting.retain(|place| !taken.contains(&place.node));
        self.begun += taken.len();
        taken
    }

    fn spread(&mut self, waiting: &[&'a Place], most: usize) -> BTreeSet<NodeName> {
        let mut taken = BTreeSet::new();
        let mut lines: BTreeMap<&NodeZone, Vec<&Place>> = BTreeMap::new();
        for place in waiting.iter().rev() {
            lines.entry(&place.zone).or_default().push(place);
        }
        while taken.len() < most {
            lines.retain(|_, line| !line.is_empty());
            let count = |zone: &NodeZone| self.served.get(zone).copied().unwrap_or_default();
            let Some(zone) = lines.keys().copied().min_by_key(|zone| count(zone)) else { break };
            let Some(place) = lines.get_mut(zone).and_then(Vec::pop) else { break };
            *self.served.entry(zone).or_default() += 1;
            taken.insert(place.node.clone());
        }
        taken
    }
}

#[cfg(test)]
mod tests;
