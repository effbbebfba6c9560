//! An image that only one tenant may have: mirrors give it to whoever asks, and it is brought for nobody else all the same.

use anyhow::ensure;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::Api;
use prewarm_api::ofen::{ImagePrefetchStatus, RegistryPolicy};
use serde_json::json;

use crate::cluster::apply;
use crate::fleet::{Fleet, held, shows};
use crate::prefetch::{Prefetch, Seen};
use crate::shop::Shop;

const USER: &str = "tenant";
const PASSWORD: &str = "correct-horse-battery-staple";
const SECRET: &str = "registry";
/// How many nodes have the image for the tenant who may have it. The others want it on more.
const OWN: usize = 2;
const ALL: usize = 4;

pub async fn a_private_image_is_not_brought_for_a_tenant_without_its_secret() -> anyhow::Result<()> {
    let fleet = Fleet::shared().await?;
    let shop = Shop::guarded(fleet, "private", (USER, PASSWORD)).await?;
    let image = shop.publish("image").await?;
    let (own, all) = ("private-own", "private-all");
    fleet.label(OWN, own).await?;
    fleet.label(ALL, all).await?;
    let spec = |label: &str, secrets: &[&str]| {
        let secrets: Vec<_> = secrets.iter().map(|name| json!({"name": name})).collect();
        let selector = json!({"matchLabels": {label: "true"}});
        let mut spec = json!({"images": [image.name], "allNodes": true, "nodeSelector": selector});
        if !secrets.is_empty() {
            spec["imagePullSecrets"] = json!(secrets);
        }
        spec
    };
    for tenant in ["owner", "without", "wrong"] {
        let namespaces = Api::<Namespace>::all(fleet.cluster.server.client()?);
        apply(&namespaces, json!({"metadata": {"name": tenant}})).await?;
    }
    write(fleet, &shop, "owner", PASSWORD).await?;
    write(fleet, &shop, "wrong", "tr0ub4dor-and-3").await?;

    let mine = Prefetch::make(fleet, "owner", "mine", &spec(own, &[SECRET])).await?;
    mine.ready(OWN).await?;
    let without = Prefetch::make(fleet, "without", "theirs", &spec(all, &[])).await?;
    let wrong = Prefetch::make(fleet, "wrong", "theirs", &spec(all, &[SECRET])).await?;
    // One node after the other asks the registry, until one was asked that has the image and one that has not.
    for (prefetch, tenant) in [(&without, "without"), (&wrong, "wrong")] {
        let is_refused = |status: &ImagePrefetchStatus, seen: &Seen| {
            let failed = seen.values().filter(|(_, status)| status.error.is_some()).count();
            failed > OWN && usize::try_from(status.image_pull_failed_nodes) == Ok(failed)
        };
        let seen = prefetch.until("several nodes to be refused", is_refused).await?;
        ensure!(prefetch.status().await?.image_pulled_nodes == 0, "{tenant}: {seen:?}");
        ensure!(seen.values().all(|(policy, _)| *policy == RegistryPolicy::Default), "{tenant}: {seen:?}");
    }
    for node in &fleet.nodes[OWN..] {
        ensure!(!shows(node, &image.name).await?, "{} shows it", node.name());
        ensure!(held(node, &image.artifact)?.is_empty(), "{} has some of it", node.name());
    }

    // It was the Secret and nothing else.
    write(fleet, &shop, "wrong", PASSWORD).await?;
    wrong.ready(ALL).await?;
    ensure!(without.status().await?.image_pulled_nodes == 0);
    mine.ready(OWN).await
}

/// Writes the Secret of a tenant with this password.
async fn write(fleet: &Fleet, shop: &Shop<'_>, namespace: &str, password: &str) -> anyhow::Result<()> {
    let config = json!({"auths": {&shop.host: {"username": USER, "password": password}}}).to_string();
    let api = Api::<Secret>::namespaced(fleet.cluster.server.client()?, namespace);
    let secret = json!({
        "metadata": {"name": SECRET},
        "type": "kubernetes.io/dockerconfigjson",
        "stringData": {".dockerconfigjson": config},
    });
    apply(&api, secret).await.map(drop)
}
