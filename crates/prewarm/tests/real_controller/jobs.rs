//! ImagePullJobs as in OpenKruise's end-to-end tests (kruise T1–T7), with three times their time limits.

use std::time::{Duration, Instant};

use anyhow::ensure;
use prewarm_testkit::FaultProxy;
use prewarm_testkit::registry::Challenge;
use serde_json::json;

use crate::world::{NODES, VERSIONS, World, real_nodes};

const SECRET_TYPE: &str = "kubernetes.io/dockerconfigjson";
const PASSWORD: &str = "correct-horse";

/// A private registry in front of the real one, and the image there.
async fn private(world: &World, name: &str) -> anyhow::Result<(FaultProxy, String)> {
    world.publish(name).await?;
    let proxy = FaultProxy::start(&world.cluster.registry).await?;
    proxy.require("warmer", PASSWORD, Challenge::Basic);
    for node in &world.nodes {
        node.lead(proxy.host(), &proxy)?;
    }
    let image = format!("{}/{name}:v1", proxy.host());
    Ok((proxy, image))
}

/// kruise T1
pub async fn a_job_with_a_secret_leaves_nothing_behind() -> anyhow::Result<()> {
    let world = World::shared().await?;
    for version in VERSIONS {
        let namespace = world.cluster.server.namespace().await?;
        let (proxy, image) = private(world, &format!("t1/{version}")).await?;
        world.secret(&namespace, "login", SECRET_TYPE, proxy.host(), PASSWORD).await?;
        let spec = json!({
            "image": image, "selector": real_nodes(), "pullSecrets": ["login"], "parallelism": 4,
            "pullPolicy": {"timeoutSeconds": 50, "backoffLimit": 2},
            "completionPolicy": {"type": "Always", "activeDeadlineSeconds": 50, "ttlSecondsAfterFinished": 20},
        });
        let before = world.history().await?;
        world.create(version, "ImagePullJob", &namespace, "job", spec).await?;
        world.job_desires(3, &namespace, "job", NODES).await?;
        world.job_is(180, &namespace, "job", (NODES, NODES, true)).await?;
        ensure!(world.was_copied(&before, &namespace, "job").await?, "no copy was made for the job");
        world.job_is_gone(25, &namespace, "job").await?;
        world.entry_is_gone(25, &image).await?;
        world.copies_are_gone(10, &namespace, "login").await?;
    }
    Ok(())
}

