//! Finds out whether a controller leads: the holder of a Lease keeps changing it.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use prewarm_plan::lease::RETRY;

use super::{Cluster, Request, sentence};

/// The holder of a Lease renews it within this time.
const RENEWED_WITHIN: Duration = Duration::from_secs(2 * RETRY.as_secs());

/// A Lease that was read twice.
#[derive(Clone, Debug, Default)]
pub struct SeenLease {
    /// The second reading, if the Lease exists.
    pub now: Option<Lease>,
    /// Whether it changed between the two readings.
    pub has_changed: bool,
}

impl SeenLease {
    /// The holder; empty if there is none.
    pub fn holder(&self) -> &str {
        self.now.as_ref().and_then(holder).unwrap_or_default()
    }
}

/// Reads Leases, each by namespace and name, twice. All are read together, so that there is one pause, and none if
/// no Lease is held.
pub async fn look_twice<const N: usize>(
    cluster: &Cluster,
    places: [(&str, &str); N],
) -> [Result<SeenLease, String>; N] {
    let before = look(cluster, places).await;
    let is_held =
        |lease: &Result<Option<Lease>, String>| matches!(lease, Ok(Some(lease)) if holder(lease).is_some());
    if before.iter().any(is_held) {
        tokio::time::sleep(RENEWED_WITHIN).await;
    }
    let mut before = before.into_iter();
    look(cluster, places).await.map(|now| {
        let (before, now) = (before.next().transpose()?.flatten(), now?);
        let version = |lease: &Option<Lease>| lease.as_ref().and_then(kube::ResourceExt::resource_version);
        let has_changed = before.is_some() && now.is_some() && version(&before) != version(&now);
        Ok(SeenLease { now, has_changed })
    })
}

async fn look<const N: usize>(
    cluster: &Cluster,
    places: [(&str, &str); N],
) -> [Result<Option<Lease>, String>; N] {
    let mut leases = places.map(|_| Ok(None));
    for (lease, (namespace, name)) in leases.iter_mut().zip(places) {
        let api: Api<Lease> = cluster.api(Some(namespace));
        let request = Request::of::<Lease>("get", Some(namespace));
        *lease = api.get_opt(name).await.map_err(|error| sentence(&error, &request, &cluster.name));
    }
    leases
}

fn holder(lease: &Lease) -> Option<&str> {
    lease.spec.as_ref()?.holder_identity.as_deref().filter(|holder| !holder.is_empty())
}
