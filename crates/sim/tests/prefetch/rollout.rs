//! How images come to nodes (ofen C1–C4, C6–C9, C14, C15).

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::api::ListParams;
use prewarm_api::ofen::RegistryPolicy;
use prewarm_sim::Cluster;
use serde_json::json;

use crate::support::*;

/// ofen C1
#[tokio::test(start_paused = true)]
async fn one_replica_has_one_set_with_the_images_and_secrets_that_asks_the_registry() {
    let cluster = cluster().await;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}, "type": "kubernetes.io/dockerconfigjson",
        "stringData": {".dockerconfigjson": r#"{"auths":{"docker.io":{"username":"u","password":"p"}}}"#},
    });
    let _: Secret = cluster.create(secret).await;
    make(&cluster, json!({"replicas": 1, "imagePullSecrets": [{"name": "key"}]})).await;
    ready_within(&cluster, 30, 1).await;
    let set = node_image_sets(&cluster).list(&ListParams::default()).await.unwrap().items.remove(0);
    assert_eq!(set.spec.images, [IMAGE]);
    assert_eq!(set.spec.registry_policy, RegistryPolicy::Default);
    assert_eq!(set.spec.image_pull_secrets.unwrap()[0].name, "key");
    assert_eq!(set.spec.image_prefetch_generation, Some(1));
    assert!(cluster.nodes[&set.spec.node_name].runtime.has(IMAGE));
    assert_eq!(cluster.nodes.values().filter(|node| node.runtime.has(IMAGE)).count(), 1);
}

/// ofen C2
#[tokio::test(start_paused = true)]
async fn two_replicas_of_a_rack_ask_the_registry_once_and_a_mirror_once() {
    let cluster = cluster().await;
    let rack = json!({"matchLabels": {"topology.kubernetes.io/zone": "rack0"}});
    make(&cluster, json!({"replicas": 2, "nodeSelector": rack})).await;
    ready_within(&cluster, 30, 2).await;
    assert_eq!(policies(&cluster).await, (1, 1));
    let in_rack = |node: &String| ["node-0", "node-1", "node-2", "node-3"].contains(&&**node);
    assert!(sets(&cluster).await.keys().all(in_rack));
}

/// ofen C3, C4
#[tokio::test(start_paused = true)]
async fn all_nodes_are_those_that_the_selector_matches() {
    let cluster = cluster().await;
    let rack = json!({"matchExpressions": [
        {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["rack1"]},
    ]});
    make(&cluster, json!({"allNodes": true, "nodeSelector": rack})).await;
    ready_within(&cluster, 30, 3).await;
    assert_eq!(sets(&cluster).await.len(), 3);
    edit(&cluster, json!({ "nodeSelector": null })).await;
    ready_within(&cluster, 30, 7).await;
    assert_eq!(policies(&cluster).await, (1, 6));
    assert!(cluster.nodes.values().all(|node| node.runtime.has(IMAGE)));
}

/// ofen C6, C7, W14: it is ready when all are, and nothing is written after that.
#[tokio::test(start_paused = true)]
async fn chosen_nodes_are_those_of_the_sets_and_in_both_racks_and_then_nothing_is_written() {
    let cluster = cluster().await;
    make(&cluster, json!({"replicas": 4})).await;
    ready_within(&cluster, 30, 4).await;
    let chosen = status(&cluster).await.selected_nodes.unwrap();
    assert_eq!(chosen, sets(&cluster).await.into_keys().collect::<Vec<_>>());
    let in_rack1 = chosen.iter().filter(|node| ["node-4", "node-5", "node-6"].contains(&&***node)).count();
    assert_eq!(in_rack1, 2);
    cluster.pass(5).await;
    let writes = cluster.faults.writes();
    cluster.pass(600).await;
    assert_eq!(cluster.faults.writes(), writes, "{:#?}", cluster.faults.journal());
}

