//! Taking over a cluster that another implementation of the API left behind: `takeover.json` is what it wrote. Nothing is
//! pulled again, nothing is made again, and after a few additions nothing is written.

use std::collections::BTreeMap;

use kube::api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use prewarm_api::kruise::{ImageListPullJob, ImagePullJob, NodeImage};
use prewarm_sim::{Cluster, Node};
use serde_json::{Value, json};

use crate::support::{condition, node_image, tag};

const IMAGES: [&str; 4] = ["nginx:1", "redis:7", "a:1", "by-hand:latest"];

/// Nodes, and what the other implementation wrote, before we come.
async fn left_behind() -> Cluster {
    let cluster = Cluster::new();
    for node in ["node-1", "node-2"] {
        cluster.make_node(node, json!({})).await;
    }
    let objects: Vec<Value> = serde_json::from_str(include_str!("takeover.json")).unwrap();
    let mut uids: BTreeMap<String, String> = BTreeMap::new();
    for object in objects {
        let mut text = object.to_string();
        for (place, uid) in &uids {
            text = text.replace(place, uid);
        }
        let made = store(&cluster.client, serde_json::from_str(&text).unwrap()).await;
        let place = format!("<{}/{}>", made.types.unwrap().kind, made.metadata.name.unwrap());
        uids.insert(place, made.metadata.uid.unwrap());
    }
    cluster
}

/// Makes an object, with its status.
async fn store(client: &Client, object: Value) -> DynamicObject {
    let (group, version) = object["apiVersion"].as_str().unwrap().split_once('/').unwrap_or(("", "v1"));
    let kind = object["kind"].as_str().unwrap();
    let resource = ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: object["apiVersion"].as_str().unwrap().to_owned(),
        kind: kind.to_owned(),
        plural: format!("{}s", kind.to_lowercase()),
    };
    let api: Api<DynamicObject> = match object["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let made = api.create(&PostParams::default(), &serde_json::from_value(object.clone()).unwrap()).await;
    let made = made.unwrap_or_else(|error| panic!("{error}: {object}"));
    if let Some(status) = object.get("status") {
        let name = made.metadata.name.as_deref().unwrap();
        let patch = Patch::Merge(json!({ "status": status }));
        return api.patch_status(name, &PatchParams::default(), &patch).await.unwrap();
    }
    made
}

/// Starts our agents on nodes that have the images, and our controller.
fn take_over(cluster: &mut Cluster) {
    for name in ["node-1", "node-2"] {
        let mut node = Node::new(name, &cluster.server, cluster.clock.clone());
        for image in IMAGES {
            node.runtime.image(image).present();
        }
        node.start();
        cluster.nodes.insert(name.to_owned(), node);
    }
    cluster.start_controller();
}

async fn jobs(cluster: &Cluster) -> Vec<ImagePullJob> {
    cluster.jobs().list(&ListParams::default()).await.unwrap().items
}

fn identities(jobs: &[ImagePullJob]) -> Vec<(Option<String>, Option<String>)> {
    jobs.iter().map(|job| (job.metadata.name.clone(), job.metadata.uid.clone())).collect()
}

async fn node_images(cluster: &Cluster) -> Vec<NodeImage> {
    cluster.node_images().list(&ListParams::default()).await.unwrap().items
}

