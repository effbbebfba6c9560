//! The demo's cluster: the embedded API on loopback, the real controller, a registry, and nodes on which the real agent
//! drives an image store. Whatever a node has, the others can get from its mirror.

mod node;
mod process;

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use kube::Client;
use prewarm_api::names::DEFAULT_CONFIG_NAMESPACE;
use prewarm_clock::{Clock, MachineClock};
use prewarm_controller::config::Config;
use prewarm_controller::lease::Term;
use prewarm_controller::{Controller, lead};
use prewarm_embedded::{Options, ServeError, Server, Serving};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::pace::Flow;
use crate::store::CreateError;
use crate::{Choices, Mirrors, Pace, Registry, Store};
pub use node::{Node, Site};
use process::Process;

/// The registry's name in the names of images.
pub const REGISTRY: &str = "registry.demo";
/// Nodes are spread over this many zones, round-robin.
const ZONES: usize = 3;
/// How long all processes together may take to stop before they are killed.
const STOP: Duration = Duration::from_millis(400);

/// How a cluster is laid out.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The directory for everything that is written.
    pub directory: PathBuf,
    pub nodes: usize,
    /// How many bytes a second a typical node downloads. The link of each node is a little faster or slower.
    pub link: Flow,
    /// How many bytes a second the registry sends to all nodes together.
    pub uplink: Flow,
    /// What the seed decides.
    pub choices: Choices,
}

/// What a story or a screen can see of a node.
#[derive(Clone)]
pub struct Seat {
    pub name: String,
    pub zone: String,
    pub store: Store,
}

/// Why a cluster could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("cannot listen on loopback")]
    Listen(#[source] io::Error),
    /// There is no certificate, or the socket is unusable.
    #[error("cannot serve the API")]
    Serve(#[source] ServeError),
    #[error("cannot write {}", .0.display())]
    Write(PathBuf, #[source] io::Error),
    #[error(transparent)]
    Store(#[from] CreateError),
    /// The API refused an object of the cluster itself.
    #[error("cannot create the node {0}")]
    Node(String, #[source] kube::Error),
}

/// A running cluster. [`Cluster::stop`] ends it cleanly; dropping it ends it at once.
pub struct Cluster {
    /// A client of the API without a socket.
    pub client: Client,
    pub registry: Registry,
    pub mirrors: Mirrors,
    /// The nodes by name.
    pub nodes: BTreeMap<String, Node>,
    seats: watch::Sender<Vec<Seat>>,
    plan: Plan,
    server: Server,
    serving: Serving,
    kubeconfig: PathBuf,
    clock: Arc<dyn Clock>,
    controller: Process,
}

impl Cluster {
    /// Starts everything. It has to be called inside a tokio runtime.
    pub async fn start(plan: Plan) -> Result<Self, StartError> {
        let clock: Arc<dyn Clock> = Arc::new(MachineClock);
        let server = server(clock.clone());
        let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let serving =
            server.clone().serve(listener.await.map_err(StartError::Listen)?).map_err(StartError::Serve)?;
        let kubeconfig = plan.directory.join("kubeconfig");
        let written = serving.write_kubeconfig(&kubeconfig);
        written.map_err(|error| StartError::Write(kubeconfig.clone(), error))?;
        let registry = Registry::start(Pace::new(plan.uplink)).map_err(StartError::Listen)?;
        let mirrors = Mirrors::start().map_err(StartError::Listen)?;
        let (controller, writer) =
            Controller::new("controller-1", Config::default(), server.client(), clock.clone());
        let controller = Process::spawn(|stop| async {
            tokio::join!(lead(controller, Term::endless(), stop), writer.run())
        });
        let count = plan.nodes;
        let mut cluster = Self {
            client: server.client(),
            registry,
            mirrors,
            nodes: BTreeMap::new(),
            seats: watch::Sender::default(),
            plan,
            server,
            serving,
            kubeconfig,
            clock,
            controller,
        };
        for _ in 0..count {
            cluster.add_node().await?;
        }
        Ok(cluster)
    }

    /// Adds a node as an autoscaler does: it registers, becomes ready, and its agent starts. Returns its name.
    pub async fn add_node(&mut self) -> Result<String, StartError> {
        let number = self.nodes.len() + 1;
        let site = Site {
            name: format!("node-{number:02}"),
            zone: format!("zone-{}", zone_letter(number)),
            directory: self.plan.directory.join("nodes"),
            registry: self.registry.address(),
            mirrors: self.mirrors.address(),
            link: self.plan.choices.link(self.plan.link, number),
        };
        let (name, uplink) = (site.name.clone(), Pace::new(site.link));
        let node = Node::start(site, self.server.client(), self.clock.clone()).await?;
        let seat = Seat { name: name.clone(), zone: node.zone.clone(), store: node.store.clone() };
        self.mirrors.join(node.store.clone(), uplink);
        self.seats.send_modify(|seats| seats.push(seat));
        self.nodes.insert(name.clone(), node);
        Ok(name)
    }

    /// The nodes in the order in which they joined, including those that will join.
    pub fn seats(&self) -> watch::Receiver<Vec<Seat>> {
        self.seats.subscribe()
    }

    /// The kubeconfig with which `kubectl` reaches the cluster.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Stops every process as SIGTERM does, and kills those that take too long.
    pub async fn stop(self) {
        let Self { controller, nodes, serving, .. } = self;
        let agents = nodes.into_values().map(Node::stop);
        // What is cut off here is about to be dropped anyway.
        let _ = tokio::time::timeout(STOP, async { tokio::join!(controller.stop(), join_all(agents)) }).await;
        serving.stop().await;
    }
}

/// An API with our definitions and the namespace to which Secrets are copied.
fn server(clock: Arc<dyn Clock>) -> Server {
    let server = Server::new(clock, Options::default());
    server.install_definitions();
    server.install_namespace(DEFAULT_CONFIG_NAMESPACE);
    server
}

fn zone_letter(number: usize) -> char {
    ['a', 'b', 'c'][number.wrapping_sub(1) % ZONES]
}
