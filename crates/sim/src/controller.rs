//! The cluster's controller: started, stopped, killed.

use prewarm_controller::{Controller as Parts, Health, Metrics, lead, teller};
use prewarm_process::event::events;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::cluster::Cluster;

/// A running controller.
pub struct Controller {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
    writer: JoinHandle<()>,
    /// What it counted.
    pub metrics: Metrics,
}

impl Cluster {
    /// Starts the controller, without any Lease.
    pub fn start_controller(&mut self) {
        let client = self.faults.client(&self.server);
        let metrics = Metrics::new();
        let (events, writer) =
            events(client.clone(), teller("controller-1"), self.clock.clone(), Arc::new(metrics.clone()));
        let parts = Parts {
            config: self.config.clone(),
            client,
            clock: self.clock.clone(),
            metrics: metrics.clone(),
            events,
            health: Health::default(),
        };
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(lead(parts, async move { drop(stopped.await) }));
        self.controller = Some(Controller { stop, task, writer: tokio::spawn(writer.run()), metrics });
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
