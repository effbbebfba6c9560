//! A controller's whole life: it waits for the Lease, leads while it holds it, and gives it back.

use std::pin::pin;
use std::sync::Arc;

use prewarm_process::client::limited;
use prewarm_process::watch::Crowd;
use tokio::task::JoinSet;

use crate::lead::{Controller, lead};
use crate::lease::{Lease, Loss, Term};
use crate::rival;

/// Runs until `stop` ends, and leads whenever the Lease says so; without a Lease, from the start.
///
/// After a loss the process has to end: some of its writes may still be under way, and another leads soon.
pub async fn run(
    controller: Controller,
    lease: Option<Lease>,
    stop: impl Future<Output = ()>,
) -> Result<(), Loss> {
    let Some(lease) = lease else {
        controller.metrics.leads(true);
        controller.health.leads();
        lead(controller, Term::endless(), stop).await;
        return Ok(());
    };
    let lease = Arc::new(lease);
    let mut stop = pin!(stop);
    tokio::select! {
        () = &mut stop => {}
        () = lease.acquire() => {
            controller.health.leads();
            let mut renewal = renew(lease.clone());
            let mut lookout = JoinSet::new();
            let client = limited(controller.client.clone(), Crowd::Few);
            lookout.spawn(rival::observe(client, controller.health.clone()));
            tokio::select! {
                // A process that was frozen hears first that it leads no more.
                biased;
                loss = lost(&mut renewal) => return Err(loss),
                () = lead(controller, lease.term(), &mut stop) => {}
            }
            // Up to here it was renewed, while a stopping controller ended what was under way.
            renewal.shutdown().await;
        }
    }
    lease.release().await;
    Ok(())
}

/// Renews the Lease in a task of its own, which ends with whoever holds this: a loop with much to do does not come round for a
/// while, and must not lose the Lease for that.
fn renew(lease: Arc<Lease>) -> JoinSet<Loss> {
    let mut renewal = JoinSet::new();
    renewal.spawn(async move { lease.hold().await });
    renewal
}

async fn lost(renewal: &mut JoinSet<Loss>) -> Loss {
    // A renewal that has broken down renews no more.
    renewal.join_next().await.and_then(Result::ok).unwrap_or(Loss::Expired)
}