#[tokio::test(start_paused = true)]
async fn nothing_is_pulled_and_nothing_is_made_again() {
    let mut cluster = left_behind().await;
    let (jobs_before, nodes_before) = (jobs(&cluster).await, node_images(&cluster).await);
    let list_before = cluster.lists().get("stack").await.unwrap();
    take_over(&mut cluster);
    cluster.pass(120).await;
    for node in cluster.nodes.values() {
        for image in IMAGES {
            assert_eq!(node.pulls(image), 0, "{image} on {}", node.name);
        }
    }
    let jobs_after = jobs(&cluster).await;
    assert_eq!(identities(&jobs_after), identities(&jobs_before));
    for (before, after) in jobs_before.iter().zip(&jobs_after) {
        assert_eq!((&after.spec, &after.metadata.labels), (&before.spec, &before.metadata.labels));
        // It stays where copies of Secrets have to go before the job does.
        let kept = before.metadata.finalizers.clone().filter(|_| before.spec.pull_secrets.is_some());
        assert_eq!(after.metadata.finalizers, kept);
    }
    for (before, after) in nodes_before.iter().zip(node_images(&cluster).await) {
        assert_eq!((&after.spec, &after.metadata.labels), (&before.spec, &before.metadata.labels));
        assert_eq!(
            (&after.metadata.uid, after.metadata.generation),
            (&before.metadata.uid, before.metadata.generation)
        );
    }
    let list_after: ImageListPullJob = cluster.lists().get("stack").await.unwrap();
    assert_eq!(
        (&list_after.spec, &list_after.metadata.labels),
        (&list_before.spec, &list_before.metadata.labels)
    );
    assert_eq!(tag(&cluster, "node-1", "nginx:1").await.unwrap().version, 3);
    assert_eq!(tag(&cluster, "node-2", "redis:7").await.unwrap().version, 7);
    let mut secrets: Vec<_> =
        crate::support::copies(&cluster).await.into_iter().filter_map(|copy| copy.metadata.name).collect();
    secrets.sort();
    assert_eq!(secrets, ["daily-x7k2p", "registry-0a1b2c"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_added_is_conditions_and_owners_and_then_nobody_writes() {
    let mut cluster = left_behind().await;
    take_over(&mut cluster);
    cluster.pass(60).await;
    let daily = cluster.status("daily").await;
    assert_eq!((daily.desired, daily.active, daily.succeeded, daily.failed), (2, 0, 2, 0));
    assert_eq!(daily.message.as_deref(), Some("job is running, progress 100.0%"));
    assert_eq!(daily.start_time.unwrap().0.to_string(), "2026-11-10T07:00:00Z");
    assert_eq!(condition(daily.conditions.as_ref(), "SecretsReady").unwrap().0, "True");
    assert_eq!(cluster.status("warm").await.conditions, None, "what is over is left as it is");
    for node in ["node-1", "node-2"] {
        let owners = node_image(&cluster, node).await.metadata.owner_references.unwrap();
        assert_eq!((owners.len(), owners[0].kind.as_str()), (1, "Node"));
    }
    let writes = |cluster: &Cluster| {
        let agents = cluster.nodes.values().map(|node| node.faults.writes());
        agents.chain([cluster.faults.writes()]).collect::<Vec<_>>()
    };
    let before = writes(&cluster);
    assert!(before[2] <= 8, "{:#?}", cluster.faults.journal());
    cluster.pass(600).await;
    assert_eq!(
        writes(&cluster),
        before,
        "{:#?}",
        cluster.faults.journal().iter().rev().take(8).collect::<Vec<_>>()
    );
}

#[tokio::test(start_paused = true)]
async fn a_list_goes_on_where_it_was() {
    let mut cluster = left_behind().await;
    let before = jobs(&cluster).await;
    take_over(&mut cluster);
    for node in cluster.nodes.values() {
        node.runtime.image("b:1");
    }
    cluster.pass(10).await;
    let patch = json!({"spec": {"parallelism": 2}});
    cluster.lists().patch("stack", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    let end = std::time::Duration::from_mins(2);
    cluster
        .within(end, "the end of the list", async || {
            let status = cluster.lists().get("stack").await.unwrap().status.unwrap();
            status.completion_time.is_some() && status.succeeded == 2
        })
        .await;
    assert_eq!(cluster.nodes["node-1"].pulls("a:1"), 0);
    assert_eq!(cluster.nodes["node-1"].pulls("b:1"), 1);
    // Another parallelism is another template, so here the children are made again, under the new hash.
    let after = jobs(&cluster).await;
    assert!(after.iter().filter(|job| job.spec.image == "b:1").all(|job| !before.contains(job)));
}

#[tokio::test(start_paused = true)]
async fn versions_go_on_and_the_daily_pull_comes_when_it_is_due() {
    let mut cluster = left_behind().await;
    take_over(&mut cluster);
    // The results are of half past nine of the day before, and it is eight.
    cluster.pass(5400 - 120).await;
    assert_eq!(tag(&cluster, "node-1", "redis:7").await.unwrap().version, 7);
    cluster.pass(300).await;
    let next = tag(&cluster, "node-1", "redis:7").await.unwrap();
    assert_eq!(next.version, 8);
    let owner = &next.owner_references.unwrap()[0];
    assert_eq!(owner.api_version.as_deref(), Some("apps.kruise.io/v1beta1"));
    let status = cluster.status("daily").await;
    assert_eq!((status.desired, status.succeeded), (2, 2));
    assert_eq!(cluster.nodes["node-1"].pulls("redis:7"), 0, "it is there");
}
