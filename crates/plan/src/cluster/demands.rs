//! Who wants what of which nodes, whatever kind of object says so.
//!
//! A kind reads its object into a `Demand` and places it here under the object's UID. From then on the table knows where each node
//! is for it (`standing`), who waits in which order (`roll`), and whom it may grant (`place`). NodeImages, Secrets,
//! explanations and figures work on this table and never ask which kind is behind a demand.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use prewarm_api::reference_object::ObjectReference;

use crate::cluster::interface::About;
use crate::cluster::node_image::record::Shared;
use crate::cluster::{Kind, Target};
use crate::object::{ImageKey, NodeName, ObjectKey, Uid};

mod leave;
pub mod parts;
mod place;
pub mod pod;
mod record;
pub mod roll;
pub mod secrets;
pub mod standing;

pub(in crate::cluster) use place::Statement;
pub use place::{UnknownNodes, Wants, wants};
pub(in crate::cluster) use record::{DemandRecord, State};
pub(in crate::cluster) use standing::is_member;

use pod::Pods;

/// Whether an owner of an entry is of a kind that makes demands, in whichever version. Others are not ours to judge.
pub fn makes_demands(owner: &ObjectReference) -> bool {
    kind_of(owner).is_some()
}

/// Which kind that is.
pub fn kind_of(owner: &ObjectReference) -> Option<Kind> {
    let group = |version: &'static str| version.split_once('/').map(|(group, _)| group);
    let of = owner.api_version.as_deref().and_then(|version| version.split_once('/')).map(|(group, _)| group);
    let is_that = |about: About| {
        about.makes_demands() && owner.kind.as_deref() == Some(about.name) && of == group(about.api_version)
    };
    Kind::ALL.into_iter().find(|kind| is_that(kind.about()))
}

/// All demands.
#[derive(Debug, Default)]
pub struct Demands {
    all: BTreeMap<Uid, DemandRecord>,
    /// By the name of the object: one object may make several, and objects of several kinds may have one name.
    uids: HashMap<ObjectKey, BTreeSet<Uid>>,
    /// The active demands for each image.
    by_image: BTreeMap<ImageKey, BTreeSet<Uid>>,
    /// The active demands that name a node, by its name, as far as they have named the same nodes since they were made.
    by_node: HashMap<NodeName, BTreeSet<Uid>>,
    /// All other active demands: each of them may have to do with any node.
    wide: BTreeSet<Uid>,
    pods: Pods,
    /// Demands that are gone or over and whose entries have to be found.
    left: BTreeSet<Uid>,
}

impl Demands {
    /// The demand of the object with this UID.
    pub(in crate::cluster) fn get(&self, uid: &str) -> Option<&DemandRecord> {
        self.all.get(uid)
    }

    /// The demand of the object with this UID.
    pub(in crate::cluster) fn get_mut(&mut self, uid: &str) -> Option<&mut DemandRecord> {
        self.all.get_mut(uid)
    }

    /// The demands of the objects of this name.
    pub(in crate::cluster) fn named(&self, key: &ObjectKey) -> impl Iterator<Item = (&Uid, &DemandRecord)> {
        let uids = self.uids.get(key).into_iter().flatten();
        uids.filter_map(|uid| Some((uid, self.all.get(uid)?)))
    }

    /// Who makes them.
    pub(in crate::cluster) fn targets(&self, key: &ObjectKey) -> BTreeSet<Target> {
        self.named(key).map(|(_, record)| record.target.clone()).collect()
    }

    /// The demands that one object makes for its images.
    pub(in crate::cluster) fn parts_of(&self, object: &str) -> Vec<Uid> {
        let from: Uid = format!("{object}/").into();
        let parts = self.all.range(from..).map(|(uid, _)| uid);
        parts.take_while(|uid| parts::object(uid) == object).cloned().collect()
    }

    /// All demands, by UID.
    pub(in crate::cluster) fn iter(&self) -> impl Iterator<Item = (&Uid, &DemandRecord)> {
        self.all.iter()
    }

    /// How many are gone or over and have entries that are yet to be found.
    pub(in crate::cluster) fn left(&self) -> usize {
        self.left.len()
    }

    /// The object behind a demand is gone: its entries have to be found.
    pub(in crate::cluster) fn find_entries_of(&mut self, uid: Uid) {
        self.left.insert(uid);
    }

    /// The active demands that may have to do with a node.
    fn of_node(&self, name: &NodeName) -> Vec<Uid> {
        let narrow = self.by_node.get(name).into_iter().flatten();
        narrow.chain(&self.wide).cloned().collect()
    }

    /// Files an active demand by the nodes that it may have to do with.
    fn file(&mut self, uid: &Uid, shared: &mut Shared) {
        self.unfile(uid);
        let Some(record) = self.all.get_mut(uid) else { return };
        let Some(names) = record.fixed_names() else {
            self.wide.insert(uid.clone());
            return;
        };
        record.filed_under = names.iter().map(|name| shared.text(name)).collect();
        for name in &record.filed_under {
            self.by_node.entry(name.clone()).or_default().insert(uid.clone());
        }
    }

    /// Takes a demand out where it was filed.
    fn unfile(&mut self, uid: &Uid) {
        self.wide.remove(uid);
        let names = self.all.get_mut(uid).map(|record| std::mem::take(&mut record.filed_under));
        for name in names.unwrap_or_default() {
            if let Some(uids) = self.by_node.get_mut(&name) {
                uids.remove(uid);
                if uids.is_empty() {
                    self.by_node.remove(&name);
                }
            }
        }
    }

    fn insert(&mut self, uid: Uid, record: DemandRecord) {
        self.uids.entry(record.key.clone()).or_default().insert(uid.clone());
        self.all.insert(uid, record);
    }

    fn remove(&mut self, uid: &Uid) -> Option<DemandRecord> {
        let record = self.all.remove(uid)?;
        if let Some(uids) = self.uids.get_mut(&record.key) {
            uids.remove(uid);
            if uids.is_empty() {
                self.uids.remove(&record.key);
            }
        }
        Some(record)
    }

    /// Puts a demand among the active ones of its image.
    fn list(&mut self, uid: &Uid) {
        let Some(image) = self.image(uid) else { return };
        self.by_image.entry(image).or_default().insert(uid.clone());
    }

    /// Takes a demand out of the active ones of its image.
    fn unlist(&mut self, uid: &Uid) {
        let Some(image) = self.image(uid) else { return };
        if let Some(uids) = self.by_image.get_mut(&image) {
            uids.remove(uid);
            if uids.is_empty() {
                self.by_image.remove(&image);
            }
        }
    }

    /// The place of a demand among the images: those whose image cannot be read have one, too.
    fn image(&self, uid: &Uid) -> Option<ImageKey> {
        let no_image = || ImageKey { name: String::new(), tag: String::new() };
        Some(self.all.get(uid)?.demand.image.clone().unwrap_or_else(no_image))
    }
}
