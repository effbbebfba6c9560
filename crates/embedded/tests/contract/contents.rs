//! Namespaces and definitions, which are removed after what belongs to them.

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use super::collect::{make_namespace, owned};
use super::fields::make_pod;
use super::list::names;
use super::world::{World, define, map, same, served};
use super::{Case, cases};

pub fn cases() -> Vec<Case> {
    cases![
        a_namespace_goes_with_what_is_in_it,
        a_namespace_on_its_way_out_says_so,
        nothing_is_created_in_a_terminating_namespace,
        a_finalizer_inside_holds_a_namespace,
        a_finalizer_of_its_own_holds_a_namespace,
        a_pod_on_a_node_holds_its_namespace,
        the_first_namespaces_cannot_be_deleted,
        a_definition_goes_with_its_objects,
        a_finalizer_of_an_object_holds_its_definition,
    ]
}

async fn namespace_goes(world: &World, name: &str) -> anyhow::Result<()> {
    let path = format!("/api/v1/namespaces/{name}");
    let gone = async || Ok((world.get(&path).await?.code == 404).then_some(()));
    world.eventually("the namespace to go", gone).await
}

async fn a_namespace_goes_with_what_is_in_it(world: World) -> anyhow::Result<()> {
    let namespace = make_namespace(&world, "inner").await?;
    let maps = format!("/api/v1/namespaces/{namespace}/configmaps");
    let widgets = format!("/apis/contract.example.com/v1beta1/namespaces/{namespace}/widgets");
    world.post(&maps, &map("a")).await?.ok(201)?;
    world.post(&widgets, &super::world::widget("a", json!({ "title": "plain" }))).await?.ok(201)?;
    world.delete(&format!("/api/v1/namespaces/{namespace}"), &Value::Null).await?.ok(200)?;
    namespace_goes(&world, &namespace).await?;
    for path in [&maps, &widgets] {
        same(names(&world.get(path).await?.ok(200)?), Vec::<String>::new())?;
    }
    world.make_map("untouched").await.map(drop)
}

/// A namespace that is being deleted and held by a map with a finalizer.
async fn held_namespace(world: &World) -> anyhow::Result<(String, Value)> {
    let namespace = make_namespace(world, "held").await?;
    let path = format!("/api/v1/namespaces/{namespace}");
    let held = owned("hold", &[], &["example.com/hold"]);
    world.post(&format!("{path}/configmaps"), &held).await?.ok(201)?;
    let answer = world.delete(&path, &Value::Null).await?.ok(200)?;
    Ok((path, answer))
}

async fn a_namespace_on_its_way_out_says_so(world: World) -> anyhow::Result<()> {
    let (path, answer) = held_namespace(&world).await?;
    same(answer["kind"].clone(), "Namespace")?;
    same(answer["status"]["phase"].clone(), "Terminating")?;
    same(answer["spec"]["finalizers"].clone(), json!(["kubernetes"]))?;
    ensure!(answer["metadata"]["deletionTimestamp"].is_string(), "{answer}");
    ensure!(answer["metadata"].get("deletionGracePeriodSeconds").is_none(), "{answer}");
    same(world.get(&path).await?.ok(200)?["status"]["phase"].clone(), "Terminating")?;
    let again = world.delete(&path, &Value::Null).await?.ok(200)?;
    same(again["metadata"]["deletionTimestamp"].clone(), answer["metadata"]["deletionTimestamp"].clone())
}

async fn nothing_is_created_in_a_terminating_namespace(world: World) -> anyhow::Result<()> {
    let (path, _) = held_namespace(&world).await?;
    let status = world.post(&format!("{path}/configmaps"), &map("new")).await?.refused(403, "Forbidden")?;
    let name = world.unique("held");
    let wanted = format!(
        "configmaps \"new\" is forbidden: unable to create new content in namespace {name} because it is being \
         terminated"
    );
    same(status["message"].clone(), wanted)?;
    // Existing objects can still be changed.
    let patch = json!({ "data": { "a": "2" } });
    world.merge(&format!("{path}/configmaps/hold"), &patch).await?.ok(200).map(drop)
}

async fn a_finalizer_inside_holds_a_namespace(world: World) -> anyhow::Result<()> {
    let (path, _) = held_namespace(&world).await?;
    let hold = format!("{path}/configmaps/hold");
    let marked = async || {
        let object = world.get(&hold).await?.ok(200)?;
        Ok(object["metadata"]["deletionTimestamp"].is_string().then_some(()))
    };
    world.eventually("the map to be marked", marked).await?;
    world.get(&path).await?.ok(200)?;
    world.merge(&hold, &json!({ "metadata": { "finalizers": null } })).await?.ok(200)?;
    namespace_goes(&world, &world.unique("held")).await
}

