//! The cluster's controller: started, stopped, killed.

use std::sync::Arc;

use prewarm_controller::{Controller as Parts, Health, Metrics, lead, teller};
use prewarm_embedded::faults::Faults;
use prewarm_process::event::{Writer, events};
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
        let (parts, writer) = self.parts(&self.faults);
        let metrics = parts.metrics.clone();
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(lead(parts, async move { drop(stopped.await) }));
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
        let task = tokio::spawn(async move {
            tokio::select! {
                () = faults.halted() => {}
                () = lead(first, std::future::pending()) => {}
                () = first_writer.run() => {}
            }
            tokio::join!(lead(second, async move { drop(stopped.await) }), second_writer.run());
        });
        self.controller = Some(Controller { stop, task, writer: tokio::spawn(async {}), metrics });
    }

    fn parts(&self, faults: &Faults) -> (Parts, Writer) {
        let (client, metrics) = (faults.client(&self.server), Metrics::new());
        let (events, writer) =
            events(client.clone(), teller("controller-1"), self.clock.clone(), Arc::new(metrics.clone()));
        let (config, clock, health) = (self.config.clone(), self.clock.clone(), Health::default());
        (Parts { config, client, clock, metrics, events, health }, writer)
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
