//! The cluster's controller: started, stopped, killed.

use std::time::Duration;

use prewarm_api::names::DEFAULT_CONFIG_NAMESPACE;
use prewarm_controller::lease::{Lease, Place, Term, identity};
use prewarm_controller::{Controller as Parts, Metrics, lead, run};
use prewarm_embedded::faults::Faults;
use prewarm_process::event::Writer;
use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::control_plane::ControlPlane;

const LEASE: &str = "controller";
/// So much later the second of two controllers begins.
const HEAD_START: Duration = Duration::from_millis(50);

/// How a leader ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fall {
    /// Without any word.
    Death,
    /// It is told to stop, ends what it has begun and gives the Lease back.
    Stop,
}

/// A running controller.
pub struct Controller {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
    writer: JoinHandle<()>,
    /// What it counted.
    pub metrics: Metrics,
}

/// Lives until it is stopped, and then ends without any word: a story that is over must not go on beside the next one.
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
    /// Starts the controller, without any Lease.
    pub fn start_controller(&mut self) {
        let (parts, writer) = self.parts(&self.faults);
        let metrics = parts.metrics.clone();
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(lead(parts, Term::endless(), async move { drop(stopped.await) }));
        self.controller = Some(Controller { stop, task, writer: tokio::spawn(writer.run()), metrics });
    }

    /// Starts a controller that meets these faults. When they halt it, it dies without any word, and another begins that
    /// meets the cluster's own.
    pub fn start_controller_that_dies(&mut self, faults: &Faults) {
        let (first, first_writer) = self.parts(faults);
        let (second, second_writer) = self.parts(&self.faults);
        let metrics = second.metrics.clone();
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
        });
    }

    /// Starts two controllers that share a Lease. The first one leads and meets these faults; when it `falls`, it dies or
    /// is told to stop. The second one meets the cluster's own.
    pub fn start_two_controllers(
        &mut self,
        faults: &Faults,
        fall: Fall,
        falls: impl Future<Output = ()> + Send + 'static,
    ) {
        let (first, first_writer) = self.parts(faults);
        let (second, second_writer) = self.parts(&self.faults);
        let metrics = second.metrics.clone();
        // Nobody holds it, so that the first one to ask gets it at once, as on an installed cluster.
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
                Fall::Stop => drop(run(first, Some(first_lease), falls).await),
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
        });
    }

    /// A candidate whose requests nothing happens to and nobody counts.
    fn lease(&self) -> Lease {
        let place = Place { namespace: DEFAULT_CONFIG_NAMESPACE.to_owned(), name: LEASE.to_owned() };
        Lease::new(self.client.clone(), place, identity("controller"), self.clock.clone(), Metrics::new())
    }

    fn parts(&self, faults: &Faults) -> (Parts, Writer) {
        Parts::new("controller-1", self.config.clone(), faults.client(&self.server), self.clock.clone())
    }

    /// Asks the controller to stop, as SIGTERM does, and waits until it has.
    pub async fn stop_controller(&mut self) {
        if let Some(controller) = self.controller.take() {
            drop(controller.stop);
            controller.task.await.expect("the controller ends well");
            controller.writer.await.expect("the writer of events ends well");
        }
    }

    /// Ends the controller without any word, as SIGKILL does.
    pub async fn kill_controller(&mut self) {
        if let Some(controller) = self.controller.take() {
            controller.task.abort();
            controller.writer.abort();
            // Being cancelled is how both are meant to end.
            drop(controller.task.await);
            drop(controller.writer.await);
        }
    }

    /// What the controller counted, as text.
    pub fn controller_metrics(&self) -> String {
        self.controller.as_ref().map(|controller| controller.metrics.encode()).unwrap_or_default()
    }
}
