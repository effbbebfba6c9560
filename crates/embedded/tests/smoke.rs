//! The shortest way through the server.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use prewarm_embedded::{Options, Server, TokioClock};
use serde_json::json;

#[tokio::test]
async fn a_config_map_is_created_patched_listed_and_deleted() {
    let server = Server::new(Arc::new(TokioClock::of_the_machine()), Options::default());
    let maps = Api::<ConfigMap>::default_namespaced(server.client());
    let map = serde_json::from_value(json!({ "metadata": { "name": "one" }, "data": { "a": "1" } })).unwrap();
    maps.create(&PostParams::default(), &map).await.unwrap();
    let patched = maps
        .patch("one", &PatchParams::default(), &Patch::Merge(json!({ "data": { "b": "2" } })))
        .await
        .unwrap();
    assert_eq!(patched.data.unwrap().len(), 2);
    assert_eq!(maps.list(&ListParams::default()).await.unwrap().items.len(), 1);
    maps.delete("one", &Default::default()).await.unwrap();
    assert!(maps.get_opt("one").await.unwrap().is_none());
}

#[tokio::test]
async fn our_definitions_are_served() {
    let server = Server::new(Arc::new(TokioClock::of_the_machine()), Options::default());
    for crd in prewarm_api::crd::all() {
        server.install(&serde_json::to_value(crd).unwrap()).unwrap();
    }
    let jobs = Api::<prewarm_api::kruise::ImagePullJob>::default_namespaced(server.client());
    let job = serde_json::from_value(json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob", "metadata": { "name": "web" },
        "spec": { "image": "nginx:1.25" },
    }))
    .unwrap();
    let stored = jobs.create(&PostParams::default(), &job).await.unwrap();
    assert_eq!(stored.spec.pull_policy.timeout_seconds, 600);
}
