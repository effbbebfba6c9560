//! How a kernel is set up.

use prewarm_api::names::DEFAULT_CONFIG_NAMESPACE;

use crate::demand::selection::Requirements;

/// How a kernel is set up.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The namespace of the copied Secrets.
    pub config_namespace: String,
    /// What is added to the TTL of a job that ends.
    pub always_ttl: i32,
    /// Whether the scheduler places the pods of BroadcastJobs; otherwise they are bound to their nodes directly.
    pub assigns_by_scheduler: bool,
    /// What the nodes have in common that agents run on, besides Linux. Others get no NodeImage and count for no job.
    pub agent_nodes: Requirements,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            config_namespace: DEFAULT_CONFIG_NAMESPACE.to_owned(),
            always_ttl: 300,
            assigns_by_scheduler: true,
            agent_nodes: Requirements::default(),
        }
    }
}
