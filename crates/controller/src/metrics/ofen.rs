//! The metrics that ofen's controller has (ofen R16), under the names that dashboards of today know. They have a series for each
//! ImagePrefetch, as there; these are the only ones with names of objects in them, so that their number has a bound.

use prewarm_api::ofen::RegistryPolicy;
use prewarm_plan::cluster::image_prefetch::status::PrefetchSize;
use prewarm_plan::cluster::node_image_set::size::SetImage;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::Metrics;

/// What comes before the name of each.
const PREFIX: &str = "ofen";
/// At most so many ImagePrefetches have series. Those of further ones are left out.
pub const MOST_SERIES: usize = 1000;

type OfObject = [(&'static str, String); 2];
type OfImage = [(&'static str, String); 3];
type OfSource = [(&'static str, String); 4];

pub struct Ofen {
    pub registry: Registry,
    ready: Family<OfObject, Gauge>,
    pulled: Family<OfObject, Gauge>,
    failed: Family<OfObject, Gauge>,
    images: Family<OfSource, Gauge>,
    bytes: Family<OfImage, Gauge>,
    seconds: Family<OfImage, Gauge>,
}

impl Ofen {
    pub fn new() -> Self {
        let (ready, pulled, failed) = (Family::default(), Family::default(), Family::default());
        let mut registry = Registry::with_prefix(PREFIX);
        let help = "1 if all nodes of an ImagePrefetch have its images";
        registry.register("imageprefetch_ready", help, Family::clone(&ready));
        let help = "Nodes of an ImagePrefetch that have all its images";
        registry.register("imageprefetch_image_pull_successful_nodes", help, Family::clone(&pulled));
        let help = "Nodes of an ImagePrefetch on which an image could not be pulled";
        registry.register("imageprefetch_image_pull_failed_nodes", help, Family::clone(&failed));
        let (images, bytes, seconds) = (Family::default(), Family::default(), Family::default());
        let help = "An image of a NodeImageSet, with whom its node asks";
        registry.register("nodeimageset_image_info", help, Family::clone(&images));
        let help = "Bytes of an image that a node was made to pull";
        registry.register("nodeimageset_image_size_bytes", help, Family::clone(&bytes));
        let help = "Whole seconds that the pull of an image took";
        registry.register("nodeimageset_image_prefetch_duration_seconds", help, Family::clone(&seconds));
        Self { registry, ready, pulled, failed, images, bytes, seconds }
    }
}

impl Metrics {
    /// How ImagePrefetches are. Those that are gone have no series any more.
    pub fn prefetches(&self, all: &[PrefetchSize]) {
        let Ofen { ready, pulled, failed, .. } = &self.families.ofen;
        for family in [ready, pulled, failed] {
            family.clear();
        }
        for one in all.iter().take(MOST_SERIES) {
            let labels = [("namespace", one.key.namespace.clone()), ("imageprefetch", one.key.name.clone())];
            ready.get_or_create(&labels).set(i64::from(one.is_ready));
            pulled.get_or_create(&labels).set(one.pulled.into());
            failed.get_or_create(&labels).set(one.failed.into());
        }
    }

    /// What NodeImageSets bring to their nodes. ofen's programs on the nodes say this themselves, under the same names.
    pub fn sets(&self, all: &[SetImage]) {
        let Ofen { images, bytes, seconds, .. } = &self.families.ofen;
        images.clear();
        for family in [bytes, seconds] {
            family.clear();
        }
        for one in all {
            let [set, image, node] = [&one.set, &one.image, &one.node].map(Clone::clone);
            let policy = match one.policy {
                RegistryPolicy::Default => "Default",
                RegistryPolicy::MirrorOnly => "MirrorOnly",
            };
            let labels = [("nodeimageset", set), ("image", image), ("node", node)];
            for (family, value) in [(bytes, one.bytes), (seconds, one.seconds)] {
                if let Some(value) = value {
                    family.get_or_create(&labels).set(value);
                }
            }
            let [set, image, node] = labels;
            images.get_or_create(&[set, image, ("registry_policy", policy.to_owned()), node]).set(1);
        }
    }
}
