//! Explains an ImagePrefetch or a NodeImageSet: who asks the registry, who asks mirrors, and why each node is where it is.

mod report;
mod words;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt as _;
use prewarm_api::condition::Condition;
use prewarm_api::kruise::NodeImage;
use prewarm_api::names::OWNER_NAMESPACE_LABEL;
use prewarm_api::ofen::{ImagePrefetch, NodeImageSet};
use prewarm_plan::cluster::image_prefetch::explain::{Explained, OfSet};
use prewarm_plan::cluster::{Input, Kernel, Settings};
use prewarm_plan::object::ObjectKey;
use prewarm_process::slim::SlimNode;

use crate::jobs::JobName;
use crate::prefetches::{Prefetches, notes};
use crate::reach::{Feed, Narrow, Reader, or_refusal};
pub use report::Report;

/// What an explanation is derived from, read with one list for each kind.
pub struct Source {
    prefetches: Prefetches,
    /// Those of all nodes; none if they cannot be read. Entries of NodeImages say most of what they say.
    sets: Option<Feed<NodeImageSet>>,
    images: Feed<NodeImage>,
    nodes: Feed<SlimNode>,
}

/// What the controller would know, and what nodes report.
struct World {
    kernel: Kernel,
    images: Vec<Arc<NodeImage>>,
}

impl Source {
    /// Reads what an explanation of ImagePrefetches needs besides.
    pub async fn read(reader: &mut Reader, prefetches: Prefetches) -> anyhow::Result<Self> {
        let sets = or_refusal(reader.cluster_wide(&Narrow::default()).await)?.ok();
        let images = reader.cluster_wide(&Narrow::default()).await?;
        let nodes = reader.cluster_wide(&Narrow::default()).await?;
        Ok(Self { prefetches, sets, images, nodes })
    }

    /// Reads what an explanation of a NodeImageSet needs: of ImagePrefetches those of the namespace that its label names.
    pub async fn of_set(reader: &mut Reader, name: &JobName) -> anyhow::Result<Self> {
        let sets: Feed<NodeImageSet> = reader.cluster_wide(&Narrow::default()).await?;
        let set = set_named(&sets, name)?;
        let prefetches = match set.labels().get(OWNER_NAMESPACE_LABEL) {
            Some(namespace) => Prefetches::read(reader, Some(namespace)).await?,
            None => Prefetches::Undefined,
        };
        let images = reader.cluster_wide(&Narrow::default()).await?;
        let nodes = reader.cluster_wide(&Narrow::default()).await?;
        Ok(Self { prefetches, sets: Some(sets), images, nodes })
    }

    /// Explains the ImagePrefetches of a name, all nodes or those with the given names.
    pub fn prefetch(&self, name: &JobName, only: &[String], now: Timestamp) -> anyhow::Result<Report> {
        let found = self.prefetches.named(name);
        anyhow::ensure!(!found.is_empty(), "the ImagePrefetch {name} is gone");
        let mut world = self.world(now);
        let mut report = Report::default();
        for prefetch in found {
            let key = ObjectKey::of(&prefetch.metadata);
            let explained = world.kernel.explain::<ImagePrefetch>(&key, now);
            let Explained { mut nodes, others } = explained.unwrap_or_default();
            if !only.is_empty() {
                nodes.retain(|node, _| only.iter().any(|wanted| **wanted == **node));
            }
            report.add(nodes, &world.images, now);
            for node in only.iter().filter(|node| !report.has(node)).cloned().collect::<Vec<_>>() {
                report.add_outsider(&node, &prefetch.spec.images, others.get(&*node).copied());
            }
            report.has_private |= has_secrets(&prefetch);
            report.notes.extend(notes(&prefetch));
        }
        report.sort();
        Ok(report)
    }

