//! How a kernel is set up.

use prewarm_api::names::DEFAULT_CONFIG_NAMESPACE;

use super::image_prefetch::wave::Limits;
use crate::demand::selection::Requirements;
use crate::object::ObjectKey;

/// How a kernel is set up.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The namespace of the copied Secrets.
    pub config_namespace: String,
    /// What is added to the TTL of a job that ends.
    pub always_ttl: i32,
    /// Whether the scheduler places the pods of BroadcastJobs; otherwise they are bound to their nodes directly.
    pub assigns_by_scheduler: bool,
    /// How many nodes of an ImagePrefetch begin at once.
    pub waves: Limits,
    /// The ConfigMap that says which images each namespace may have, if there is to be one.
    pub allow_list: Option<ObjectKey>,
    /// What the nodes have in common that agents run on, besides Linux. Others get no NodeImage and count for no job.
    pub agent_nodes: Requirements,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            config_namespace: DEFAULT_CONFIG_NAMESPACE.to_owned(),
            always_ttl: 300,
            assigns_by_scheduler: true,
            waves: Limits { seeds: 1, first: 1 },
            allow_list: None,
            agent_nodes: Requirements::default(),
        }
    }
}
