//! How much room a NodeImage has, and who may take of it.
//!
//! A NodeImage is one object for all tenants of a node, and an API server stores no object of any size. So whatever would
//! cross the line is left out, and no namespace takes all the room there is: it may have three times what it leaves free.
//! One alone gets three quarters; the next gets three quarters of the rest. Something is always left for whoever comes, and
//! nothing has to be taken from anybody. Where a NodeImage is not three quarters full, all that can be answered without
//! looking who has what.

use std::collections::{BTreeMap, BTreeSet};

use prewarm_api::kruise::SecretReference;

use super::node::{Node, Want};
use super::record::{ImageRecord, TagRecord};
use super::weight::{self, MOST_BYTES};
use super::{Demands, Wanted};
use crate::object::ImageKey;

/// The schema's bound on the images of a NodeImage (kruise V31).
pub const MOST_IMAGES: usize = 256;
/// The schema's bound on the tags of an image.
pub const MOST_TAGS: usize = 1024;
/// The schema's bound on the owners of a tag.
pub const MOST_OWNERS: usize = 1024;
/// A namespace may have so many times what it leaves free.
const SHARE: usize = 3;

/// Why there is no room for a job on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Crowd {
    /// What the job wants is more than a namespace may have of any NodeImage.
    TooLarge,
    /// The job's namespace has its share.
    Share,
    /// The NodeImage is full.
    Full,
}

/// Whether there is room for what a job wants of a node. If so, says how much it takes at most.
pub fn admit(
    node: &Node,
    key: &ImageKey,
    want: Want,
    wanted: &Wanted,
    demands: &dyn Demands,
) -> Result<usize, Crowd> {
    if want == Want::Withdraw {
        return Ok(0);
    }
    let most = weight::of_demand(key, wanted);
    if want == Want::Grant && most > share_of(MOST_BYTES) {
        return Err(Crowd::TooLarge);
    }
    if !is_roomy(node, key, most) {
        Room::of(node, demands).check(key, want, wanted)?;
    }
    Ok(most)
}

/// Whether there is so much room that everybody's share is larger than what there is.
fn is_roomy(node: &Node, key: &ImageKey, most: usize) -> bool {
    let Some(image) = &node.image else { return true };
    let (mut bytes, mut images) = (image.weight + most, image.images.len() + 1);
    let mut tags = image.images.get(key.name.as_str()).map_or(0, |image| image.tags.len()) + 1;
    let mut owners = image.tag(key).map_or(0, |(_, tag)| tag.owners.len()) + 1;
    for (other, intents) in node.intents() {
        bytes += intents.values().map(|intent| intent.weight).sum::<usize>();
        images += 1;
        tags += usize::from(other.name == key.name);
        owners += if other == key { intents.len() } else { 0 };
    }
    bytes <= share_of(MOST_BYTES)
        && images <= share_of(MOST_IMAGES)
        && tags <= share_of(MOST_TAGS)
        && owners <= share_of(MOST_OWNERS)
}

/// How much a namespace may have that is alone.
fn share_of(most: usize) -> usize {
    most / (SHARE + 1) * SHARE
}

/// Who has what of a NodeImage, with everything that is about to be written to it.
pub struct Room<'a> {
    demands: &'a dyn Demands,
    images: BTreeMap<&'a str, Shelf<'a>>,
    bytes: usize,
    own: BTreeMap<String, Own<'a>>,
}

/// One image.
#[derive(Default)]
struct Shelf<'a> {
    tags: BTreeMap<&'a str, usize>,
    secrets: Vec<&'a SecretReference>,
    sandbox: usize,
}

/// What a namespace has. What several have, each of them has.
#[derive(Default)]
struct Own<'a> {
    bytes: usize,
    images: BTreeSet<&'a str>,
    owners: BTreeMap<(&'a str, &'a str), usize>,
    secrets: Vec<(&'a str, &'a SecretReference)>,
}

/// What something takes in addition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Addition {
    bytes: usize,
    image: usize,
    tag: usize,
    owner: usize,
}

impl<'a> Room<'a> {
    /// The room of a node.
    pub fn of(node: &'a Node, demands: &'a dyn Demands) -> Self {
        let mut room = Self { demands, images: BTreeMap::new(), bytes: 0, own: BTreeMap::new() };
        for (name, image) in node.image.iter().flat_map(|image| &image.images) {
            room.hold(name, image);
        }
        for (key, intents) in node.intents() {
            for (uid, intent) in intents.iter().filter(|(_, intent)| intent.want != Want::Withdraw) {
                if let Some(wanted) = demands.demand(uid) {
                    room.take(key, intent.want, &wanted);
                }
            }
        }
        room
    }

    /// Takes room for a job, if there is any.
    pub fn admit(&mut self, key: &'a ImageKey, want: Want, wanted: &Wanted<'a>) -> Result<(), Crowd> {
        self.check(key, want, wanted)?;
        self.take(key, want, wanted);
        Ok(())
    }

    fn hold(&mut self, name: &'a str, image: &'a ImageRecord) {
        self.bytes += weight::of_image(name, image);
        let tags = image.tags.iter().map(|tag| (&*tag.tag, tag.owners.len())).collect();
        let sandbox = image.sandbox.as_deref().map_or(0, weight::of_sandbox);
        self.images.insert(name, Shelf { tags, secrets: image.secrets.iter().collect(), sandbox });
        for tag in &image.tags {
            self.hold_owners(name, tag);
        }
    }

