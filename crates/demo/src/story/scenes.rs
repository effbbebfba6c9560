//! The scenes, in the order in which the whole story plays them.

use futures::future::{FutureExt as _, try_join_all};
use futures::try_join;
use prewarm_api::kruise::{FailureClass, ImageListPullJob, ImageTagStatus, PullPhase};
use serde_json::json;

use super::fault::BrokenDownload;
use super::prefetch::prefetch;
use super::stage::size;
use super::{Counts, Scene, Stage, Trouble};

const MIB: usize = 1 << 20;

/// All scenes.
pub const SCENES: &[Scene] = &[
    Scene {
        name: "everywhere",
        about: "an image on all nodes, a few at a time",
        play: |stage| everywhere(stage).boxed_local(),
    },
    Scene { name: "list", about: "several images as one job", play: |stage| list(stage).boxed_local() },
    Scene {
        name: "prefetch",
        about: "many nodes, of which one asks the registry",
        play: |stage| prefetch(stage).boxed_local(),
    },
    Scene {
        name: "join",
        about: "a node that joins is warmed at once",
        play: |stage| join(stage).boxed_local(),
    },
    Scene {
        name: "full-disk",
        about: "a node whose disk is nearly full",
        play: |stage| full_disk(stage).boxed_local(),
    },
    Scene {
        name: "wrong-tag",
        about: "an image that does not exist",
        play: |stage| wrong_tag(stage).boxed_local(),
    },
    Scene {
        name: "private",
        about: "a private image with its Secret",
        play: |stage| private(stage).boxed_local(),
    },
    Scene {
        name: "schedule",
        about: "a tag that moves is brought up to date on a schedule",
        play: |stage| schedule(stage).boxed_local(),
    },
];

/// How many nodes pull at a time.
const AT_ONCE: i32 = 4;

async fn everywhere(stage: &mut Stage<'_>) -> Result<(), Trouble> {
    const SIZE: usize = 24 * MIB;
    let (image, nodes) = (stage.publish("shop/web", "1.0", SIZE).await?, stage.nodes());
    stage.title(format!("{image} ({}) on all {nodes} nodes, {AT_ONCE} at a time", size(SIZE)));
    let fault = BrokenDownload::prepare(stage, SIZE)?;
    stage.pull("web", json!({"image": image, "parallelism": AT_ONCE})).await?;
    try_join!(stage.finished("web", nodes, 0), fault.happens(stage))?;
    fault.is_overcome(stage, &image).await?;
    stage.end("pods with this image start without a pull now");
    Ok(())
}

async fn list(stage: &mut Stage<'_>) -> Result<(), Trouble> {
    let sizes = [("base/java", 12 * MIB), ("base/proxy", 3 * MIB), ("base/logs", 6 * MIB)];
    let images =
        try_join_all(sizes.map(|(repository, size)| stage.publish(repository, "2026.11", size))).await?;
    stage.title(format!("{} images as one list, each on {} nodes at once", images.len(), stage.nodes()));
    stage.pull_list("base", json!({"images": images, "parallelism": stage.nodes()})).await?;
    let mut announced = 0;
    stage
        .wait("the list base", async || {
            let status = stage.api::<ImageListPullJob>().get("base").await?.status.unwrap_or_default();
            if status.completed != announced {
                announced = status.completed;
                stage.say(format!("base: {announced} of {} images are everywhere", status.desired));
            }
            Ok((status.succeeded == 3 && status.completion_time.is_some()).then_some(()))
        })
        .await?;
    stage.end("three images, one job");
    Ok(())
}

async fn join(stage: &mut Stage<'_>) -> Result<(), Trouble> {
    let (image, nodes) = (stage.publish("shop/cart", "1.0", 4 * MIB).await?, stage.nodes());
    stage.title(format!("{image} on all nodes, also on those that join later"));
    let forever = json!({"type": "Never"});
    stage.pull("cart", json!({"image": image, "parallelism": nodes, "completionPolicy": forever})).await?;
    stage.until("cart", |job| Counts::of(job).succeeded == nodes).await?;
    let joined = stage.cluster.add_node().await?;
    stage.say(format!("{joined} joins the cluster"));
    stage.until("cart", |job| Counts::of(job).succeeded == nodes + 1).await?;
    stage.end(format!("{joined} has the image before its first pod comes"));
    Ok(())
}

