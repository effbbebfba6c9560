//! A controller's whole life: it waits for the Lease, leads while it holds it, and gives it back.

use std::pin::pin;

use crate::lease::{Lease, Loss, Term};
use crate::run::{Controller, lead};

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
    let mut stop = pin!(stop);
    tokio::select! {
        () = &mut stop => {}
        () = lease.acquire() => {
            controller.health.leads();
            tokio::select! {
                // A process that was frozen hears first that it leads no more.
                biased;
                // It is held on to while a stopping controller ends what is under way.
                loss = lease.hold() => return Err(loss),
                () = lead(controller, lease.term(), &mut stop) => {}
            }
        }
    }
    lease.release().await;
    Ok(())
}
