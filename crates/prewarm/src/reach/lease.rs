//! Whether somebody leads: a Lease whose holder is alive changes while one looks.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use prewarm_plan::lease::RETRY;

use super::{Cluster, Request, sentence};

/// Whoever holds a Lease renews it within this time.
const RENEWED_WITHIN: Duration = Duration::from_secs(2 * RETRY.as_secs());

/// A Lease that was looked at twice.
#[derive(Clone, Debug, Default)]
pub struct SeenLease {
    /// What it is, if it is there.
    pub now: Option<Lease>,
    /// Whether it has changed between the two looks.
    pub has_changed: bool,
}

impl SeenLease {
    /// Who holds it; empty if nobody does.
    pub fn holder(&self) -> &str {
        self.now.as_ref().and_then(holder).unwrap_or_default()
    }
}

/// Looks at Leases, each by its namespace and name, twice. All of them at once, so that there is one pause; without any holder
/// there is none.
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