async fn full_disk(stage: &mut Stage<'_>) -> Result<(), Trouble> {
    let image = stage.publish("shop/report", "1.0", 6 * MIB).await?;
    let (name, store) = stage.chosen("full disk")?;
    stage.title(format!("{image} on {name}, whose disk is nearly full"));
    let room = store.room();
    let (used, nearly) = (room.capacity - room.free, room.capacity / 100 * 85);
    store.set_taken(nearly);
    stage.pull("report", json!({"image": image, "selector": {"names": [name]}})).await?;
    let is_reported = |phase: PullPhase, message: Option<&str>| {
        phase == PullPhase::Waiting && message.is_some_and(|message| message.contains("room"))
    };
    let status =
        stage.reported(&name, &image, |status| is_reported(status.phase, status.message.as_deref())).await?;
    stage.say(format!("{name} {}", status.message.unwrap_or_default()));
    stage.pause().await;
    stage.say("somebody frees a third of the disk");
    store.set_taken(used);
    stage.finished("report", 1, 0).await?;
    stage.end("the pull went on by itself");
    Ok(())
}

async fn wrong_tag(stage: &mut Stage<'_>) -> Result<(), Trouble> {
    let right = stage.publish("shop/search", "1.0", MIB).await?;
    let wrong = right.replace(":1.0", ":1.O");
    let nodes = stage.nodes();
    stage.title(format!("{wrong}, a tag with a typing mistake"));
    let spec = json!({"image": wrong, "parallelism": nodes, "pullPolicy": {"backoffLimit": 0}});
    stage.pull("search", spec).await?;
    stage.finished("search", 0, nodes).await?;
    let node = stage.cluster.nodes.keys().next().cloned().unwrap_or_default();
    let status = stage.reported(&node, &wrong, |status| status.phase == PullPhase::Failed).await?;
    if status.failure_class != Some(FailureClass::NotFound) {
        return Err(Trouble::new(format!("the class is {:?}, not NotFound", status.failure_class)));
    }
    stage.say(format!("{node}: {}", status.message.unwrap_or_default()));
    stage.end("the job names the nodes, the reason and what to do");
    Ok(())
}

async fn private(stage: &mut Stage<'_>) -> Result<(), Trouble> {
    let (image, nodes) = (stage.publish("bank/ledger", "3.2", 5 * MIB).await?, stage.nodes());
    stage.cluster.registry.protect("bank/ledger", "robot", "not-shown-anywhere");
    stage.title(format!("{image}, a private image, with the Secret of its team"));
    stage.secret("regcred", "robot", "not-shown-anywhere").await?;
    let spec = json!({"image": image, "parallelism": nodes, "pullSecrets": ["regcred"]});
    stage.pull("ledger", spec).await?;
    stage.finished("ledger", nodes, 0).await?;
    stage.end("pulled with the credentials of the Secret");
    Ok(())
}

async fn schedule(stage: &mut Stage<'_>) -> Result<(), Trouble> {
    let image = stage.publish("shop/prices", "today", 2 * MIB).await?;
    stage
        .title(format!("{image} on all nodes, on a schedule: every two seconds here, every night elsewhere"));
    let list = json!({"images": [image], "parallelism": stage.nodes(), "imagePullPolicy": "Always"});
    stage.schedule("prices", "@every 2s", list).await?;
    let node = stage.cluster.nodes.keys().next().cloned().unwrap_or_default();
    let run = stage.run_after("prices", None).await?;
    let first = stage.reported(&node, &image, |status| status.phase == PullPhase::Succeeded).await?;
    stage.say(format!("{run} has pulled it on {} nodes", stage.nodes()));
    stage.publish("shop/prices", "today", 3 * MIB).await?;
    stage.say("somebody pushes today's prices once more, under the same tag");
    let is_new = |status: &ImageTagStatus| {
        status.phase == PullPhase::Succeeded && status.image_id.is_some() && status.image_id != first.image_id
    };
    stage.reported(&node, &image, is_new).await?;
    let run = stage.run_after("prices", Some(&run)).await?;
    stage.say(format!("{run} has brought it up to date"));
    stage.pause_schedule("prices").await?;
    stage.end("a tag that moves reaches every node by itself");
    Ok(())
}
