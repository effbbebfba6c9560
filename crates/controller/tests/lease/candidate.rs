//! A process that wants to lead: it acquires, holds, and ends when it loses, as the program does.

use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use prewarm_controller::lease::{Lease, Loss};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

pub struct Candidate {
    pub name: String,
    pub lease: Arc<Lease>,
    stop: Option<oneshot::Sender<()>>,
    frozen: watch::Sender<bool>,
    task: JoinHandle<Option<Loss>>,
}

impl Candidate {
    pub fn start(name: &str, lease: Lease) -> Self {
        let lease = Arc::new(lease);
        let (stop, stopped) = oneshot::channel();
        let (frozen, thawed) = watch::channel(false);
        let task = tokio::spawn(freezable(live(lease.clone(), stopped), thawed));
        Self { name: name.to_owned(), lease, stop: Some(stop), frozen, task }
    }

    /// Ends it without any word, as SIGKILL does.
    pub async fn kill(self) {
        self.task.abort();
        // Being cancelled is how it is meant to end.
        drop(self.task.await);
    }

    /// Asks it to stop, as SIGTERM does, and waits until it has. A frozen one goes on first.
    pub async fn stop(mut self) {
        self.freeze(false);
        drop(self.stop.take());
        self.task.await.unwrap();
    }

    /// Waits until it has lost.
    pub async fn lost(self) -> Loss {
        self.task.await.unwrap().expect("nobody stopped it")
    }

    pub fn has_ended(&self) -> bool {
        self.task.is_finished()
    }

    /// Does not let it do anything, as SIGSTOP does, or lets it go on.
    pub fn freeze(&self, is_frozen: bool) {
        self.frozen.send_replace(is_frozen);
    }
}

async fn live(lease: Arc<Lease>, stopped: oneshot::Receiver<()>) -> Option<Loss> {
    let lead = async {
        lease.acquire().await;
        lease.hold().await
    };
    tokio::select! {
        loss = lead => return Some(loss),
        _ = stopped => {}
    }
    lease.release().await;
    None
}

/// The future, which does nothing while it is frozen.
async fn freezable<T>(inner: impl Future<Output = T>, mut frozen: watch::Receiver<bool>) -> T {
    let mut inner = pin!(inner);
    loop {
        let is_frozen = *frozen.borrow_and_update();
        let mut changed = pin!(frozen.changed());
        let done = std::future::poll_fn(|ctx| {
            if !is_frozen && let Poll::Ready(value) = inner.as_mut().poll(ctx) {
                return Poll::Ready(Some(value));
            }
            // Nobody is left to thaw it only if the test is over.
            changed.as_mut().poll(ctx).map(|_| None)
        });
        if let Some(value) = done.await {
            return value;
        }
    }
}
