//! What metrics say of NodeImageSets (ofen R16).

use prewarm_api::kruise::PullPhase;
use prewarm_api::ofen::RegistryPolicy;

use super::record::NodeSet;
use crate::cluster::Kernel;
use crate::cluster::demands::parts::Part;
use crate::cluster::node_image::record::TagStatus;

/// At most this many images of NodeImageSets are measured, those of the first sets by UID: each is a series of its own, and
/// a large cluster would have more than anybody wants to keep.
pub const MOST_MEASURED: usize = 2000;

/// One image of a NodeImageSet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetImage {
    /// The name of the set.
    pub set: String,
    /// Its node.
    pub node: String,
    /// The image, as it is written.
    pub image: String,
    /// Whom the node asks.
    pub policy: RegistryPolicy,
    /// How large it is, once it was pulled.
    pub bytes: Option<i64>,
    /// How many whole seconds that took, if it took any.
    pub seconds: Option<i64>,
}

impl Kernel {
    /// The images of all sets, as far as they are measured.
    pub(in crate::cluster) fn set_images(&self) -> Vec<SetImage> {
        let of_set = |set: &NodeSet| -> Vec<SetImage> {
            set.parts.iter().map(|part| self.set_image(set, part)).collect()
        };
        self.sets.all.values().flat_map(of_set).take(MOST_MEASURED).collect()
    }

    fn set_image(&self, set: &NodeSet, part: &Part) -> SetImage {
        let status = self.tag_of(part, set.node()).and_then(|tag| tag.current());
        let pulled = status.filter(|status| status.phase == PullPhase::Succeeded);
        let took = |status: &TagStatus| {
            let took = status.completed_at?.duration_since(status.started_at?).as_secs();
            (took > 0).then_some(took)
        };
        SetImage {
            set: set.key.name.clone(),
            node: set.node().to_owned(),
            image: part.text.clone(),
            policy: set.object.spec.registry_policy,
            bytes: pulled.and_then(|status| status.bytes).map(|(_, all)| all),
            seconds: pulled.and_then(took),
        }
    }
}
