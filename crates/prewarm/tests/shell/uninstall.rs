//! `prewarm uninstall`: what a dead controller left.

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use prewarm_api::kruise::ImagePullJob;
use prewarm_api::ofen::{ImagePrefetch, NodeImageSet};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Shell, World, run};

const FINALIZER: &str = "apps.kruise.io/deletion-protection";

async fn make<K: Serialize + DeserializeOwned + Clone + std::fmt::Debug>(api: &Api<K>, object: Value) {
    let object = serde_json::from_value(object).expect("an object");
    api.create(&PostParams::default(), &object).await.expect("it is made");
}

/// A job that is being deleted and has a copy, a Secret that is not a copy, and a Lease whose holder is dead.
async fn left_behind() -> World {
    let world = World::start().await;
    world.server.install_definitions();
    for namespace in ["shop", "kruise-daemon-config", "prewarm-system"] {
        world.server.install_namespace(namespace);
    }
    let client = world.server.client();
    let jobs: Api<ImagePullJob> = Api::namespaced(client.clone(), "shop");
    let spec = json!({"image": "web:1", "pullSecrets": ["registry"], "completionPolicy": {"type": "Never"}});
    let metadata = json!({"name": "web", "finalizers": ["example.com/other", FINALIZER]});
    make(&jobs, json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob", "metadata": metadata, "spec": spec})).await;
    let secrets: Api<Secret> = Api::namespaced(client.clone(), "kruise-daemon-config");
    let source = json!({"imagepulljobs.kruise.io/source-key": "shop/registry"});
    make(&secrets, json!({"metadata": {"name": "registry-0a1b2c", "annotations": source}})).await;
    make(&secrets, json!({"metadata": {"name": "own"}})).await;
    let leases: Api<Lease> = Api::namespaced(client.clone(), "prewarm-system");
    make(&leases, json!({"metadata": {"name": "prewarm-controller"}, "spec": {"holderIdentity": "dead-1"}}))
        .await;
    jobs.delete("web", &DeleteParams::default()).await.expect("it is on its way out");
    world
}

fn shell(world: &World) -> Shell {
    world.altered(|_| {})
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_dead_controller_left_is_shown_and_removed() {
    let world = left_behind().await;
    let seen = run(shell(&world), "uninstall").await;
    assert!(seen.contains("imagepulljob.apps.kruise.io/web has a finalizer (namespace shop)\n"), "{seen}");
    assert!(seen.contains("secret/registry-0a1b2c is a copy (namespace kruise-daemon-config)\n"), "{seen}");
    assert!(seen.contains("--finish") && seen.ends_with("[exit 1]\n"), "{seen}");
    let seen = run(shell(&world), "uninstall --finish").await;
    assert!(seen.contains("web finalizer removed") && seen.contains("registry-0a1b2c deleted"), "{seen}");
    let client = world.server.client();
    let jobs: Api<ImagePullJob> = Api::namespaced(client.clone(), "shop");
    let job = jobs.get("web").await.expect("the finalizer of others keeps it");
    assert_eq!(job.metadata.finalizers, Some(vec!["example.com/other".to_owned()]));
    let secrets: Api<Secret> = Api::namespaced(client, "kruise-daemon-config");
    let names = secrets.list(&ListParams::default()).await.expect("a list").items.into_iter();
    assert_eq!(names.filter_map(|secret| secret.metadata.name).collect::<Vec<_>>(), ["own"]);
    let seen = run(shell(&world), "uninstall").await;
    assert!(seen.contains("Nothing is left."), "{seen}");
}

/// An ImagePrefetch and a NodeImageSet as ofen makes them, and one of each that is Prewarm's own.
async fn left_by_ofen(world: &World) {
    world.server.install_namespace("shop");
    let prefetches: Api<ImagePrefetch> = Api::namespaced(world.server.client(), "shop");
    let sets: Api<NodeImageSet> = Api::all(world.server.client());
    let [of_prefetches, of_sets] =
        ["image-prefetch.ofen.cybozu.io/finalizer", "nodeimageset.ofen.cybozu.io/finalizer"];
    for (name, finalizers) in [("base", vec!["example.com/other", of_prefetches]), ("own", vec![])] {
        let metadata = json!({"name": name, "finalizers": finalizers});
        make(&prefetches, json!({"apiVersion": "ofen.cybozu.io/v1", "kind": "ImagePrefetch", "metadata": metadata, "spec": {"images": ["web:1"], "allNodes": true}})).await;
    }
    for (name, finalizers) in [("base-node-1", vec![of_sets]), ("own-node-1", vec![])] {
        let metadata = json!({"name": name, "finalizers": finalizers});
        let spec = json!({"nodeName": "node-1", "images": ["web:1"], "registryPolicy": "Default"});
        make(&sets, json!({"apiVersion": "ofen.cybozu.io/v1", "kind": "NodeImageSet", "metadata": metadata, "spec": spec})).await;
    }
    prefetches.delete("base", &DeleteParams::default()).await.expect("it is on its way out");
    sets.delete("base-node-1", &DeleteParams::default()).await.expect("it is on its way out");
}

#[tokio::test(flavor = "multi_thread")]
async fn finalizers_that_ofen_left_are_shown_and_removed() {
    let world = World::start().await;
    world.server.install_definitions();
    left_by_ofen(&world).await;
    let seen = run(shell(&world), "uninstall").await;
    assert!(seen.contains("imageprefetch.ofen.cybozu.io/base has a finalizer (namespace shop)\n"), "{seen}");
    assert!(seen.contains("nodeimageset.ofen.cybozu.io/base-node-1 has a finalizer\n"), "{seen}");
    assert!(!seen.contains("own") && seen.ends_with("[exit 1]\n"), "{seen}");
    let seen = run(shell(&world), "uninstall --finish").await;
    assert!(
        seen.contains("base finalizer removed") && seen.contains("base-node-1 finalizer removed"),
        "{seen}"
    );
    let prefetches: Api<ImagePrefetch> = Api::namespaced(world.server.client(), "shop");
    let prefetch = prefetches.get("base").await.expect("the finalizer of others keeps it");
    assert_eq!(prefetch.metadata.finalizers, Some(vec!["example.com/other".to_owned()]));
    let sets: Api<NodeImageSet> = Api::all(world.server.client());
    let sets = sets.list(&ListParams::default()).await.expect("a list").items.into_iter();
    assert_eq!(sets.filter_map(|set| set.metadata.name).collect::<Vec<_>>(), ["own-node-1"]);
    assert!(run(shell(&world), "uninstall").await.contains("Nothing is left."));
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_controller_leads_nothing_is_removed() {
    let world = left_behind().await;
    let leases: Api<Lease> = Api::namespaced(world.server.client(), "prewarm-system");
    let renewing = tokio::spawn(async move {
        for number in 0.. {
            let patch = Patch::Merge(json!({"spec": {"leaseTransitions": number}}));
            leases.patch("prewarm-controller", &PatchParams::default(), &patch).await.expect("a renewal");
            tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        }
    });
    let seen = run(shell(&world), "uninstall --finish").await;
    renewing.abort();
    assert!(seen.contains("the controller dead-1 leads") && seen.contains("delete deployment"), "{seen}");
    let jobs: Api<ImagePullJob> = Api::namespaced(world.server.client(), "shop");
    assert_eq!(jobs.get("web").await.expect("it is there").metadata.finalizers.map(|all| all.len()), Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_definitions_there_is_nothing_left() {
    let world = World::start().await;
    let seen = run(shell(&world), "uninstall --finish").await;
    assert!(seen.contains("Nothing is left."), "{seen}");
}
