//! The cluster's controller: started, stopped, killed.

use std::pin::Pin;
use std::time::Duration;

use prewarm_api::names::DEFAULT_CONFIG_NAMESPACE;
use prewarm_controller::lease::{Lease, Place, Term, identity};
use prewarm_controller::{Controller as Parts, Health, Metrics, lead, run};
use prewarm_embedded::faults::Faults;
use prewarm_process::event::Writer;
use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::control_plane::ControlPlane;

const LEASE: &str = "controller";
/// How much later the second of two controllers starts.
const HEAD_START: Duration = Duration::from_millis(50);

/// How a leader ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fall {
    /// It dies at once.
    Death,
    /// It is asked to stop, finishes what it has begun and releases the Lease.
    Stop,
}

/// Tells a leader when it falls. Boxed, so that the controllers are compiled here, where code is optimized: what is generic is
/// compiled in the test that calls it, with all that it runs.
pub type Falls = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A running controller.
pub struct Controller {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
    writer: JoinHandle<()>,
    pub metrics: Metrics,
    pub health: Health,
}

/// Runs a future until it is stopped, and drops it then: a story that is over must not go on beside the next one.
pub fn spawn_until(
    stopped: oneshot::Receiver<()>,
    life: impl Future<Output = ()> + Send + 'static,
) -> JoinHandle<()> {
    tokio::spawn(async move {
        tokio::select! {
            () = life => {}
            _ = stopped => {}
        }
    })
}

impl ControlPlane {
    /// Starts the controller without a Lease.
    pub fn start_controller(&mut self) {
        let (parts, writer) = self.parts(&self.faults);
        let (metrics, health) = (parts.metrics.clone(), parts.health.clone());
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(lead(parts, Term::endless(), async move { drop(stopped.await) }));
        self.controller =
            Some(Controller { stop, task, writer: tokio::spawn(writer.run()), metrics, health });
    }

    /// Starts a controller with these faults. When they halt it, it dies, and another one starts with the cluster's own
    /// faults.
    pub fn start_controller_that_dies(&mut self, faults: &Faults) {
        let (first, first_writer) = self.parts(faults);
        let (second, second_writer) = self.parts(&self.faults);
        let (metrics, health) = (second.metrics.clone(), second.health.clone());
        let (stop, stopped) = oneshot::channel();
        let faults = faults.clone();
        let life = async move {
            tokio::select! {
                () = faults.halted() => {}
                () = lead(first, Term::endless(), std::future::pending()) => {}
                () = first_writer.run() => {}
            }
            tokio::join!(lead(second, Term::endless(), std::future::pending()), second_writer.run());
        };
        self.controller = Some(Controller {
            task: spawn_until(stopped, life),
            stop,
            writer: tokio::spawn(async {}),
            metrics,
            health,
        });
    }

    /// Starts two controllers that share a Lease. The first one leads, with these faults; when they halt it, it dies or
    /// stops as `falls` says. The second one has the cluster's own faults.
    pub fn start_two_controllers(&mut self, faults: &Faults, fall: Fall, falls: Falls) {
        let (first, first_writer) = self.parts(faults);
        let (second, second_writer) = self.parts(&self.faults);
        let (metrics, health) = (second.metrics.clone(), second.health.clone());
        // Nobody holds the Lease, so that the first one to ask gets it at once, as in an installed cluster.
        let place = json!({"name": LEASE, "namespace": DEFAULT_CONFIG_NAMESPACE});
        let object = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": place});
        self.server.install(&object).expect("a Lease with a plain name is valid");
        let (first_lease, second_lease) = (self.lease(), self.lease());
        let (stop, stopped) = oneshot::channel();
        let falls = async move {
            tokio::select! {
                () = falls => {}
                () = first_writer.run() => {}
            }
        };
        let leader = async move {
            match fall {
                Fall::Stop => drop(Box::pin(run(first, Some(first_lease), falls)).await),
                Fall::Death => tokio::select! {
                    biased;
                    () = falls => {}
                    _ = run(first, Some(first_lease), std::future::pending()) => {}
                },
            }
        };
        let follower = async move {
            tokio::time::sleep(HEAD_START).await;
            drop(run(second, Some(second_lease), std::future::pending()).await);
        };
        let life = async move {
            tokio::join!(leader, follower, second_writer.run());
        };
        self.controller = Some(Controller {
            task: spawn_until(stopped, life),
            stop,
            writer: tokio::spawn(async {}),
            metrics,
            health,
        });
    }

    /// A candidate for the Lease whose requests have no faults and are not counted.
    fn lease(&self) -> Lease {
        let place = Place { namespace: DEFAULT_CONFIG_NAMESPACE.to_owned(), name: LEASE.to_owned() };
        Lease::new(self.client.clone(), place, identity("controller"), self.clock.clone(), Metrics::new())
    }

    fn parts(&self, faults: &Faults) -> (Parts, Writer) {
        let client = faults.client(&self.server);
        let (parts, writer) = Parts::new("controller-1", self.config.clone(), client, self.clock.clone());
        (Parts { journal: self.journal.clone(), ..parts }, writer)
    }

    /// Asks the controller to stop, as SIGTERM does, and waits until it has.
    pub async fn stop_controller(&mut self) {
        if let Some(controller) = self.controller.take() {
            drop(controller.stop);
            controller.task.await.expect("the controller ends well");
            controller.writer.await.expect("the writer of events ends well");
        }
    }

    /// Kills the controller, as SIGKILL does.
    pub async fn kill_controller(&mut self) {
        if let Some(controller) = self.controller.take() {
            controller.task.abort();
            controller.writer.abort();
            // Both are meant to end by being cancelled.
            drop(controller.task.await);
            drop(controller.writer.await);
        }
    }

    /// What the controller's probe of readiness says: which checks fail, or its remark.
    pub fn readiness(&self) -> Result<String, Vec<(&'static str, String)>> {
        let checks =
            self.controller.as_ref().map(|controller| controller.health.checks()).unwrap_or_default();
        let failing = checks.failing();
        if failing.is_empty() { Ok(checks.remark().unwrap_or_default()) } else { Err(failing) }
    }

    /// The controller's metrics, as text.
    pub fn controller_metrics(&self) -> String {
        self.controller.as_ref().map(|controller| controller.metrics.encode()).unwrap_or_default()
    }
}