/// kruise T2
pub async fn results_outlive_a_job_without_ttl_and_its_secret_does_not() -> anyhow::Result<()> {
    let world = World::shared().await?;
    let namespace = world.cluster.server.namespace().await?;
    let (proxy, image) = private(world, "t2/web").await?;
    world.secret(&namespace, "login", SECRET_TYPE, proxy.host(), PASSWORD).await?;
    let spec = json!({
        "image": image, "selector": real_nodes(), "pullSecrets": ["login"], "parallelism": 4,
        "pullPolicy": {"timeoutSeconds": 50, "backoffLimit": 2},
        "completionPolicy": {"type": "Always", "activeDeadlineSeconds": 50},
    });
    world.create("v1beta1", "ImagePullJob", &namespace, "job", spec).await?;
    world.job_is(180, &namespace, "job", (NODES, NODES, true)).await?;
    let finished = Instant::now();
    world.copies_are_gone(10, &namespace, "login").await?;
    while finished.elapsed() < Duration::from_secs(25) {
        ensure!(
            world.has_entry(&image).await?,
            "the entry went {:?} after the job's end",
            finished.elapsed()
        );
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    Ok(())
}

/// kruise T3
pub async fn a_changed_secret_reaches_its_copy() -> anyhow::Result<()> {
    let world = World::shared().await?;
    for version in VERSIONS {
        let namespace = world.cluster.server.namespace().await?;
        let (proxy, image) = private(world, &format!("t3/{version}")).await?;
        world.secret(&namespace, "login", SECRET_TYPE, proxy.host(), PASSWORD).await?;
        let spec = json!({
            "image": image, "selector": real_nodes(), "pullSecrets": ["login"], "parallelism": 4,
            "completionPolicy": {"type": "Never"},
        });
        world.create(version, "ImagePullJob", &namespace, "job", spec).await?;
        let before = world.is_copied(10, &namespace, "login", "job").await?;
        world.secret(&namespace, "login", SECRET_TYPE, "elsewhere.example", "another").await?;
        world
            .until(10, "the copy to follow", async || {
                let copies = world.copies(&namespace, "login").await?;
                Ok(copies.len() == 1 && copies[0].data != before.data)
            })
            .await?;
        world.is_copied(1, &namespace, "login", "job").await?;
        world.secret(&namespace, "login", SECRET_TYPE, proxy.host(), PASSWORD).await?;
        world.job_desires(3, &namespace, "job", NODES).await?;
        world.delete_job(&namespace, "job").await?;
        world.entry_is_gone(25, &image).await?;
        world.copies_are_gone(10, &namespace, "login").await?;
    }
    Ok(())
}

/// kruise T4
pub async fn a_secret_of_the_old_type_in_the_new_format_works() -> anyhow::Result<()> {
    let world = World::shared().await?;
    for version in VERSIONS {
        let namespace = world.cluster.server.namespace().await?;
        let (proxy, image) = private(world, &format!("t4/{version}")).await?;
        world.secret(&namespace, "login", "kubernetes.io/dockercfg", proxy.host(), PASSWORD).await?;
        let spec = json!({
            "image": image, "selector": real_nodes(), "pullSecrets": ["login"], "parallelism": 4,
            "pullPolicy": {"timeoutSeconds": 50, "backoffLimit": 2},
            "completionPolicy": {"type": "Always", "activeDeadlineSeconds": 50, "ttlSecondsAfterFinished": 20},
        });
        world.create(version, "ImagePullJob", &namespace, "job", spec).await?;
        world.job_is(180, &namespace, "job", (NODES, NODES, true)).await?;
        world.job_is_gone(25, &namespace, "job").await?;
        world.entry_is_gone(10, &image).await?;
    }
    Ok(())
}

/// kruise T5
pub async fn a_job_for_one_named_node_leaves_with_its_entry() -> anyhow::Result<()> {
    let world = World::shared().await?;
    for version in VERSIONS {
        let namespace = world.cluster.server.namespace().await?;
        let image = world.publish(&format!("t5/{version}")).await?;
        let spec = json!({
            "image": image, "selector": {"names": [world.nodes[1].name()]}, "completionPolicy": {"type": "Always"},
        });
        world.create(version, "ImagePullJob", &namespace, "job", spec).await?;
        world.job_desires(3, &namespace, "job", 1).await?;
        world.job_is(180, &namespace, "job", (1, 1, true)).await?;
        world.delete_job(&namespace, "job").await?;
        world.entry_is_gone(10, &image).await?;
    }
    Ok(())
}

/// kruise T6
pub async fn a_job_that_never_ends_counts_the_fake_node_too() -> anyhow::Result<()> {
    let world = World::shared().await?;
    for version in VERSIONS {
        let namespace = world.cluster.server.namespace().await?;
        let image = world.publish(&format!("t6/{version}")).await?;
        let spec = json!({"image": image, "parallelism": 4, "completionPolicy": {"type": "Never"}});
        world.create(version, "ImagePullJob", &namespace, "job", spec).await?;
        world.job_desires(3, &namespace, "job", NODES + 1).await?;
        world.job_is(120, &namespace, "job", (NODES + 1, NODES, false)).await?;
        world.delete_job(&namespace, "job").await?;
        world.entry_is_gone(10, &image).await?;
    }
    Ok(())
}

/// kruise T7
pub async fn a_second_job_for_the_same_image_succeeds_as_well() -> anyhow::Result<()> {
    let world = World::shared().await?;
    for version in VERSIONS {
        let namespace = world.cluster.server.namespace().await?;
        let image = world.publish(&format!("t7/{version}")).await?;
        let spec = json!({
            "image": image, "selector": {"names": [world.nodes[0].name()]}, "completionPolicy": {"type": "Never"},
        });
        world.create(version, "ImagePullJob", &namespace, "first", spec.clone()).await?;
        world.job_is(180, &namespace, "first", (1, 1, false)).await?;
        world.create(version, "ImagePullJob", &namespace, "second", spec).await?;
        world.job_is(60, &namespace, "second", (1, 1, false)).await?;
        world.delete_job(&namespace, "first").await?;
        world.delete_job(&namespace, "second").await?;
        world.entry_is_gone(10, &image).await?;
    }
    Ok(())
}
