use serde_json::{Value, json};

use super::*;
use crate::cluster::{Input, Settings};

const UID: &str = "of-base";
const IMAGE: &str = "registry.example/base/java:21";
const ONE: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const OTHER: &str = "sha256:1123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn key() -> ObjectKey {
    ObjectKey { namespace: "shop".to_owned(), name: "base".to_owned() }
}

fn read<T: serde::de::DeserializeOwned>(object: Value) -> T {
    serde_json::from_value(object).unwrap()
}

/// The owner of the entry of an ImagePrefetch's only image.
fn owner() -> Value {
    let part = &super::super::record::Prefetch::new(prefetch(&[], json!({}))).parts[0];
    json!({"apiVersion": "ofen.cybozu.io/v1", "kind": "ImagePrefetch", "namespace": "shop", "name": "base", "uid": part.uid.to_string()})
}

fn job() -> Value {
    json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob", "namespace": "shop", "name": "web", "uid": "of-web"})
}

fn prefetch(selected: &[&str], status: Value) -> prewarm_api::ofen::ImagePrefetch {
    let mut status = status;
    status["selectedNodes"] = json!(selected);
    read(json!({
        "apiVersion": "ofen.cybozu.io/v1", "kind": "ImagePrefetch",
        "metadata": {"name": "base", "namespace": "shop", "uid": UID, "generation": 2, "resourceVersion": "9"},
        "spec": {"images": [IMAGE], "nodeSelector": {"matchLabels": {"pool": "big"}}, "replicas": 3},
        "status": status,
    }))
}

/// A kernel that knows nodes; each with the entry of the image, if it has one, and what it reports.
struct World(Kernel);

impl World {
    fn new() -> Self {
        Self(Kernel::new(Settings::default()))
    }

    fn node(&mut self, name: &str, is_ready: bool, pool: &str) {
        let ready = if is_ready { "True" } else { "False" };
        let node: k8s_openapi::api::core::v1::Node = read(json!({
            "metadata": {"name": name, "uid": format!("uid-{name}"), "labels": {"pool": pool}, "resourceVersion": "1"},
            "status": {"conditions": [{"type": "Ready", "status": ready}]},
        }));
        self.0.observe(Input::seen(node), Timestamp::UNIX_EPOCH);
    }

    fn with_entry(&mut self, name: &str, owners: &[Value], is_mirrored: bool, status: &Value) {
        let mut tag = json!({"tag": "21", "createdAt": "1970-01-01T00:00:00Z", "version": 1, "pullPolicy": {"ttlSecondsAfterFinished": 60}, "ownerReferences": owners});
        if is_mirrored {
            tag["registryPolicy"] = json!("MirrorOnly");
        }
        let spec = if owners.is_empty() {
            json!({})
        } else {
            json!({"images": {"registry.example/base/java": {"tags": [tag]}}})
        };
        let mut reported = json!({"tag": "21", "version": 1, "phase": "Waiting", "progress": 0});
        json_patch::merge(&mut reported, status);
        let status =
            json!({"desired": 1, "imageStatuses": {"registry.example/base/java": {"tags": [reported]}}});
        let image: prewarm_api::kruise::NodeImage = read(json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "NodeImage",
            "metadata": {"name": name, "uid": format!("image-{name}"), "resourceVersion": "1", "labels": {"pool": "big"}},
            "spec": spec, "status": if owners.is_empty() { json!({"desired": 0}) } else { status },
        }));
        self.0.observe(Input::seen(image), Timestamp::UNIX_EPOCH);
    }

    fn explained(
        mut self,
        prefetch: prewarm_api::ofen::ImagePrefetch,
    ) -> Vec<(Option<Asks>, Why, Vec<Note>)> {
        self.0.observe(Input::seen(prefetch), Timestamp::UNIX_EPOCH);
        let nodes = self.0.explain::<ImagePrefetch>(&key(), Timestamp::UNIX_EPOCH).unwrap().nodes;
        nodes.into_values().flatten().map(|one| (one.asks, one.why, one.notes)).collect()
    }
}

impl World {
    fn others(&mut self) -> Vec<(String, Unselected)> {
        let explained = self.0.explain::<ImagePrefetch>(&key(), Timestamp::UNIX_EPOCH).unwrap();
        explained.others.into_iter().map(|(node, why)| (node.to_string(), why)).collect()
    }
}

fn named((node, why): (&str, Unselected)) -> (String, Unselected) {
    (node.to_owned(), why)
}

fn succeeded(digest: &str, at: &str) -> Value {
    json!({"phase": "Succeeded", "completionTime": at, "digest": digest})
}

