//! ImageListPullJobs as in OpenKruise's end-to-end tests (kruise T8–T11), with three times their time limits.

use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use prewarm_api::kruise::NodeImage;
use serde_json::json;

use crate::world::{FAKE, VERSIONS, World, real_nodes};

/// kruise T8
pub async fn a_list_goes_by_its_ttl_and_its_children_with_it() -> anyhow::Result<()> {
    let world = World::shared().await?;
    for version in VERSIONS {
        let namespace = world.cluster.server.namespace().await?;
        let images = [
            world.publish(&format!("t8/one-{version}")).await?,
            world.publish(&format!("t8/two-{version}")).await?,
        ];
        let spec = json!({
            "images": images, "selector": real_nodes(), "parallelism": 4, "imagePullPolicy": "Always",
            "pullPolicy": {"timeoutSeconds": 50, "backoffLimit": 2},
            "completionPolicy": {"type": "Always", "activeDeadlineSeconds": 50, "ttlSecondsAfterFinished": 20},
        });
        world.create(version, "ImageListPullJob", &namespace, "list", spec).await?;
        children(world, 3, &namespace, 2).await?;
        let lists = world.lists(&namespace)?;
        world
            .until(270, "the list to complete", async || {
                let Some(list) = lists.get_opt("list").await? else { return Ok(false) };
                let status = list.status.unwrap_or_default();
                Ok(status.completion_time.is_some() && (status.desired, status.succeeded) == (2, 2))
            })
            .await?;
        world.until(25, "the end of the list", async || Ok(lists.get_opt("list").await?.is_none())).await?;
        children(world, 10, &namespace, 0).await?;
    }
    Ok(())
}

/// kruise T9
pub async fn children_go_with_their_list() -> anyhow::Result<()> {
    let world = World::shared().await?;
    for version in VERSIONS {
        let namespace = world.cluster.server.namespace().await?;
        let images = [
            world.publish(&format!("t9/one-{version}")).await?,
            world.publish(&format!("t9/two-{version}")).await?,
        ];
        let spec = json!({
            "images": images, "selector": {"names": [world.nodes[2].name()]}, "imagePullPolicy": "IfNotPresent",
            "completionPolicy": {"type": "Always"},
        });
        world.create(version, "ImageListPullJob", &namespace, "list", spec).await?;
        let lists = world.lists(&namespace)?;
        world
            .until(360, "the list to complete", async || {
                Ok(lists.get("list").await?.status.is_some_and(|status| status.completion_time.is_some()))
            })
            .await?;
        lists.delete("list", &DeleteParams::background()).await?;
        children(world, 60, &namespace, 0).await?;
    }
    Ok(())
}

/// kruise T10
pub async fn a_list_with_a_failed_image_completes() -> anyhow::Result<()> {
    fails_on_the_fake_node("t10", "Always", true).await
}

/// kruise T11
pub async fn a_list_that_never_ends_tells_of_its_failed_image() -> anyhow::Result<()> {
    fails_on_the_fake_node("t11", "Never", false).await
}

async fn fails_on_the_fake_node(label: &str, completion: &str, completes: bool) -> anyhow::Result<()> {
    let world = World::shared().await?;
    for version in VERSIONS {
        let namespace = world.cluster.server.namespace().await?;
        let name = format!("{label}/{version}");
        let image = world.publish(&name).await?;
        let spec = json!({
            "images": [image], "parallelism": 4, "imagePullPolicy": "Always", "completionPolicy": {"type": completion},
        });
        world.create(version, "ImageListPullJob", &namespace, "list", spec).await?;
        fail_fake(world, &format!("registry.example/{name}")).await?;
        let lists = world.lists(&namespace)?;
        world
            .until(180, "one completed image that failed somewhere", async || {
                let status = lists.get("list").await?.status.unwrap_or_default();
                let failed = status.failed_image_statuses.unwrap_or_default().len();
                Ok((status.completed, failed, status.completion_time.is_some()) == (1, 1, completes))
            })
            .await?;
        lists.delete("list", &DeleteParams::background()).await?;
        world.entry_is_gone(60, &image).await?;
    }
    Ok(())
}

/// Writes a failed status for the node that does not exist.
async fn fail_fake(world: &World, image: &str) -> anyhow::Result<()> {
    let api = Api::<NodeImage>::all(world.client()?);
    let asked = async || {
        let object = api.get(FAKE).await?;
        let tag = object.spec.images.get(image).and_then(|image| image.tags.first());
        anyhow::Ok(tag.map(|tag| tag.version))
    };
    world.until(30, "the fake node to be asked", async || Ok(asked().await?.is_some())).await?;
    let version = asked().await?;
    // An old result would have expired, and the node would be asked again.
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let status = json!({"status": {"desired": 1, "failed": 1, "imageStatuses": {image: {"tags": [
        {"tag": "v1", "phase": "Failed", "version": version, "completionTime": now},
    ]}}}});
    api.patch_status(FAKE, &PatchParams::default(), &Patch::Merge(status)).await?;
    Ok(())
}

async fn children(world: &World, seconds: u32, namespace: &str, count: usize) -> anyhow::Result<()> {
    let jobs = world.jobs(namespace)?;
    world
        .until(seconds, &format!("{count} children"), async || {
            Ok(jobs.list(&ListParams::default()).await?.items.len() == count)
        })
        .await
}
