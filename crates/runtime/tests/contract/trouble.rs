//! Pulls that fail.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use prewarm_api::kruise::FailureClass;
use prewarm_api::reference::ImageRef;
use prewarm_credentials::{Credential, SecretText};
use prewarm_runtime::{CallError, Runtime};

use super::{PATIENCE, SMALL, World, connect, request, request_as};

async fn failure(runtime: &Runtime, reference: &ImageRef) -> anyhow::Result<CallError> {
    let pulled = tokio::time::timeout(PATIENCE, runtime.pull(&request(reference))).await;
    let error = pulled.context("the pull hangs")?.err().context("the pull succeeded")?;
    ensure!(!error.is_runtime_away() && !error.is_interrupted(), "{error}");
    Ok(error)
}

pub async fn a_missing_image_is_not_found(world: &impl World) -> anyhow::Result<()> {
    let (runtime, offer) = (connect(world).await?, world.offer("shop/web", "v1", SMALL).await?);
    for missing in [
        ImageRef::from_parts(offer.tagged.name(), "v2")?,
        ImageRef::from_parts(offer.tagged.name(), &format!("sha256:{}", "0".repeat(64)))?,
        ImageRef::parse("registry.example/nothing/here:v1")?,
    ] {
        let error = failure(&runtime, &missing).await?;
        ensure!(error.class() == FailureClass::NotFound, "{:?}: {error}", error.class());
        ensure!(!error.is_registry_overloaded(), "{error}");
    }
    Ok(())
}

pub async fn a_registry_that_refuses_connections_is_unreachable(world: &impl World) -> anyhow::Result<()> {
    let runtime = connect(world).await?;
    let error = failure(&runtime, &world.unreachable()?).await?;
    ensure!(error.class() == FailureClass::Unreachable, "{:?}: {error}", error.class());
    ensure!(!error.is_registry_overloaded(), "{error}");
    Ok(())
}

pub async fn a_registry_that_wants_credentials_says_unauthorized(world: &impl World) -> anyhow::Result<()> {
    let runtime = connect(world).await?;
    let error = failure(&runtime, &world.locked().await?).await?;
    ensure!(error.class() == FailureClass::Unauthorized, "{:?}: {error}", error.class());
    Ok(())
}

pub async fn wrong_credentials_do_not_appear_in_the_error(world: &impl World) -> anyhow::Result<()> {
    const PASSWORD: &str = "hunter2-correct-horse";
    let (runtime, locked) = (connect(world).await?, world.locked().await?);
    let credential = Credential {
        username: "robot".into(),
        password: SecretText::new(PASSWORD.into()),
        server_address: locked.registry().into(),
        ..Credential::default()
    };
    let refused = runtime.pull(&request_as(&locked, Some(credential))).await;
    let error = refused.err().context("wrong credentials were accepted")?;
    ensure!(error.class() == FailureClass::Unauthorized, "{:?}: {error}", error.class());
    ensure!(!format!("{error} {error:?}").contains(PASSWORD), "{error:?}");
    Ok(())
}

pub async fn a_runtime_killed_during_a_pull_is_away_and_comes_back(world: &impl World) -> anyhow::Result<()> {
    let (runtime, offer) = (connect(world).await?, world.offer("shop/web", "v1", SMALL).await?);
    world.hold()?;
    let asked = request(&offer.tagged);
    let mut pull = Box::pin(runtime.pull(&asked));
    ensure!(tokio::time::timeout(Duration::from_millis(300), &mut pull).await.is_err());
    world.kill()?;
    let error = tokio::time::timeout(PATIENCE, pull).await.context("the pull hangs")?;
    let error = error.err().context("the pull succeeded")?;
    ensure!(error.is_runtime_away() && !error.is_interrupted(), "{error:?}");
    for _ in 0..2 {
        let error = runtime.image(&offer.tagged).await.err().context("nobody answered")?;
        ensure!(error.is_runtime_away() && !error.is_interrupted(), "{error:?}");
    }
    world.release()?;
    world.revive().await?;
    tokio::time::timeout(PATIENCE, runtime.pull(&asked)).await.context("the next pull hangs")??;
    ensure!(runtime.image(&offer.tagged).await?.is_some());
    Ok(())
}