/// ofen C8
#[tokio::test(start_paused = true)]
async fn conditions_follow_a_node_that_fails_and_then_succeeds() {
    let cluster = silent_cluster().await;
    make(&cluster, json!({"replicas": 1})).await;
    cluster.pass(2).await;
    let is = |status: &str, reason: &str| (status.to_owned(), reason.to_owned());
    assert_eq!(condition(&cluster, "Ready").await, is("False", "ImagePrefetchProgressing"));
    assert_eq!(condition(&cluster, "NoImagePullFailed").await, is("True", "NoImagePullFailed"));
    assert_eq!(condition(&cluster, "NodeImageSetsCreated").await, is("True", "NodeImageSetsCreated"));
    let node = sets(&cluster).await.into_keys().next().unwrap();
    let trouble = json!({"failureClass": "Unreachable", "message": "the registry does not answer"});
    report(&cluster, &node, IMAGE, "Waiting", trouble).await;
    cluster.pass(2).await;
    assert_eq!(condition(&cluster, "Ready").await, is("False", "ImagePrefetchProgressing"));
    assert_eq!(condition(&cluster, "NoImagePullFailed").await, is("False", "ImagePrefetchFailed"));
    assert_eq!(states(&cluster, &node).await, ["ImageDownloadFailed"]);
    report(&cluster, &node, IMAGE, "Succeeded", json!({})).await;
    cluster.pass(2).await;
    assert_eq!(condition(&cluster, "Ready").await, is("True", "ImagePrefetchReady"));
    assert_eq!(condition(&cluster, "NoImagePullFailed").await, is("True", "NoImagePullFailed"));
    assert_eq!(condition(&cluster, "NodeImageSetsCreated").await, is("True", "NodeImageSetsCreated"));
}

/// ofen C9
#[tokio::test(start_paused = true)]
async fn replicas_grow_and_shrink() {
    let cluster = cluster().await;
    make(&cluster, json!({"replicas": 1})).await;
    ready_within(&cluster, 30, 1).await;
    let first = sets(&cluster).await.into_keys().next().unwrap();
    edit(&cluster, json!({"replicas": 4})).await;
    ready_within(&cluster, 30, 4).await;
    cluster.pass(2).await;
    assert_eq!(policies(&cluster).await, (1, 3));
    assert_eq!(sets(&cluster).await[&first], RegistryPolicy::Default);
    edit(&cluster, json!({"replicas": 2})).await;
    ready_within(&cluster, 30, 2).await;
    cluster.pass(2).await;
    assert_eq!(policies(&cluster).await, (1, 1));
}

/// ofen C14, with waves that grow (ofen W1).
#[tokio::test(start_paused = true)]
async fn sets_appear_in_waves_that_double() {
    let cluster = silent_cluster().await;
    make(&cluster, json!({"allNodes": true})).await;
    for (set_count, next) in [(1, 1), (2, 1), (4, 2), (7, 3)] {
        cluster.pass(2).await;
        assert_eq!(sets(&cluster).await.len(), set_count);
        let open = unanswered(&cluster, IMAGE).await;
        assert_eq!(open.len(), next, "{open:?}");
        for node in open {
            report(&cluster, &node, IMAGE, "Succeeded", json!({})).await;
        }
    }
    ready_within(&cluster, 5, 7).await;
}

/// ofen C15, and the change of a tag (ofen W3).
#[tokio::test(start_paused = true)]
async fn an_image_that_is_added_or_changed_comes_in_waves() {
    let cluster = silent_cluster().await;
    make(&cluster, json!({"replicas": 3})).await;
    for _ in 0..3 {
        cluster.pass(2).await;
        for node in unanswered(&cluster, IMAGE).await {
            report(&cluster, &node, IMAGE, "Succeeded", json!({})).await;
        }
    }
    ready_within(&cluster, 5, 3).await;
    for (generation, images, joined) in
        [(2, json!([IMAGE, "redis:7"]), "redis:7"), (3, json!([IMAGE, "redis:8"]), "redis:8")]
    {
        edit(&cluster, json!({ "images": images })).await;
        for changed in 1..=3 {
            cluster.pass(2).await;
            assert_eq!(of_generation(&cluster, generation).await, changed);
            let open = unanswered(&cluster, joined).await;
            assert_eq!(open.len(), 1, "{open:?}");
            for node in open {
                // The first node asks the registry for all of them anew.
                report(&cluster, &node, IMAGE, "Succeeded", json!({})).await;
                report(&cluster, &node, joined, "Succeeded", json!({})).await;
            }
        }
        ready_within(&cluster, 5, 3).await;
    }
}

