//! A task that runs beside the story, as a process of a real cluster does.

use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A running process. Dropping it kills it.
pub struct Process {
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Process {
    /// Starts a process. Its future gets another one that ends when the process has to stop.
    pub fn spawn<L, F, T>(life: L) -> Self
    where
        L: FnOnce(Stopped) -> F,
        F: Future<Output = T> + Send + 'static,
    {
        let (stop, stopped) = oneshot::channel();
        let life = life(Box::pin(async move { drop(stopped.await) }));
        Self { stop: Some(stop), task: tokio::spawn(async move { drop(life.await) }) }
    }

    /// Asks the process to stop, as SIGTERM does, and waits until it has.
    pub async fn stop(mut self) {
        drop(self.stop.take());
        // It was cancelled or has panicked; either way it is gone.
        let _ended = (&mut self.task).await;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Ends when a process has to stop.
pub type Stopped = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;
