//! The cluster: a control plane, and nodes with agents.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use prewarm_clock::Clock;
use prewarm_control_plane::ControlPlane;
use prewarm_embedded::Options;
use serde_json::{Value, json};

use crate::node::{Node, Peers};

/// A cluster in one process. It can do everything that its control plane can.
#[derive(Default)]
pub struct Cluster {
    control_plane: ControlPlane,
    pub nodes: BTreeMap<String, Node>,
    /// The images that the registry has, and how long pulling them takes.
    images: Vec<(String, Duration)>,
    /// What mirrors take from.
    peers: Peers,
}

impl Deref for Cluster {
    type Target = ControlPlane;

    fn deref(&self) -> &ControlPlane {
        &self.control_plane
    }
}

impl DerefMut for Cluster {
    fn deref_mut(&mut self) -> &mut ControlPlane {
        &mut self.control_plane
    }
}

impl Cluster {
    /// An API with our definitions and nothing else. The time of day follows tokio's.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with these options.
    pub fn with(options: Options) -> Self {
        Self { control_plane: ControlPlane::with(options), ..Self::default() }
    }

    /// The same with this clock.
    pub fn on(clock: Arc<dyn Clock>, options: Options) -> Self {
        Self { control_plane: ControlPlane::on(clock, options), ..Self::default() }
    }

    /// Adds an image to the registry that all nodes pull from. Pulling it takes this long.
    pub fn publish(&mut self, image: &str, takes: Duration) {
        self.images.push((image.to_owned(), takes));
        for node in self.nodes.values() {
            node.runtime.image(image).takes(takes);
        }
    }

    /// Creates this many nodes, from `node-1` on, each ready and with an agent.
    pub async fn add_nodes(&mut self, count: usize) {
        for number in 1..=count {
            self.add_node(&format!("node-{number}"), json!({})).await;
        }
    }

    /// Creates a ready node with these labels, and starts its agent.
    pub async fn add_node(&mut self, name: &str, labels: Value) {
        self.make_node(name, labels).await;
        let mut node = Node::new(name, &self.server, self.clock.clone());
        for (image, takes) in &self.images {
            node.runtime.image(image).takes(*takes);
        }
        self.peers.join(name, &node.runtime);
        node.peers = self.peers.clone();
        node.start();
        self.nodes.insert(name.to_owned(), node);
    }

    /// Deletes a Node together with its agent.
    pub async fn delete_node(&mut self, name: &str) {
        self.control_plane.delete_node(name).await;
        if let Some(mut node) = self.nodes.remove(name) {
            node.kill().await;
        }
        self.peers.leave(name);
    }
}