/// How many sets say what this generation wants.
async fn of_generation(cluster: &Cluster, generation: i64) -> usize {
    let sets = node_image_sets(cluster).list(&ListParams::default()).await.unwrap().items;
    sets.iter().filter(|set| set.spec.image_prefetch_generation == Some(generation)).count()
}

/// ofen W1, R10: eight nodes, each pull a second, four waves, and the end is said at once.
#[tokio::test(start_paused = true)]
async fn a_rollout_takes_as_long_as_its_waves() {
    let mut cluster = cluster().await;
    cluster.add_node("node-7", json!({})).await;
    cluster.pass(1).await;
    make(&cluster, json!({"allNodes": true})).await;
    let took = cluster
        .within(Duration::from_secs(30), "the end", async || counts(&cluster).await == [8, 8, 0, 0])
        .await;
    assert!(took < Duration::from_secs(8), "{took:?}");
    for node in cluster.nodes.values() {
        assert_eq!(node.fetches(IMAGE), 1, "{}", node.name);
    }
    assert_eq!(cluster.nodes.values().map(|node| node.pulls(IMAGE)).sum::<usize>(), 1, "at the registry");
}

/// ofen W1: five hundred nodes take ten waves, 1, 1, 2, 4, … and the rest, and one of them asks the registry.
#[tokio::test(start_paused = true)]
async fn five_hundred_nodes_take_ten_waves_and_ask_the_registry_once() {
    let mut cluster = cluster().await;
    for number in 7..500 {
        cluster.add_node(&format!("node-{number}"), json!({})).await;
    }
    cluster.pass(5).await;
    make(&cluster, json!({"allNodes": true})).await;
    let is_over = async || counts(&cluster).await == [500, 500, 0, 0];
    let took = cluster.within(Duration::from_mins(1), "the end", is_over).await;
    assert!(took < Duration::from_secs(20), "each wave takes a second and a little: {took:?}");
    assert!(cluster.nodes.values().all(|node| node.fetches(IMAGE) == 1));
    assert_eq!(cluster.nodes.values().map(|node| node.pulls(IMAGE)).sum::<usize>(), 1, "at the registry");
    assert_eq!(policies(&cluster).await, (1, 499));
}

/// ofen W2: the role moves when a node that asks the registry fails, and everybody has the image in the end.
#[tokio::test(start_paused = true)]
async fn a_node_whose_agent_is_dead_holds_nobody_up() {
    let mut cluster = cluster().await;
    for name in ["node-0", "node-1", "node-4"] {
        cluster.nodes.get_mut(name).unwrap().kill().await;
    }
    make(&cluster, json!({"allNodes": true})).await;
    cluster.within(Duration::from_mins(10), "four nodes", async || counts(&cluster).await[1] == 4).await;
    for name in ["node-0", "node-1", "node-4"] {
        cluster.nodes.get_mut(name).unwrap().start();
    }
    ready_within(&cluster, 120, 7).await;
}

/// Everything that matters is in the cluster: controllers may be replaced at any moment.
#[tokio::test(start_paused = true)]
async fn a_rollout_goes_on_under_the_next_controller() {
    let mut cluster = cluster().await;
    make(&cluster, json!({"allNodes": true})).await;
    for _ in 0..6 {
        cluster.pass(1).await;
        cluster.kill_controller().await;
        cluster.start_controller();
    }
    ready_within(&cluster, 60, 7).await;
    cluster.pass(2).await;
    assert_eq!(policies(&cluster).await, (1, 6));
    for node in cluster.nodes.values() {
        assert!(node.pulls(IMAGE) <= 2, "{}: {}", node.name, node.pulls(IMAGE));
    }
}
