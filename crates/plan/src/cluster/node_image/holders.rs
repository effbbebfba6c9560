//! Which nodes hold an image, as far as their agents report: kept by difference, so that asking costs the number of answers. No
//! decision asks yet; the choice from which other node an image may be fetched will.
//!
//! Ten thousand nodes with fifty images each have to fit, so a node is a number here: four bytes for each image that it holds.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use prewarm_api::kruise::PullPhase;

use super::record::{ImageRecord, NodeImageRecord, TagRecord};
use crate::object::{ImageKey, NodeName};

/// A list of nodes that is full grows by this share of its length. Doubling would leave half of the memory unused.
const GROWTH: usize = 8;
/// The least by which it grows.
const LEAST_GROWTH: usize = 4;

/// The nodes that hold each image.
#[derive(Debug, Default)]
pub struct Holders {
    numbers: HashMap<NodeName, u32>,
    /// The nodes by number; numbers that are free have an empty name.
    names: Vec<NodeName>,
    free: Vec<u32>,
    /// By the image's name, then in the order of tags.
    images: BTreeMap<Arc<str>, Vec<Held>>,
}

/// The nodes that hold one tag of an image.
#[derive(Debug)]
struct Held {
    tag: Arc<str>,
    /// In order, each once.
    nodes: Vec<u32>,
}

impl Holders {
    /// The nodes that hold an image, by name.
    pub fn of(&self, key: &ImageKey) -> Vec<NodeName> {
        let held =
            self.images.get(key.name.as_str()).into_iter().flatten().find(|held| *held.tag == *key.tag);
        let numbers = held.into_iter().flat_map(|held| &held.nodes);
        let mut names: Vec<NodeName> =
            numbers.filter_map(|number| self.names.get(*number as usize)).cloned().collect();
        names.sort_unstable();
        names
    }

    /// A NodeImage has become another in these entries.
    pub fn change(
        &mut self,
        node: &NodeName,
        old: &NodeImageRecord,
        new: &NodeImageRecord,
        keys: &[ImageKey],
    ) {
        for key in keys {
            match (tag(old, key), tag(new, key)) {
                (Some((name, old)), None) => self.remove(node, name, old),
                (None, Some((name, new))) => self.add(node, name, new),
                (Some(_), Some(_)) | (None, None) => {}
            }
        }
    }

    /// A NodeImage is there for the first time.
    pub fn begin(&mut self, node: &NodeName, new: &NodeImageRecord) {
        for (name, tag) in tags(new) {
            self.add(node, name, &tag.tag);
        }
    }

    /// A NodeImage is gone.
    pub fn end(&mut self, node: &NodeName, old: &NodeImageRecord) {
        for (name, tag) in tags(old) {
            self.remove(node, name, &tag.tag);
        }
        if let Some(number) = self.numbers.remove(node) {
            self.names[number as usize] = NodeName::default();
            self.free.push(number);
        }
    }

    fn add(&mut self, node: &NodeName, name: &Arc<str>, tag: &Arc<str>) {
        let number = self.number(node);
        let tags = self.images.entry(name.clone()).or_default();
        let place = match tags.binary_search_by(|held| held.tag.cmp(tag)) {
            Ok(place) => place,
            Err(place) => {
                tags.insert(place, Held { tag: tag.clone(), nodes: Vec::new() });
                place
            }
        };
        let nodes = &mut tags[place].nodes;
        if let Err(place) = nodes.binary_search(&number) {
            if nodes.len() == nodes.capacity() {
                nodes.reserve_exact(nodes.len() / GROWTH + LEAST_GROWTH);
            }
            nodes.insert(place, number);
        }
    }

    fn remove(&mut self, node: &NodeName, name: &Arc<str>, tag: &Arc<str>) {
        let (Some(number), Some(tags)) = (self.numbers.get(node), self.images.get_mut(name)) else { return };
        let Ok(place) = tags.binary_search_by(|held| held.tag.cmp(tag)) else { return };
        let nodes = &mut tags[place].nodes;
        if let Ok(place) = nodes.binary_search(number) {
            nodes.remove(place);
        }
        if nodes.is_empty() {
            tags.remove(place);
        }
        if tags.is_empty() {
            self.images.remove(name);
        }
    }

    fn number(&mut self, node: &NodeName) -> u32 {
        if let Some(number) = self.numbers.get(node) {
            return *number;
        }
        let number = self.free.pop().unwrap_or_else(|| {
            self.names.push(NodeName::default());
            u32::try_from(self.names.len() - 1).expect("a cluster has fewer nodes than there are numbers")
        });
        self.names[number as usize] = node.clone();
        self.numbers.insert(node.clone(), number);
        number
    }
}

/// The tags that a node holds, with the names of their images.
fn tags(image: &NodeImageRecord) -> impl Iterator<Item = (&Arc<str>, &TagRecord)> {
    let counts = |image: &ImageRecord, tag: &TagRecord| image.tag(&tag.tag).is_some_and(is_held);
    image.images.iter().flat_map(move |(name, image)| {
        image.tags.iter().filter(move |tag| counts(image, tag)).map(move |tag| (name, tag))
    })
}

