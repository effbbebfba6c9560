//! The setup for tests of failing registries: a node of each kind, and an image behind a proxy that fails on demand.

use crate::image::{Artifact, Image, Layer};
use crate::{FaultProxy, Node, Registry, Runtime};

const LAYER: usize = 2 * 1024 * 1024;

/// The host whose images every node requests from the proxy.
pub const FAULTY_HOST: &str = "faulty.example";

/// The parts of the setup. The image is `shop/web:v1`.
pub struct Faulty {
    pub registry: Registry,
    pub proxy: FaultProxy,
    pub nodes: Vec<Node>,
    pub image: Artifact,
}

impl Faulty {
    /// Starts everything, without any fault.
    pub async fn start() -> anyhow::Result<Self> {
        let registry = Registry::start().await?;
        let image = Image::new("faults").layer(Layer::of(LAYER)).build();
        registry.push("shop/web", &["v1"], &image).await?;
        let proxy = FaultProxy::start(&registry).await?;
        let mut nodes = Vec::new();
        for runtime in Runtime::ALL {
            let node = Node::configure().runtime(runtime).start(&registry).await?;
            node.lead(FAULTY_HOST, &proxy)?;
            nodes.push(node);
        }
        Ok(Self { registry, proxy, nodes, image })
    }
}