    /// Explains a NodeImageSet: of one that an ImagePrefetch has made, what that wants of the node.
    pub fn set(&self, name: &JobName, only: &[String], now: Timestamp) -> anyhow::Result<Report> {
        let sets = self.sets.as_ref().ok_or_else(|| anyhow::anyhow!("NodeImageSets cannot be read"))?;
        let set = set_named(sets, name)?;
        let node = set.spec.node_name.clone();
        anyhow::ensure!(
            only.iter().all(|wanted| *wanted == node),
            "{name} is about the node {node} and no other; leave the nodes out"
        );
        let mut world = self.world(now);
        let mut report = Report::default();
        match world.kernel.explain::<NodeImageSet>(&ObjectKey::of(&set.metadata), now) {
            Some(OfSet::Made(owner)) => self.of_owner(&owner, &node, &mut world, &mut report, now),
            by_hand => {
                let nodes = match by_hand {
                    Some(OfSet::ByHand(nodes)) => nodes,
                    _ => BTreeMap::new(),
                };
                report.add(nodes, &world.images, now);
                let by_hand = "a person made this NodeImageSet: no ImagePrefetch has its name and labels";
                report.notes.push(by_hand.to_owned());
            }
        }
        report.notes.extend(troubles(&set));
        Ok(report)
    }

    fn of_owner(
        &self,
        owner: &ObjectKey,
        node: &str,
        world: &mut World,
        report: &mut Report,
        now: Timestamp,
    ) {
        let ObjectKey { namespace, name } = owner;
        let is_owner = |prefetch: &&Arc<ImagePrefetch>| ObjectKey::of(&prefetch.metadata) == *owner;
        let Some(prefetch) = self.prefetches.all().iter().find(is_owner).cloned() else {
            report.notes.push(format!(
                "its imageprefetch/{name} in namespace {namespace} is gone or cannot be read; if it is gone, the controller deletes \
                 this NodeImageSet"
            ));
            return;
        };
        let explained = world.kernel.explain::<ImagePrefetch>(owner, now);
        let Explained { mut nodes, others } = explained.unwrap_or_default();
        nodes.retain(|one, _| **one == *node);
        if nodes.is_empty() {
            report.add_outsider(node, &prefetch.spec.images, others.get(node).copied());
        }
        report.add(nodes, &world.images, now);
        report.has_private = has_secrets(&prefetch);
        report
            .notes
            .push(format!("it is what imageprefetch/{name} in namespace {namespace} wants of this node"));
    }

    /// What the controller would know.
    fn world(&self, now: Timestamp) -> World {
        let mut kernel = Kernel::new(Settings::default());
        for node in self.nodes.objects() {
            kernel.observe(Input::seen(Node::from((*node).clone())), now);
        }
        let images = self.images.objects();
        for image in &images {
            kernel.observe(Input::seen((**image).clone()), now);
        }
        // What sets say of roles is looked up when their ImagePrefetches come.
        for set in self.sets.iter().flat_map(Feed::objects) {
            kernel.observe(Input::seen((*set).clone()), now);
        }
        for prefetch in self.prefetches.all() {
            kernel.observe(Input::seen((*prefetch).clone()), now);
        }
        World { kernel, images }
    }
}

fn set_named(sets: &Feed<NodeImageSet>, name: &JobName) -> anyhow::Result<Arc<NodeImageSet>> {
    let found = sets.objects().into_iter().find(|set| set.name_any() == name.bare());
    found.ok_or_else(|| anyhow::anyhow!("there is no {name}; `kubectl get nodeimagesets` lists all"))
}

fn has_secrets(prefetch: &ImagePrefetch) -> bool {
    prefetch.spec.image_pull_secrets.as_ref().is_some_and(|secrets| !secrets.is_empty())
}

/// What its conditions say besides how far its images are, which the rows say.
fn troubles(set: &NodeImageSet) -> Vec<String> {
    use prewarm_api::names::condition::{IMAGE_AVAILABLE, IMAGE_DOWNLOAD_SUCCEEDED};
    let conditions = set.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let is_trouble = |one: &&Condition| {
        one.status == "False" && !matches!(&*one.type_, IMAGE_AVAILABLE | IMAGE_DOWNLOAD_SUCCEEDED)
    };
    conditions.filter(is_trouble).map(|condition| condition.message.clone()).collect()
}
