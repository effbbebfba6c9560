//! Another manager of the same kinds. While OpenKruise's renews its Lease, both would write the same statuses and make the same pods, so
//! the leader says so.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::{Api, Client};
use prewarm_api::permission::{RIVAL_LEASE, RIVAL_NAMESPACE};
use tracing::{debug, info, warn};

use crate::health::Health;

/// How often the Lease is looked at. A manager renews it every few seconds, so that two looks tell whether one runs.
const INTERVAL: Duration = Duration::from_mins(1);

const RUNS: &str = "OpenKruise's manager is running, too: unless it leaves these kinds alone, both change the same objects \
                    (prewarm check says what to do)";

/// Looks for the other manager for ever.
pub async fn observe(client: Client, health: Health) {
    let api: Api<Lease> = Api::namespaced(client, RIVAL_NAMESPACE);
    let mut last: Option<LeaseSpec> = None;
    let mut is_there = false;
    loop {
        // Whoever may not read it, or has no answer, knows nothing new.
        match api.get_opt(RIVAL_LEASE).await {
            Ok(lease) => {
                let spec = lease.and_then(|lease| lease.spec);
                let runs = is_renewed(last.as_ref(), spec.as_ref());
                last = spec;
                if runs != is_there {
                    tell(runs, &health);
                    is_there = runs;
                }
            }
            Err(error) => debug!(%error, "whether OpenKruise's manager runs cannot be told"),
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Whether somebody has renewed the Lease between two looks.
fn is_renewed(before: Option<&LeaseSpec>, after: Option<&LeaseSpec>) -> bool {
    let holder = |spec: &LeaseSpec| spec.holder_identity.clone().filter(|holder| !holder.is_empty());
    let Some((before, after)) = before.zip(after) else { return false };
    holder(after).is_some() && before.renew_time != after.renew_time
}

fn tell(runs: bool, health: &Health) {
    if runs {
        warn!("{RUNS}");
    } else {
        info!("OpenKruise's manager does not run any more");
    }
    health.set_rival(runs.then(|| RUNS.to_owned()));
}
