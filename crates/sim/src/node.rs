//! One node: the real agent on a fake runtime.

use std::sync::Arc;
use std::time::Duration;

use prewarm_agent::config::{Config, RuntimeChoice};
use prewarm_agent::secrets::KubeSecrets;
use prewarm_agent::{Agent, Metrics, run};
use prewarm_api::names::DEFAULT_CONFIG_NAMESPACE;
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
    running: Option<Running>,
    metrics: Metrics,
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
        Self { name: name.to_owned(), runtime, faults, server: server.clone(), clock, running: None, metrics }
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
        };
        let credentials = Arc::new(KubeSecrets::new(client.clone(), DEFAULT_CONFIG_NAMESPACE.to_owned()));
        Agent::new(config, client, credentials, self.clock.clone())
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
}
