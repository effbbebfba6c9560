//! One node: the real agent on a fake runtime.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use prewarm_agent::config::{Config, Mirrors, RuntimeChoice};
use prewarm_agent::secrets::KubeSecrets;
use prewarm_agent::{Agent, Metrics, run};
use prewarm_api::names::DEFAULT_CONFIG_NAMESPACE;
use prewarm_api::reference::ImageRef;
use prewarm_clock::Clock;
use prewarm_control_plane::spawn_until;
use prewarm_embedded::Server;
use prewarm_embedded::faults::Faults;
use prewarm_plan::agent::disk::MinFree;
use prewarm_process::event::Writer;
use prewarm_runtime::fake::Fake;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A node with its agent.
pub struct Node {
    pub name: String,
    pub runtime: Fake,
    /// The faults of the agent's requests, and their journal.
    pub faults: Faults,
    server: Server,
    clock: Arc<dyn Clock>,
    /// The runtimes of all nodes, of which mirrors take what they have.
    pub(crate) peers: Peers,
    running: Option<Running>,
    metrics: Metrics,
}

/// The runtimes of all nodes of a cluster.
#[derive(Clone, Default)]
pub(crate) struct Peers(Arc<Mutex<BTreeMap<String, Fake>>>);

impl Peers {
    pub(crate) fn join(&self, name: &str, runtime: &Fake) {
        self.runtimes().insert(name.to_owned(), runtime.clone());
    }

    pub(crate) fn leave(&self, name: &str) {
        self.runtimes().remove(name);
    }

    fn have(&self, reference: &ImageRef) -> bool {
        self.runtimes().values().any(|runtime| runtime.has(&reference.full()))
    }

    fn runtimes(&self) -> MutexGuard<'_, BTreeMap<String, Fake>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Running {
    stop: oneshot::Sender<()>,
    agent: JoinHandle<()>,
    writer: JoinHandle<()>,
}

impl Node {
    /// A node whose agent is not started.
    pub fn new(name: &str, server: &Server, clock: Arc<dyn Clock>) -> Self {
        let (runtime, faults) = (Fake::new(), Faults::none());
        let metrics = Metrics::new();
        let (name, server, peers) = (name.to_owned(), server.clone(), Peers::default());
        Self { name, runtime, faults, server, clock, peers, running: None, metrics }
    }

    /// Starts the agent.
    pub fn start(&mut self) {
        let (agent, writer) = self.parts(&self.faults);
        self.metrics = agent.metrics.clone();
        let (stop, stopped) = oneshot::channel();
        let agent = tokio::spawn(run(agent, async move { drop(stopped.await) }));
        self.running = Some(Running { stop, agent, writer: tokio::spawn(writer.run()) });
    }

    /// Starts an agent with these faults. When they halt it, it dies, and another one starts with the node's own
    /// faults.
    pub fn start_one_that_dies(&mut self, faults: &Faults) {
        let (first, first_writer) = self.parts(faults);
        let (second, second_writer) = self.parts(&self.faults);
        let (stop, stopped) = oneshot::channel();
        let faults = faults.clone();
        let life = async move {
            tokio::select! {
                () = faults.halted() => {}
                () = run(first, std::future::pending()) => {}
                () = first_writer.run() => {}
            }
            tokio::join!(run(second, std::future::pending()), second_writer.run());
        };
        let agent = spawn_until(stopped, life);
        self.running = Some(Running { stop, agent, writer: tokio::spawn(async {}) });
    }

    fn parts(&self, faults: &Faults) -> (Agent, Writer) {
        let client = faults.client(&self.server);
        let config = Config {
            node: self.name.clone(),
            name: format!("agent-of-{}", self.name),
            runtime: RuntimeChoice::Given(self.runtime.endpoint()),
            parallel: 2,
            min_free: MinFree::Bytes(0),
            drain: Duration::from_secs(10),
            mirrors: self.mirrors(),
        };
        let credentials = Arc::new(KubeSecrets::new(client.clone(), DEFAULT_CONFIG_NAMESPACE.to_owned()));
        Agent::new(config, client, credentials, self.clock.clone())
    }

    /// Mirrors that have what any node has.
    fn mirrors(&self) -> Mirrors {
        let (own, peers) = (self.runtime.clone(), self.peers.clone());
        Mirrors::Simulated(Arc::new(move |reference, digest| {
            let own = own.clone();
            own.mirror(&reference, peers.have(&reference));
            async move { own.bring(&reference, digest.as_deref()).await }.boxed()
        }))
    }

    /// Asks the agent to stop, as SIGTERM does, and waits until it has.
    pub async fn stop(&mut self) {
        if let Some(running) = self.running.take() {
            drop(running.stop);
            running.agent.await.expect("the agent ends well");
            running.writer.await.expect("the writer of events ends well");
        }
    }

    /// Kills the agent, as SIGKILL does.
    pub async fn kill(&mut self) {
        if let Some(running) = self.running.take() {
            running.agent.abort();
            running.writer.abort();
            // Both are meant to end by being cancelled.
            drop(running.agent.await);
            drop(running.writer.await);
        }
    }

    /// The agent's metrics since its last start, as text.
    pub fn metrics(&self) -> String {
        self.metrics.encode()
    }

    /// How often a pull of this reference was completed.
    pub fn pulls(&self, reference: &str) -> usize {
        self.runtime.calls_of(reference).len()
    }

    /// How often it was fetched, from the registry or from mirrors.
    pub fn fetches(&self, reference: &str) -> usize {
        let full = ImageRef::parse(reference).expect("a reference").full();
        self.pulls(reference) + self.runtime.brought().iter().filter(|brought| **brought == full).count()
    }
}