/// One tag, if the node holds it.
fn tag<'a>(image: &'a NodeImageRecord, key: &ImageKey) -> Option<(&'a Arc<str>, &'a Arc<str>)> {
    let (name, image) = image.images.get_key_value(key.name.as_str())?;
    let tag = image.tag(&key.tag).filter(|tag| is_held(tag))?;
    Some((name, &tag.tag))
}

/// Whether the node pulled it, or had it, and has not lost it since. A round that it has not answered yet changes nothing.
fn is_held(tag: &TagRecord) -> bool {
    tag.status.as_ref().is_some_and(|status| status.phase == PullPhase::Succeeded && status.lost_at.is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::node_image::record::Shared;
    use crate::support::build::{Entry, at, entry, key, node_image};

    /// An index that knows these nodes.
    fn holders(nodes: &[(&str, &[Entry])]) -> (Holders, Vec<NodeImageRecord>) {
        let (mut holders, mut shared) = (Holders::default(), Shared::default());
        let records: Vec<NodeImageRecord> =
            nodes.iter().map(|(name, entries)| shared.record(node_image(name, entries))).collect();
        for ((name, _), record) in nodes.iter().zip(&records) {
            holders.begin(&(*name).into(), record);
        }
        (holders, records)
    }

    fn names(holders: &Holders, image: &str) -> Vec<String> {
        holders.of(&key(image)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_node_holds_what_it_pulled_and_has_not_lost() {
        let lost = entry("nginx:1").succeeded(at(0)).answer(|status| {
            status.lost_at = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at(9)));
        });
        let (holders, _) = holders(&[
            ("n3", &[entry("nginx:1").succeeded(at(0)), entry("redis:7").pulling(at(0))]),
            ("n1", &[entry("nginx:1").succeeded(at(0)), entry("nginx:2").succeeded(at(0))]),
            ("n2", &[entry("nginx:1").failed(at(0)), entry("redis:7").waiting()]),
            ("n4", &[lost]),
        ]);
        assert_eq!(names(&holders, "nginx:1"), ["n1", "n3"]);
        assert_eq!(names(&holders, "nginx:2"), ["n1"]);
        assert_eq!(names(&holders, "redis:7"), [""; 0]);
    }

    #[test]
    fn a_node_that_is_asked_again_holds_its_image_until_it_answers() {
        let asked_again = entry("nginx:1").succeeded(at(0)).version(0);
        let (mut holders, records) = holders(&[("n1", &[asked_again])]);
        let mut new = records[0].clone();
        for tag in new.images.values_mut().flat_map(|image| &mut image.tags) {
            tag.version += 1;
        }
        holders.change(&"n1".into(), &records[0], &new, &[key("nginx:1")]);
        assert_eq!(names(&holders, "nginx:1"), ["n1"]);
    }

    #[test]
    fn what_has_changed_is_taken_over_and_a_node_that_is_gone_holds_nothing() {
        let (mut holders, records) = holders(&[
            ("n1", &[entry("nginx:1").succeeded(at(0)), entry("redis:7").pulling(at(0))]),
            ("n2", &[entry("redis:7").succeeded(at(0))]),
        ]);
        holders.change(&"n1".into(), &records[0], &records[1], &[key("nginx:1"), key("redis:7")]);
        assert_eq!(
            (names(&holders, "nginx:1").len(), names(&holders, "redis:7")),
            (0, vec!["n1".into(), "n2".into()])
        );
        holders.end(&"n2".into(), &records[1]);
        assert_eq!(names(&holders, "redis:7"), ["n1"]);
        holders.end(&"n1".into(), &records[1]);
        assert!(holders.images.is_empty() && holders.numbers.is_empty());
        holders.begin(&"n9".into(), &records[1]);
        assert_eq!((names(&holders, "redis:7"), holders.names.len()), (vec!["n9".to_owned()], 2));
    }

    /// The controller holds 411 MiB then (docs/performance.md); this is a hundredth of it.
    #[test]
    fn ten_thousand_nodes_with_fifty_images_take_four_megabytes() {
        let mut shared = Shared::default();
        let images: Vec<Entry> =
            (0..50).map(|number| entry(&format!("application-{number}:1")).succeeded(at(0))).collect();
        let record = shared.record(node_image("n", &images));
        let mut holders = Holders::default();
        for number in 0..10_000 {
            // Not in the order of names, as reports come.
            holders.begin(&format!("node-{}", number * 7919 % 10_000).into(), &record);
        }
        assert_eq!(holders.of(&key("application-7:1")).len(), 10_000);
        let lists = holders.images.values().flatten().map(|held| held.nodes.capacity() * size_of::<u32>());
        let nodes = holders.numbers.capacity() * size_of::<(NodeName, u32)>()
            + holders.names.capacity() * size_of::<NodeName>();
        let bytes = lists.sum::<usize>() + nodes;
        assert!(bytes <= 4 << 20, "{bytes} bytes");
    }
}