#[test]
fn who_waits_is_told_for_which_node_that_asks_the_registry() {
    let mut world = World::new();
    for name in ["a", "b", "c"] {
        world.node(name, name != "c", "big");
    }
    world.with_entry("a", &[owner()], false, &json!({"phase": "Pulling"}));
    world.with_entry("b", &[], false, &json!({}));
    world.with_entry("c", &[], false, &json!({}));
    let explained = world.explained(prefetch(&["a", "b", "c", "gone"], json!({})));
    assert_eq!(
        explained,
        [
            (Some(Asks::Registry), Why::Pulling, vec![]),
            (None, Why::First(vec!["a".into()]), vec![]),
            (None, Why::Unable(Unable::NotReady), vec![]),
            (None, Why::Unable(Unable::Gone), vec![]),
        ]
    );
}

#[test]
fn who_waits_for_a_wave_is_told_how_many_nodes_have_all_images() {
    let mut world = World::new();
    for name in ["a", "b", "c"] {
        world.node(name, true, "big");
    }
    world.with_entry("a", &[owner()], false, &json!({"phase": "Succeeded"}));
    let why = json!({"phase": "Pulling", "failureClass": "NotFound", "message": "no mirror has it"});
    world.with_entry("b", &[owner()], true, &why);
    world.with_entry("c", &[], false, &json!({}));
    let explained = world.explained(prefetch(&["a", "b", "c"], json!({})));
    assert_eq!(
        explained,
        [
            (Some(Asks::Registry), Why::Present, vec![]),
            (Some(Asks::Mirrors), Why::NotYet("no mirror has it".to_owned()), vec![]),
            (None, Why::Wave(1), vec![]),
        ]
    );
}

#[test]
fn who_lets_an_entry_come_from_anywhere_is_named() {
    let mut world = World::new();
    world.node("a", true, "big");
    world.with_entry("a", &[owner(), job()], false, &json!({"phase": "Pulling"}));
    let set = crate::cluster::node_image_set::spec::name("base", "shop", "a");
    let set: prewarm_api::ofen::NodeImageSet = read(json!({
        "apiVersion": "ofen.cybozu.io/v1", "kind": "NodeImageSet",
        "metadata": {"name": set, "uid": "set", "resourceVersion": "3", "labels": {
            "image-prefetch.ofen.cybozu.io/owner-namespace": "shop", "image-prefetch.ofen.cybozu.io/owner-name": "base",
        }},
        "spec": {"images": [IMAGE], "registryPolicy": "MirrorOnly", "nodeName": "a", "imagePrefetchGeneration": 2},
    }));
    world.0.observe(Input::seen(set), Timestamp::UNIX_EPOCH);
    let explained = world.explained(prefetch(&["a"], json!({})));
    assert_eq!(explained, [(Some(Asks::Mirrors), Why::Pulling, vec![Note::Lifted(vec![read(job())])])]);
}

#[test]
fn a_node_that_was_given_another_digest_is_marked() {
    let mut world = World::new();
    for (name, digest, at) in [("a", OTHER, "1970-01-01T00:01:00Z"), ("b", ONE, "1970-01-01T00:00:00Z")] {
        world.node(name, true, "big");
        world.with_entry(name, &[owner()], false, &succeeded(digest, at));
    }
    let notes: Vec<Vec<Note>> =
        world.explained(prefetch(&["a", "b"], json!({}))).into_iter().map(|(_, _, notes)| notes).collect();
    assert_eq!(notes, [vec![Note::OtherDigest(OTHER.into())], vec![]]);
}

#[test]
fn what_holds_an_object_is_read_off_its_status() {
    let status = |message: &str| {
        let condition = json!({"type": "Ready", "status": "False", "reason": "ImagePrefetchProgressing", "message": message,
            "lastTransitionTime": "1970-01-01T00:00:00Z"});
        json!({"desiredNodes": 3, "imagePulledNodes": 1, "conditions": [condition]})
    };
    let held = |message: &str| reported_hold(&Prefetch::new(prefetch(&[], status(message))));
    assert_eq!(held("all images are on 1 of 3 nodes"), None);
    let why = "these Secrets do not exist: regcred";
    assert_eq!(held(why), Some(why.to_owned()));
}

#[test]
fn a_node_that_is_not_taken_is_told_why() {
    let mut world = World::new();
    world.node("other", true, "small");
    world.node("dark", false, "big");
    world.node("spare", true, "big");
    let taken = ["a", "b", "c"];
    world.0.observe(Input::seen(prefetch(&taken, json!({}))), Timestamp::UNIX_EPOCH);
    let why = world.others();
    assert_eq!(
        why,
        [("dark", Unselected::NotReady), ("other", Unselected::Labels), ("spare", Unselected::Enough)]
            .map(named)
    );
    let mut world = World::new();
    world.node("spare", true, "big");
    world.0.observe(Input::seen(prefetch(&taken[..2], json!({}))), Timestamp::UNIX_EPOCH);
    assert_eq!(world.others(), [("spare", Unselected::Due)].map(named));
}

