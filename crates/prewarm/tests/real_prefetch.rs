//! ImagePrefetches on eight nodes with containerd, each with a mirror of its own that serves what its node has and asks the mirrors of
//! the others; registries whose requests are counted; the controller and agents as they are deployed.

#[path = "real_agent/cluster.rs"]
#[expect(dead_code, reason = "shared with the tests of the agent, which need more of it")]
mod cluster;
#[path = "real_agent/desk.rs"]
#[expect(dead_code, reason = "shared with the tests of the agent, which need more of it")]
mod desk;
#[path = "real_prefetch/fleet.rs"]
mod fleet;
#[path = "real_prefetch/prefetch.rs"]
mod prefetch;
#[path = "real_agent/program.rs"]
#[expect(dead_code, reason = "shared with the tests of the agent, which need more of it")]
mod program;
#[path = "real_prefetch/shop.rs"]
mod shop;
#[path = "real_prefetch/spoiled.rs"]
mod spoiled;
#[path = "real_prefetch/tenants.rs"]
mod tenants;

use std::collections::BTreeSet;

use anyhow::ensure;
use fleet::{Fleet, NODES, shows};
use prefetch::Prefetch;
use prewarm_testkit::registry::fault::{Fault, On};
use prewarm_testkit::{Registry, real_tests};
use serde_json::json;
use shop::Shop;
use spoiled::bad_mirrors_are_named_and_nothing_wrong_enters_a_store;
use tenants::a_private_image_is_not_brought_for_a_tenant_without_its_secret;

real_tests! {
    eight_nodes_have_an_image_that_the_registry_sent_once,
    a_registry_that_is_gone_after_the_first_node_holds_up_none_of_seven_others,
    a_mirror_that_pulls_through_serves_eight_nodes_and_asks_once,
    a_tag_that_moved_meanwhile_is_the_same_image_on_all_nodes,
    bad_mirrors_are_named_and_nothing_wrong_enters_a_store,
    a_private_image_is_not_brought_for_a_tenant_without_its_secret,
}

/// The registry sees one node, and sends each blob once.
async fn eight_nodes_have_an_image_that_the_registry_sent_once() -> anyhow::Result<()> {
    let fleet = Fleet::shared().await?;
    let shop = Shop::open(fleet, "once").await?;
    let image = shop.publish("image").await?;
    let spec = json!({"images": [image.name], "allNodes": true});
    let prefetch = Prefetch::make(fleet, "default", "once", &spec).await?;
    prefetch.ready(NODES).await?;
    shop.was_asked_once(&image)?;
    shop.is_everywhere(&image).await?;
    let seen = prefetch.seen().await?;
    ensure!(seen.len() == NODES && prefetch.seeds().await? == 1, "{seen:?}");
    // As a person would see it.
    let server = &fleet.cluster.server;
    server.kubectl(["wait", "--for=condition=Ready", "--timeout=60s", "imageprefetch/once"]).await?;
    let table = server.kubectl(["get", "imageprefetch", "once", "--no-headers"]).await?;
    let counts = format!("{NODES}");
    ensure!(table.split_whitespace().filter(|word| *word == counts).count() >= 2, "{table}");
    // The object goes, and the images stay.
    prefetch.delete(&shop.name()).await?;
    for node in &fleet.nodes {
        ensure!(shows(node, &image.name).await?, "the image left {}", node.name());
    }
    Ok(())
}

async fn a_registry_that_is_gone_after_the_first_node_holds_up_none_of_seven_others() -> anyhow::Result<()> {
    let fleet = Fleet::shared().await?;
    let shop = Shop::open(fleet, "cut").await?;
    let image = shop.publish("image").await?;
    let spec = json!({"images": [image.name], "replicas": NODES});
    let prefetch = Prefetch::make(fleet, "default", "cut", &spec).await?;
    prefetch.until("the first node", |status, _| status.image_pulled_nodes >= 1).await?;
    shop.upstream.fail(On::Anything, Fault::Reset);
    shop.upstream.forget();
    prefetch.ready(NODES).await?;
    shop.is_everywhere(&image).await?;
    ensure!(shop.upstream.requests().is_empty(), "{:?}", shop.upstream.requests());
    Ok(())
}

/// The nodes have no mirrors of their own here, only one that all share.
async fn a_mirror_that_pulls_through_serves_eight_nodes_and_asks_once() -> anyhow::Result<()> {
    let fleet = Fleet::shared().await?;
    let shop = Shop::open(fleet, "through").await?;
    let image = shop.publish("image").await?;
    let cache = Registry::pull_through(&shop.upstream).await?;
    for node in &fleet.nodes {
        shop.mirror(node, &cache)?;
    }
    let spec = json!({"images": [image.name], "allNodes": true});
    let prefetch = Prefetch::make(fleet, "default", "through", &spec).await?;
    prefetch.ready(NODES).await?;
    shop.was_asked_once(&image)?;
    shop.is_everywhere(&image).await?;
    ensure!(prefetch.seeds().await? == 1);
    Ok(())
}

/// What the first node was given is what all have, although the tag stands for something else by then.
async fn a_tag_that_moved_meanwhile_is_the_same_image_on_all_nodes() -> anyhow::Result<()> {
    const FEW: usize = 3;
    let fleet = Fleet::shared().await?;
    let shop = Shop::open(fleet, "moved").await?;
    let first = shop.publish("first").await?;
    let spec = json!({"images": [first.name], "replicas": 1});
    let prefetch = Prefetch::make(fleet, "default", "moved", &spec).await?;
    prefetch.ready(1).await?;
    shop.publish("second").await?;
    ensure!(digests(fleet, &shop).await? == [first.artifact.digest().to_owned()].into());
    // A new generation asks anew, and everybody has what it was answered.
    prefetch.change(&json!({"replicas": FEW})).await?;
    prefetch.ready(FEW).await?;
    let digests = digests(fleet, &shop).await?;
    ensure!(digests.len() == 1, "{digests:?}");
    Ok(())
}

/// The digests for which the tag of a shop's image stands on the nodes.
async fn digests(fleet: &Fleet, shop: &Shop<'_>) -> anyhow::Result<BTreeSet<String>> {
    let mut digests = BTreeSet::new();
    for object in fleet.node_images().await? {
        let status =
            object.status.and_then(|mut status| status.image_statuses.as_mut()?.remove(&shop.name()));
        digests.extend(status.into_iter().flat_map(|image| image.tags).filter_map(|tag| tag.digest));
    }
    Ok(digests)
}
