//! One node: its object, its image store, its agent.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1 as core;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use prewarm_agent::config::Config;
use prewarm_agent::secrets::KubeSecrets;
use prewarm_agent::{Agent, run};
use prewarm_api::names::DEFAULT_CONFIG_NAMESPACE;
use prewarm_clock::Clock;
use prewarm_plan::agent::disk::MinFree;
use serde_json::{Value, json};

use super::process::Process;
use super::{REGISTRY, StartError};
use crate::pace::Flow;
use crate::store::{self, Disk};
use crate::{Pace, Store};

const GIB: u64 = 1 << 30;
/// The disk of every node, with more than enough room.
const DISK: Disk = Disk { capacity: 2 * GIB, taken: GIB };
/// How many images a node pulls at a time, as by default in the agent.
const PARALLEL: usize = 2;

/// What a node is made from.
pub struct Site {
    pub name: String,
    pub zone: String,
    /// The directory of all nodes' images. Each node has a directory of its own in it.
    pub directory: PathBuf,
    /// The address of the registry.
    pub registry: SocketAddr,
    /// The address of the nodes' mirrors.
    pub mirrors: SocketAddr,
    /// How many bytes a second it downloads, and as many it sends at the same time.
    pub link: Flow,
}

/// A node with its agent.
pub struct Node {
    pub zone: String,
    pub store: Store,
    agent: Process,
}

impl Node {
    /// Registers a node that is ready, and starts its agent.
    pub(super) async fn start(site: Site, client: Client, clock: Arc<dyn Clock>) -> Result<Self, StartError> {
        let store = Store::create(store::Config {
            name: site.name.clone(),
            directory: site.directory.join(&site.name),
            hosts: [(REGISTRY.to_owned(), site.registry)].into(),
            link: Pace::new(site.link),
            disk: DISK,
        })?;
        let registered = register(&site, client.clone(), &*clock).await;
        registered.map_err(|error| StartError::Node(site.name.clone(), error))?;
        let config = Config {
            name: format!("agent-of-{}", site.name),
            node: site.name,
            runtime: store.runtime_choice(),
            parallel: PARALLEL,
            min_free: MinFree::default(),
            drain: Duration::ZERO,
            mirrors: store.mirror_choice(site.mirrors),
        };
        let credentials = Arc::new(KubeSecrets::new(client.clone(), DEFAULT_CONFIG_NAMESPACE.to_owned()));
        let (agent, writer) = Agent::new(config, client, credentials, clock);
        let agent = Process::spawn(|stop| async { tokio::join!(run(agent, stop), writer.run()) });
        Ok(Self { zone: site.zone, store, agent })
    }

    pub(super) async fn stop(self) {
        self.agent.stop().await;
    }
}

async fn register(site: &Site, client: Client, clock: &dyn Clock) -> kube::Result<()> {
    let api: Api<core::Node> = Api::all(client);
    let object = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": site.name, "labels": {
            "kubernetes.io/hostname": site.name, "kubernetes.io/os": "linux",
            "topology.kubernetes.io/zone": site.zone,
        }},
    });
    let object = serde_json::from_value(object).expect("a Node that is written by hand is one");
    api.create(&PostParams::default(), &object).await?;
    api.patch_status(&site.name, &PatchParams::default(), &Patch::Merge(ready(clock))).await?;
    Ok(())
}

/// The status that a kubelet reports once it can work.
fn ready(clock: &dyn Clock) -> Value {
    let now = clock.now().to_string();
    json!({"status": {"conditions": [{
        "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "the node is ready",
        "lastHeartbeatTime": now, "lastTransitionTime": now,
    }]}})
}
