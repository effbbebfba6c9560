//! The scene with an ImagePrefetch: one node asks the registry, and the others get the image from nodes that have it.

use prewarm_api::names::condition::READY;
use prewarm_api::ofen::{ImagePrefetch, NodeImageSet};
use prewarm_plan::amount;
use serde_json::json;

use super::stage::{Stage, size};
use super::{Counts, Trouble};

const MIB: usize = 1 << 20;
const SIZE: usize = 10 * MIB;
/// How many nodes get the image, if there are so many.
const REPLICAS: i32 = 8;

pub async fn prefetch(stage: &mut Stage<'_>) -> Result<(), Trouble> {
    let (image, nodes) = (stage.publish("ml/model", "7.1", SIZE).await?, stage.nodes().min(REPLICAS));
    let mirrored = stage.cluster.mirrors.sent();
    stage.title(format!("{image} ({}) on {nodes} nodes, from the registry only once", size(SIZE)));
    stage.prefetch("model", json!({"images": [image], "replicas": nodes})).await?;
    ready(stage, "model", nodes).await?;
    let asked = stage.cluster.registry.traffic("ml/model");
    let mirrored = stage.cluster.mirrors.sent() - mirrored;
    // A percent is more than the manifest is large.
    if asked.clients.len() != 1 || asked.sent > SIZE as u64 / 100 * 101 {
        return Err(Trouble::new(format!("the registry was asked for more than one node: {asked:?}")));
    }
    let asking = asked.clients.into_iter().next().unwrap_or_default();
    let (sent, mirrored) = (amount::show(asked.sent), amount::show(mirrored));
    stage.say(format!(
        "only {asking} asked the registry, which sent {sent}; the mirrors of the nodes sent {mirrored}"
    ));
    stage.delete_prefetch("model").await?;
    stage.end(format!("{nodes} nodes have it, and the registry did the work for one"));
    Ok(())
}

/// Waits until all nodes have the images, and reports each wave.
async fn ready(stage: &Stage<'_>, name: &str, nodes: i32) -> Result<(), Trouble> {
    let mut reported = Counts::default();
    stage
        .wait(&format!("the ImagePrefetch {name}"), async || {
            let sets = stage.sets_of(name).await?;
            let counts = Counts { desired: nodes, ..counts(&sets) };
            if counts != reported && counts.active + counts.succeeded > 0 {
                stage.say(format!("{name}: {counts}"));
                reported = counts;
            }
            let prefetch = stage.api::<ImagePrefetch>().get(name).await?;
            Ok((counts.succeeded == nodes && is_ready(&prefetch)).then_some(()))
        })
        .await
}

fn counts(sets: &[NodeImageSet]) -> Counts {
    let mut counts = Counts::default();
    for set in sets {
        let status = set.status.clone().unwrap_or_default();
        let has_all = status.desired_images > 0 && status.available_images == status.desired_images;
        if has_all { counts.succeeded += 1 } else { counts.active += 1 }
    }
    counts
}

fn is_ready(prefetch: &ImagePrefetch) -> bool {
    let conditions = prefetch.status.iter().flat_map(|status| status.conditions.iter().flatten());
    { conditions }.any(|condition| condition.type_ == READY && condition.status == "True")
}
