//! Fields of a newer version, with its definitions installed: controller and agents of this one cannot read them, and leave them
//! where they are while they work on the objects.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, Resource};
use prewarm_api::kruise::{ImagePullJob, NodeImage};
use prewarm_sim::Cluster;
use serde_json::{Value, json};

use crate::support::cluster;

const IMAGES: [&str; 2] = ["nginx:1", "nginx:2"];

/// Where a NodeImage's schema gets the field, and where it is in an object, of the spec and of the status.
const IN_SPEC: [(&str, &str); 4] = [
    ("/spec/properties/images/additionalProperties", "/spec/images/nginx"),
    ("/spec/properties/images/additionalProperties/properties/tags/items", "/spec/images/nginx/tags/0"),
    (
        "/spec/properties/images/additionalProperties/properties/tags/items/properties/pullPolicy",
        "/spec/images/nginx/tags/0/pullPolicy",
    ),
    (
        "/spec/properties/images/additionalProperties/properties/tags/items/properties/ownerReferences/items",
        "/spec/images/nginx/tags/0/ownerReferences/0",
    ),
];
const IN_STATUS: [(&str, &str); 2] = [
    ("/status", "/status"),
    (
        "/status/properties/imageStatuses/additionalProperties/properties/tags/items",
        "/status/imageStatuses/nginx/tags/0",
    ),
];
/// The same of a job.
const IN_JOB: [(&str, &str); 2] =
    [("/status", "/status"), ("/status/properties/conditions/items", "/status/conditions/0")];

/// Applies the definition of a newer version, whose schemas have one field more in these places.
async fn renew_definition(cluster: &Cluster, name: &str, places: &[(&str, &str)]) {
    let api: Api<CustomResourceDefinition> = Api::all(cluster.client.clone());
    let mut definition = json!(api.get(name).await.unwrap());
    for version in definition["spec"]["versions"].as_array_mut().unwrap() {
        for (place, _) in places {
            let path = format!("/schema/openAPIV3Schema/properties{place}/properties");
            version.pointer_mut(&path).unwrap_or_else(|| panic!("no {path}"))["newer"] =
                json!({"type": "string"});
        }
    }
    let definition = serde_json::from_value(definition).unwrap();
    api.replace(name, &PostParams::default(), &definition).await.unwrap();
}

fn untyped<K: Resource<DynamicType = ()>>(cluster: &Cluster) -> Api<DynamicObject> {
    let resource = ApiResource::erase::<K>(&());
    if K::plural(&()) == "nodeimages" {
        Api::all_with(cluster.client.clone(), &resource)
    } else {
        Api::default_namespaced_with(cluster.client.clone(), &resource)
    }
}

/// A newer program sets its field in these places of an object.
async fn set(api: &Api<DynamicObject>, name: &str, places: &[(&str, &str)]) {
    let operation =
        |(_, place): &(&str, &str)| json!({"op": "add", "path": format!("{place}/newer"), "value": "kept"});
    let operations: Vec<Value> = places.iter().map(operation).collect();
    let patch = Patch::Json::<()>(serde_json::from_value(json!(operations)).unwrap());
    if places[0].1.starts_with("/status") {
        api.patch_status(name, &PatchParams::default(), &patch).await.unwrap();
    } else {
        api.patch(name, &PatchParams::default(), &patch).await.unwrap();
    }
}

async fn assert_kept(api: &Api<DynamicObject>, name: &str, places: &[(&str, &str)]) {
    let object = json!(api.get(name).await.unwrap());
    for (_, place) in places {
        let value = object.pointer(&format!("{place}/newer"));
        assert_eq!(value, Some(&json!("kept")), "{place} of {name}: {object:#}");
    }
}

#[tokio::test(start_paused = true)]
async fn fields_of_a_newer_version_stay_while_entries_and_statuses_around_them_are_written() {
    let mut cluster = cluster(1, &IMAGES).await;
    let of_node = [&IN_SPEC[..], &IN_STATUS[..]].concat();
    renew_definition(&cluster, "nodeimages.apps.kruise.io", &of_node).await;
    renew_definition(&cluster, "imagepulljobs.apps.kruise.io", &IN_JOB).await;
    let (nodes, jobs) = (untyped::<NodeImage>(&cluster), untyped::<ImagePullJob>(&cluster));
    let job = |image: &str| json!({"image": image, "completionPolicy": {"type": "Never"}});
    let has = |count: i32| {
        move |job: &ImagePullJob| job.status.as_ref().is_some_and(|status| status.succeeded == count)
    };
    cluster.pull("first", job("nginx:1")).await;
    cluster.job_within(60, "first", has(1)).await;
    set(&nodes, "node-1", &IN_SPEC).await;
    set(&nodes, "node-1", &IN_STATUS).await;
    set(&jobs, "first", &IN_JOB).await;
    // The tag gets another owner, the entry another tag, the status a further pull, and the first job a further node.
    cluster.pull("second", job("nginx:1")).await;
    cluster.pull("third", job("nginx:2")).await;
    cluster.job_within(60, "second", has(1)).await;
    cluster.job_within(60, "third", has(1)).await;
    cluster.add_node("node-2", json!({})).await;
    cluster.job_within(120, "first", has(2)).await;
    assert_kept(&nodes, "node-1", &IN_SPEC).await;
    assert_kept(&nodes, "node-1", &IN_STATUS).await;
    assert_kept(&jobs, "first", &IN_JOB).await;
}