    fn hold_owners(&mut self, name: &'a str, tag: &'a TagRecord) {
        for owner in tag.owners.iter() {
            let wanted = owner.uid.as_deref().and_then(|uid| self.demands.demand(uid));
            let secrets = wanted.map_or(&[][..], |wanted| wanted.secrets);
            let namespace = owner.namespace.as_deref().unwrap_or_default();
            self.own(namespace, name, &tag.tag, weight::of_owner(owner), secrets);
        }
    }

    /// A job of a namespace has a tag, or is about to.
    fn own(
        &mut self,
        namespace: &str,
        name: &'a str,
        tag: &'a str,
        owner: usize,
        secrets: &'a [SecretReference],
    ) {
        let sandbox = self.images.get(name).map_or(0, |place| place.sandbox);
        let own = self.own.entry(namespace.to_owned()).or_default();
        own.bytes += owner;
        if own.images.insert(name) {
            own.bytes += weight::of_name(name) + sandbox;
        }
        let owners = own.owners.entry((name, tag)).or_default();
        *owners += 1;
        if *owners == 1 {
            own.bytes += weight::of_tag(tag);
        }
        for secret in secrets {
            if !own.secrets.contains(&(name, secret)) {
                own.secrets.push((name, secret));
                own.bytes += weight::of_secret(secret);
            }
        }
    }

    fn addition(&self, key: &ImageKey, want: Want, wanted: &Wanted) -> Addition {
        let place = self.images.get(key.name.as_str());
        let lacks = |secret: &&SecretReference| place.is_none_or(|place| !place.secrets.contains(secret));
        let secrets: usize = wanted.secrets.iter().filter(lacks).map(weight::of_secret).sum();
        let sandbox = wanted.demand.sandbox.as_ref().map_or(0, weight::of_sandbox);
        let more_sandbox = sandbox.saturating_sub(place.map_or(0, |place| place.sandbox));
        if want != Want::Grant {
            return Addition { bytes: secrets + more_sandbox, ..Addition::default() };
        }
        let has_tag = place.is_some_and(|place| place.tags.contains_key(key.tag.as_str()));
        let name = if place.is_some() { 0 } else { weight::of_name(&key.name) };
        let tag = if has_tag { 0 } else { weight::of_tag(&key.tag) };
        Addition {
            bytes: secrets + more_sandbox + name + tag + weight::of_owner(&wanted.demand.owner),
            image: usize::from(place.is_none()),
            tag: usize::from(!has_tag),
            owner: 1,
        }
    }

    fn check(&self, key: &ImageKey, want: Want, wanted: &Wanted) -> Result<(), Crowd> {
        let more = self.addition(key, want, wanted);
        if more == Addition::default() {
            // What a NodeImage has it keeps, however much that is.
            return Ok(());
        }
        let (name, tag) = (key.name.as_str(), key.tag.as_str());
        let place = self.images.get(name);
        let own = self.own.get(wanted.demand.owner.namespace.as_deref().unwrap_or_default());
        let own_tags = own.map_or(0, |own| own.owners.keys().filter(|(image, _)| *image == name).count());
        let own_owners = own.and_then(|own| own.owners.get(&(name, tag))).copied().unwrap_or_default();
        let owners = place.and_then(|place| place.tags.get(tag)).copied().unwrap_or_default();
        fits(more.bytes, self.bytes, own.map_or(0, |own| own.bytes), MOST_BYTES)?;
        fits(more.image, self.images.len(), own.map_or(0, |own| own.images.len()), MOST_IMAGES)?;
        fits(more.tag, place.map_or(0, |place| place.tags.len()), own_tags, MOST_TAGS)?;
        fits(more.owner, owners, own_owners, MOST_OWNERS)
    }

    fn take(&mut self, key: &'a ImageKey, want: Want, wanted: &Wanted<'a>) {
        let more = self.addition(key, want, wanted);
        self.bytes += more.bytes;
        let place = self.images.entry(&key.name).or_default();
        place.sandbox = place.sandbox.max(wanted.demand.sandbox.as_ref().map_or(0, weight::of_sandbox));
        let missing: Vec<_> = wanted.secrets.iter().filter(|one| !place.secrets.contains(one)).collect();
        place.secrets.extend(missing);
        if want == Want::Grant {
            *place.tags.entry(&key.tag).or_default() += 1;
            let owner = &wanted.demand.owner;
            let namespace = owner.namespace.as_deref().unwrap_or_default();
            self.own(namespace, &key.name, &key.tag, weight::of_owner(owner), wanted.secrets);
        }
    }
}

/// Whether so many more fit beside those that there are, of which the namespace has some.
fn fits(more: usize, total: usize, own: usize, most: usize) -> Result<(), Crowd> {
    if more == 0 {
        return Ok(());
    }
    let free = most.checked_sub(total + more).ok_or(Crowd::Full)?;
    if own + more > SHARE * free {
        // With nothing of its own, a namespace is not to blame.
        return Err(if own == 0 { Crowd::Full } else { Crowd::Share });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
