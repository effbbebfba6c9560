//! Leader election on a real API server, which answers to deleted and recreated Leases in its own way.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use k8s_openapi::api::coordination::v1::Lease as Object;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use prewarm_clock::MachineClock;
use prewarm_controller::Metrics;
use prewarm_controller::lease::{Lease, Loss, Place, identity};
use prewarm_testkit::{ApiServer, real_tests, wait};
use serde_json::json;
use tokio::time::timeout;

real_tests! {
    a_lease_goes_from_hand_to_hand,
    a_deleted_lease_stays_with_its_leader,
}

const NAME: &str = "prewarm-controller";
/// After so long the Lease of a holder that has died may be taken; one that is free must be taken sooner. How much sooner is
/// shown in simulated time.
const EXPIRY: Duration = Duration::from_secs(15);
/// How long a test waits for what must come.
const PATIENCE: Duration = Duration::from_secs(40);

fn candidate(server: &ApiServer, namespace: &str, name: &str) -> anyhow::Result<Arc<Lease>> {
    let place = Place { namespace: namespace.to_owned(), name: NAME.to_owned() };
    let clock = Arc::new(MachineClock);
    Ok(Arc::new(Lease::new(server.client()?, place, identity(name), clock, Metrics::new())))
}

/// A namespace with a Lease that nobody holds.
async fn installed(server: &ApiServer) -> anyhow::Result<(String, Api<Object>)> {
    let namespace = server.namespace().await?;
    let api = Api::namespaced(server.client()?, &namespace);
    let object = serde_json::from_value(json!({ "metadata": { "name": NAME } }))?;
    api.create(&PostParams::default(), &object).await?;
    Ok((namespace, api))
}

async fn holder(api: &Api<Object>) -> anyhow::Result<Option<String>> {
    Ok(api.get_opt(NAME).await?.and_then(|lease| lease.spec?.holder_identity))
}

async fn a_lease_goes_from_hand_to_hand() -> anyhow::Result<()> {
    let server = ApiServer::shared().await?;
    let (namespace, api) = installed(server).await?;
    let first = candidate(server, &namespace, "first")?;
    let second = candidate(server, &namespace, "second")?;
    timeout(EXPIRY, first.acquire()).await.context("a free lease was waited for")?;
    let waiting = tokio::spawn({
        let second = second.clone();
        async move { second.acquire().await }
    });
    // Some renewals, during which the other one waits.
    ensure!(timeout(Duration::from_secs(6), first.hold()).await.is_err(), "the lease was lost");
    ensure!(first.is_leading() && !second.is_leading());
    ensure!(holder(&api).await?.is_some_and(|holder| holder.starts_with("first_")));
    first.release().await;
    timeout(EXPIRY, waiting).await.context("a released lease was waited for as if its holder had died")??;
    let spec = api.get(NAME).await?.spec.context("the lease says nothing")?;
    ensure!(spec.lease_transitions == Some(2) && spec.lease_duration_seconds == Some(15), "{spec:?}");
    Ok(())
}

async fn a_deleted_lease_stays_with_its_leader() -> anyhow::Result<()> {
    let server = ApiServer::shared().await?;
    let (namespace, api) = installed(server).await?;
    let first = candidate(server, &namespace, "first")?;
    first.acquire().await;
    let holding = tokio::spawn({
        let first = first.clone();
        async move { first.hold().await }
    });
    for _ in 0..3 {
        api.delete(NAME, &DeleteParams::default()).await?;
        let again = async || Ok(holder(&api).await?.filter(|holder| holder.starts_with("first_")));
        wait::until("the lease to be made again", again).await?;
        ensure!(first.is_leading() && !holding.is_finished());
    }
    // Somebody else takes it by force.
    let mut lease = api.get(NAME).await?;
    lease.spec.get_or_insert_default().holder_identity = Some("somebody".to_owned());
    while let Err(error) = api.replace(NAME, &PostParams::default(), &lease).await {
        ensure!(matches!(&error, kube::Error::Api(status) if status.code == 409), "{error}");
        lease.metadata = api.get(NAME).await?.metadata;
    }
    let loss = timeout(PATIENCE, holding).await.context("it leads on")??;
    ensure!(loss == Loss::Taken(Some("somebody".to_owned())), "{loss:?}");
    Ok(())
}