#[test]
fn a_set_that_a_person_made_is_explained_by_itself() {
    let mut world = World::new();
    world.node("a", true, "big");
    world.with_entry("a", &[], false, &json!({}));
    let set: prewarm_api::ofen::NodeImageSet = read(json!({
        "apiVersion": "ofen.cybozu.io/v1", "kind": "NodeImageSet",
        "metadata": {"name": "by-hand", "uid": "set", "resourceVersion": "3"},
        "spec": {"images": [IMAGE, "!"], "registryPolicy": "MirrorOnly", "nodeName": "a"},
    }));
    world.0.observe(Input::seen(set), Timestamp::UNIX_EPOCH);
    let key = ObjectKey { namespace: String::new(), name: "by-hand".to_owned() };
    let Some(OfSet::ByHand(explained)) = world.0.explain::<NodeImageSet>(&key, Timestamp::UNIX_EPOCH) else {
        panic!("nobody else has made it");
    };
    let seen: Vec<(Option<Asks>, Why)> =
        explained.into_values().flatten().map(|one| (one.asks, one.why)).collect();
    assert_eq!(seen, [(Some(Asks::Mirrors), Why::Turn), (Some(Asks::Mirrors), Why::NoImage)]);
}

/// What somebody is told who knows nothing but the objects: each node with whom it asks, and why it is where it is.
fn outside(world: &crate::support::world::World) -> Vec<(String, Option<Asks>, Why)> {
    let mut kernel = Kernel::new(Settings::default());
    for input in world.store.all() {
        kernel.observe(input, world.now);
    }
    let nodes =
        kernel.explain::<ImagePrefetch>(&crate::support::build::job_key("a"), world.now).unwrap().nodes;
    let images = nodes
        .into_iter()
        .flat_map(|(node, images)| images.into_iter().map(move |one| (node.to_string(), one)));
    images.map(|(node, one)| (node, one.asks, one.why)).collect()
}

#[test]
fn what_is_explained_from_outside_is_what_was_decided_wave_after_wave() {
    use prewarm_api::ofen::RegistryPolicy;

    use crate::support::prefetch::prefetch;
    use crate::support::world::World;

    let names: Vec<String> = (0..9).map(|number| format!("n{number}")).collect();
    let mut world = World::of(&names.iter().map(String::as_str).collect::<Vec<_>>());
    world.store.create_prefetch(prefetch("a", &json!({"replicas": 8})));
    for wave in 0.. {
        world.pass(std::time::Duration::from_secs(1));
        let explained = outside(&world);
        let who = |wanted: Asks| -> Vec<String> {
            let asking = explained.iter().filter(|(_, asks, _)| *asks == Some(wanted));
            asking.map(|(node, ..)| node.clone()).collect()
        };
        assert_eq!(who(Asks::Registry), world.nodes_with("a", RegistryPolicy::Default), "wave {wave}");
        assert_eq!(who(Asks::Mirrors), world.nodes_with("a", RegistryPolicy::MirrorOnly), "wave {wave}");
        let is = |wanted: &dyn Fn(&Why) -> bool| explained.iter().filter(|(_, _, why)| wanted(why)).count();
        let present = is(&|why| *why == Why::Present);
        let [desired, pulled, ..] = world.prefetch_counts("a");
        assert_eq!((explained.len(), present), (8, usize::try_from(pulled).unwrap()), "wave {wave}");
        if pulled == desired {
            assert!(wave > 2, "there were {wave} waves");
            return;
        }
        let waiting =
            is(&|why| matches!(why, Why::First(_)) || *why == Why::Wave(pulled.try_into().unwrap()));
        let begun = who(Asks::Registry).len() + who(Asks::Mirrors).len();
        assert_eq!(waiting, 8 - begun, "wave {wave}: {explained:?}");
        world.pull_all();
    }
}

#[test]
fn an_image_that_was_added_has_begun_nowhere_before_the_controller_looks() {
    use crate::support::prefetch::prefetch;
    use crate::support::world::World;

    let mut world = World::of(&["n1", "n2"]);
    world.store.create_prefetch(prefetch("a", &json!({})));
    world.finish_prefetch("a");
    world.store.edit_prefetch("a", &json!({"images": ["nginx:1", "redis:8"]}));
    let explained = outside(&world);
    let of_node = |node: &str| [(node.to_owned(), None, Why::Present), (node.to_owned(), None, Why::Turn)];
    assert_eq!(explained, [of_node("n1"), of_node("n2")].concat());
}