async fn a_finalizer_of_its_own_holds_a_namespace(world: World) -> anyhow::Result<()> {
    let name = world.unique("own");
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": { "name": name, "finalizers": ["example.com/hold"] },
    });
    world.post("/api/v1/namespaces", &namespace).await?.ok(201)?;
    let path = format!("/api/v1/namespaces/{name}");
    world.delete(&path, &Value::Null).await?.ok(200)?;
    let emptied = async || {
        let found = world.get(&path).await?.ok(200)?;
        Ok(found["spec"]["finalizers"].is_null().then_some(found))
    };
    let held = world.eventually("the namespace to be empty", emptied).await?;
    same(held["metadata"]["finalizers"].clone(), json!(["example.com/hold"]))?;
    world.merge(&path, &json!({ "metadata": { "finalizers": null } })).await?.ok(200)?;
    namespace_goes(&world, &name).await
}

async fn a_pod_on_a_node_holds_its_namespace(world: World) -> anyhow::Result<()> {
    let namespace = make_namespace(&world, "pods").await?;
    let mut inner = world.clone();
    inner.namespace.clone_from(&namespace);
    make_pod(&inner, "one", json!({ "nodeName": "here", "terminationGracePeriodSeconds": 600 })).await?;
    world.delete(&format!("/api/v1/namespaces/{namespace}"), &Value::Null).await?.ok(200)?;
    let marked = async || {
        let pod = world.get(&inner.core("pods/one")).await?.ok(200)?;
        Ok(pod["metadata"]["deletionTimestamp"].is_string().then_some(()))
    };
    world.eventually("the pod to be marked", marked).await?;
    world.get(&format!("/api/v1/namespaces/{namespace}")).await?.ok(200)?;
    world.delete(&inner.core("pods/one?gracePeriodSeconds=0"), &Value::Null).await?.ok(200).map(drop)
}

async fn the_first_namespaces_cannot_be_deleted(world: World) -> anyhow::Result<()> {
    for name in ["default", "kube-system", "kube-public"] {
        let path = format!("/api/v1/namespaces/{name}");
        let status = world.delete(&path, &Value::Null).await?.refused(403, "Forbidden")?;
        let wanted = format!("namespaces {name:?} is forbidden: this namespace may not be deleted");
        same(status["message"].clone(), wanted)?;
    }
    Ok(())
}

/// A kind of the case's own with one object, which finalizers may hold. Returns the paths of both.
async fn own_kind(world: &World, finalizers: &[&str]) -> anyhow::Result<(String, String)> {
    let group = format!("{}.example.com", world.namespace);
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("parts.{group}") },
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": { "plural": "parts", "singular": "part", "kind": "Part", "listKind": "PartList" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } },
            }],
        },
    });
    define(world, &definition).await?;
    served(world, &definition).await?;
    let path = world.at(&format!("{group}/v1"), "parts");
    let part = json!({
        "apiVersion": format!("{group}/v1"), "kind": "Part",
        "metadata": { "name": "one", "finalizers": finalizers },
    });
    // A kind that has only just been served may still refuse.
    world.eventually("a part", async || Ok(world.post(&path, &part).await?.ok(201).ok())).await?;
    let definition = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/parts.{group}");
    Ok((definition, format!("{path}/one")))
}

async fn a_definition_goes_with_its_objects(world: World) -> anyhow::Result<()> {
    let (definition, part) = own_kind(&world, &[]).await?;
    let answer = world.delete(&definition, &Value::Null).await?.ok(200)?;
    same(answer["kind"].clone(), "CustomResourceDefinition")?;
    let finalizers = answer["metadata"]["finalizers"].as_array().context("finalizers")?;
    ensure!(finalizers.contains(&json!("customresourcecleanup.apiextensions.k8s.io")), "{answer}");
    for path in [&definition, &part] {
        let gone = async || Ok((world.get(path).await?.code == 404).then_some(()));
        world.eventually("it to go", gone).await?;
    }
    Ok(())
}

async fn a_finalizer_of_an_object_holds_its_definition(world: World) -> anyhow::Result<()> {
    let (definition, part) = own_kind(&world, &["example.com/hold"]).await?;
    world.delete(&definition, &Value::Null).await?.ok(200)?;
    let marked = async || {
        let object = world.get(&part).await?.ok(200)?;
        Ok(object["metadata"]["deletionTimestamp"].is_string().then_some(()))
    };
    world.eventually("the part to be marked", marked).await?;
    let held = world.get(&definition).await?.ok(200)?;
    ensure!(held["metadata"]["deletionTimestamp"].is_string(), "{held}");
    world.merge(&part, &json!({ "metadata": { "finalizers": null } })).await?.ok(200)?;
    let gone = async || Ok((world.get(&definition).await?.code == 404).then_some(()));
    world.eventually("the definition to go", gone).await
}
