//! The settings of an agent.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use prewarm_api::kruise::FailureClass;
use prewarm_api::reference::ImageRef;
pub use prewarm_mirror::client::Patience;
use prewarm_plan::agent::disk::MinFree;
use prewarm_runtime::Endpoint;

use crate::disk::Room;

#[derive(Clone)]
pub struct Config {
    /// The node that it works for.
    pub node: String,
    /// Its own name, as its reports have it.
    pub name: String,
    /// How to find the container runtime.
    pub runtime: RuntimeChoice,
    /// How many pulls run at once.
    pub parallel: usize,
    /// How much room must stay free on the filesystem of the images.
    pub min_free: MinFree,
    /// How long running pulls may go on after a request to stop.
    pub drain: Duration,
    /// How images come that must not come from their registry.
    pub mirrors: Mirrors,
}

/// How to find the container runtime.
#[derive(Clone)]
pub enum RuntimeChoice {
    /// This one.
    Given(Endpoint),
    /// A simulated one, whose disk is simulated too.
    Simulated(Endpoint, SimulatedDisk),
    /// The first that answers in this directory (kruise D40).
    In(PathBuf),
}

/// Says how much room there is on a disk that exists only in this process.
pub type SimulatedDisk = Arc<dyn Fn() -> Room + Send + Sync>;

/// How images come that must not come from their registry.
#[derive(Clone)]
pub enum Mirrors {
    /// From the mirrors that the node's containerd is configured with.
    OfNode(NodeMirrors),
    /// From mirrors that exist only in this process.
    Simulated(SimulatedMirrors),
}

/// The mirrors of a node, and what else is known of its containerd that it does not tell.
#[derive(Clone, Debug)]
pub struct NodeMirrors {
    /// The directory of hosts that containerd's `config_path` names.
    pub directory: PathBuf,
    /// Whether the agent runs in the node's network, so that mirrors on its loopback can be reached.
    pub shares_network: bool,
    /// Whether containerd has image verifiers, which see pulls and nothing else.
    pub verifiers: Verifiers,
    /// What happens where `MirrorOnly` cannot be kept.
    pub fallback: Fallback,
    /// How long mirrors are waited for.
    pub patience: Patience,
}

/// Whether the node's containerd has image verifiers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verifiers {
    /// It has none.
    None,
    /// It has some, or nobody knows.
    #[default]
    Present,
}

/// What happens where `MirrorOnly` cannot be kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fallback {
    /// The runtime pulls, by its own mirrors, and may ask the registry.
    Runtime,
    /// The task fails and says why.
    #[default]
    Refuse,
}

/// Brings an image under its name, standing for this digest if one is given. An error has its class and the mirrors' words.
pub type SimulatedMirrors = Arc<dyn Fn(ImageRef, Option<String>) -> Bringing + Send + Sync>;

/// An image on its way from simulated mirrors.
pub type Bringing = BoxFuture<'static, Result<(), (FailureClass, String)>>;

impl Default for Mirrors {
    fn default() -> Self {
        Self::OfNode(NodeMirrors::default())
    }
}

impl Default for NodeMirrors {
    fn default() -> Self {
        Self {
            directory: PathBuf::from(DEFAULT_HOST_DIRECTORY),
            shares_network: false,
            verifiers: Verifiers::default(),
            fallback: Fallback::default(),
            patience: Patience::default(),
        }
    }
}

/// Where containerd's hosts are by custom.
pub const DEFAULT_HOST_DIRECTORY: &str = "/etc/containerd/certs.d";
