//! What follows from a deletion: owned objects, namespaces and definitions. A real cluster needs a moment for it.

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use super::list::names;
use super::selectors::make_pod;
use super::world::{World, define, map, same, served};
use super::{Case, cases};

pub fn cases() -> Vec<Case> {
    cases![
        what_an_object_owns_goes_after_it,
        what_an_object_owns_is_only_marked_if_a_finalizer_holds_it,
        a_chain_of_owners_goes_to_its_end,
        a_chain_waits_for_the_one_in_the_middle,
        an_object_with_two_owners_stays_with_the_second,
        an_object_with_two_owners_goes_with_the_last,
        an_object_with_a_dead_and_a_living_owner_loses_the_dead_one,
        in_the_foreground_an_owner_waits_for_what_blocks_it,
        in_the_foreground_an_owner_does_not_wait_for_what_does_not_block_it,
        in_the_foreground_a_chain_goes_from_its_end,
        in_the_foreground_an_object_with_another_owner_only_loses_the_reference,
        in_the_foreground_an_owner_goes_when_the_last_reference_is_taken_away,
        two_that_own_each_other_both_go,
        what_is_orphaned_stays_without_its_owner,
        an_object_made_for_a_dead_owner_goes,
        an_object_given_to_a_dead_owner_goes,
        an_owner_of_the_same_name_and_another_uid_is_none,
        an_owner_in_another_namespace_is_none,
        an_object_of_the_cluster_owns_namespaced_ones,
        a_namespaced_owner_of_an_object_of_the_cluster_is_not_believed,
        an_owner_of_an_unknown_kind_is_left_alone,
        custom_objects_own_and_are_owned,
        an_owner_named_in_an_old_version_owns_too,
        a_namespace_goes_with_what_is_in_it,
        a_namespace_on_its_way_out_says_so,
        nothing_new_comes_into_a_namespace_on_its_way_out,
        a_finalizer_inside_holds_a_namespace,
        a_finalizer_of_its_own_holds_a_namespace,
        a_pod_on_a_node_holds_its_namespace,
        the_first_namespaces_cannot_be_deleted,
        a_definition_goes_with_its_objects,
        a_finalizer_of_an_object_holds_its_definition,
    ]
}

fn reference(owner: &Value) -> Value {
    json!({
        "apiVersion": owner["apiVersion"], "kind": owner["kind"],
        "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
    })
}

fn blocking(owner: &Value) -> Value {
    let mut reference = reference(owner);
    reference["blockOwnerDeletion"] = true.into();
    reference
}

fn owned(name: &str, owners: &[Value], finalizers: &[&str]) -> Value {
    let mut object = map(name);
    object["metadata"]["ownerReferences"] = json!(owners);
    object["metadata"]["finalizers"] = json!(finalizers);
    object
}

async fn make(world: &World, name: &str, owners: &[Value]) -> anyhow::Result<Value> {
    world.post(&world.core("configmaps"), &owned(name, owners, &[])).await?.ok(201)
}

async fn make_held(world: &World, name: &str, owners: &[Value]) -> anyhow::Result<Value> {
    world.post(&world.core("configmaps"), &owned(name, owners, &["example.com/hold"])).await?.ok(201)
}

async fn delete(world: &World, name: &str, policy: &str) -> anyhow::Result<()> {
    let options = json!({ "propagationPolicy": policy });
    world.delete(&world.core(&format!("configmaps/{name}")), &options).await?.ok(200).map(drop)
}

async fn release(world: &World, name: &str) -> anyhow::Result<()> {
    let patch = json!({ "metadata": { "finalizers": null } });
    world.merge(&world.core(&format!("configmaps/{name}")), &patch).await?.ok(200).map(drop)
}

/// The case's maps: `a`, or `a!` for one on its way out, with the names of its owners behind: `b<a`.
async fn state(world: &World) -> anyhow::Result<String> {
    let list = world.get(&world.core("configmaps")).await?.ok(200)?;
    let shown = |item: &Value| {
        let metadata = &item["metadata"];
        let mark = if metadata["deletionTimestamp"].is_string() { "!" } else { "" };
        let owners = metadata["ownerReferences"].as_array().into_iter().flatten();
        let owners: String = owners
            .map(|owner| format!("<{}", owner["name"].as_str().unwrap_or("-")))
            .collect::<Vec<_>>()
            .concat();
        format!("{}{mark}{owners}", metadata["name"].as_str().unwrap_or("-"))
    };
    let items = list["items"].as_array().into_iter().flatten();
    Ok(items.map(shown).collect::<Vec<_>>().join(" "))
}

async fn becomes(world: &World, wanted: &str) -> anyhow::Result<()> {
    let mut last = String::new();
    let asked = world.eventually("it", async || {
        last = state(world).await?;
        Ok((last == wanted).then_some(()))
    });
    let within = tokio::time::timeout(std::time::Duration::from_secs(40), asked).await;
    ensure!(matches!(within, Ok(Ok(()))), "wanted {wanted:?}, found {last:?}");
    Ok(())
}

/// Waits until the garbage collector has surely seen everything before: it has collected something that came later.
async fn collected(world: &World) -> anyhow::Result<()> {
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "probe" } });
    collected_as(world, &world.core("secrets"), secret).await
}

/// The same for widgets. A real collector looks for new kinds twice a minute.
async fn collected_widgets(world: &World) -> anyhow::Result<()> {
    let widget = super::world::widget("probe", json!({ "title": "plain" }));
    collected_as(world, &world.widgets(""), widget).await
}

async fn collected_as(world: &World, path: &str, mut probe: Value) -> anyhow::Result<()> {
    probe["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "never", "uid": "00000000-0000-4000-8000-000000000000",
    }]);
    world.post(path, &probe).await?.ok(201)?;
    let path = format!("{path}/probe");
    let gone = async || Ok((world.get(&path).await?.code == 404).then_some(()));
    world.eventually("the probe to go", gone).await
}

async fn what_an_object_owns_goes_after_it(world: World) -> anyhow::Result<()> {
    let owner = make(&world, "a", &[]).await?;
    make(&world, "b", &[reference(&owner)]).await?;
    make(&world, "c", &[]).await?;
    delete(&world, "a", "Background").await?;
    becomes(&world, "c").await
}

async fn what_an_object_owns_is_only_marked_if_a_finalizer_holds_it(world: World) -> anyhow::Result<()> {
    let owner = make(&world, "a", &[]).await?;
    make_held(&world, "b", &[reference(&owner)]).await?;
    delete(&world, "a", "Background").await?;
    becomes(&world, "b!<a").await?;
    release(&world, "b").await?;
    becomes(&world, "").await
}

async fn a_chain_of_owners_goes_to_its_end(world: World) -> anyhow::Result<()> {
    let first = make(&world, "a", &[]).await?;
    let second = make(&world, "b", &[reference(&first)]).await?;
    make(&world, "c", &[reference(&second)]).await?;
    delete(&world, "a", "Background").await?;
    becomes(&world, "").await
}

async fn a_chain_waits_for_the_one_in_the_middle(world: World) -> anyhow::Result<()> {
    let first = make(&world, "a", &[]).await?;
    let second = make_held(&world, "b", &[reference(&first)]).await?;
    make(&world, "c", &[reference(&second)]).await?;
    delete(&world, "a", "Background").await?;
    becomes(&world, "b!<a c<b").await?;
    collected(&world).await?;
    same(state(&world).await?, "b!<a c<b")?;
    release(&world, "b").await?;
    becomes(&world, "").await
}

async fn an_object_with_two_owners_stays_with_the_second(world: World) -> anyhow::Result<()> {
    let first = make(&world, "a", &[]).await?;
    let second = make(&world, "b", &[]).await?;
    make(&world, "c", &[reference(&first), reference(&second)]).await?;
    delete(&world, "a", "Background").await?;
    becomes(&world, "b c<b").await
}

async fn an_object_with_two_owners_goes_with_the_last(world: World) -> anyhow::Result<()> {
    let first = make(&world, "a", &[]).await?;
    let second = make(&world, "b", &[]).await?;
    make(&world, "c", &[reference(&first), reference(&second)]).await?;
    delete(&world, "b", "Background").await?;
    delete(&world, "a", "Background").await?;
    becomes(&world, "").await
}

async fn an_object_with_a_dead_and_a_living_owner_loses_the_dead_one(world: World) -> anyhow::Result<()> {
    let first = make(&world, "a", &[]).await?;
    let second = make(&world, "b", &[]).await?;
    delete(&world, "a", "Background").await?;
    make(&world, "c", &[reference(&first), reference(&second)]).await?;
    becomes(&world, "b c<b").await
}

async fn in_the_foreground_an_owner_waits_for_what_blocks_it(world: World) -> anyhow::Result<()> {
    let owner = make(&world, "a", &[]).await?;
    make_held(&world, "b", &[blocking(&owner)]).await?;
    make(&world, "c", &[blocking(&owner)]).await?;
    delete(&world, "a", "Foreground").await?;
    becomes(&world, "a! b!<a").await?;
    collected(&world).await?;
    same(state(&world).await?, "a! b!<a")?;
    release(&world, "b").await?;
    becomes(&world, "").await
}

async fn in_the_foreground_an_owner_does_not_wait_for_what_does_not_block_it(
    world: World,
) -> anyhow::Result<()> {
    let owner = make(&world, "a", &[]).await?;
    make_held(&world, "b", &[reference(&owner)]).await?;
    delete(&world, "a", "Foreground").await?;
    becomes(&world, "b!<a").await
}

async fn in_the_foreground_a_chain_goes_from_its_end(world: World) -> anyhow::Result<()> {
    let first = make(&world, "a", &[]).await?;
    let second = make(&world, "b", &[blocking(&first)]).await?;
    make_held(&world, "c", &[blocking(&second)]).await?;
    // A collector that does not know yet what the second owns would not wait for it.
    collected(&world).await?;
    delete(&world, "a", "Foreground").await?;
    becomes(&world, "a! b!<a c!<b").await?;
    release(&world, "c").await?;
    becomes(&world, "").await
}

async fn in_the_foreground_an_object_with_another_owner_only_loses_the_reference(
    world: World,
) -> anyhow::Result<()> {
    let first = make(&world, "a", &[]).await?;
    let second = make(&world, "b", &[]).await?;
    make(&world, "c", &[blocking(&first), reference(&second)]).await?;
    delete(&world, "a", "Foreground").await?;
    becomes(&world, "b c<b").await
}

async fn in_the_foreground_an_owner_goes_when_the_last_reference_is_taken_away(
    world: World,
) -> anyhow::Result<()> {
    let owner = make(&world, "a", &[]).await?;
    make_held(&world, "b", &[blocking(&owner)]).await?;
    delete(&world, "a", "Foreground").await?;
    becomes(&world, "a! b!<a").await?;
    let patch = json!({ "metadata": { "ownerReferences": null } });
    world.merge(&world.core("configmaps/b"), &patch).await?.ok(200)?;
    becomes(&world, "b!").await
}

async fn two_that_own_each_other_both_go(world: World) -> anyhow::Result<()> {
    let first = make(&world, "a", &[]).await?;
    let second = make(&world, "b", &[blocking(&first)]).await?;
    let patch = json!({ "metadata": { "ownerReferences": [blocking(&second)] } });
    world.merge(&world.core("configmaps/a"), &patch).await?.ok(200)?;
    collected(&world).await?;
    delete(&world, "a", "Foreground").await?;
    becomes(&world, "").await
}

async fn what_is_orphaned_stays_without_its_owner(world: World) -> anyhow::Result<()> {
    let owner = make(&world, "a", &[]).await?;
    let other = make(&world, "b", &[]).await?;
    make(&world, "c", &[reference(&owner)]).await?;
    make(&world, "d", &[reference(&owner), reference(&other)]).await?;
    // A collector that has not seen them yet cannot take their references away.
    collected(&world).await?;
    delete(&world, "a", "Orphan").await?;
    becomes(&world, "b c d<b").await
}

async fn an_object_made_for_a_dead_owner_goes(world: World) -> anyhow::Result<()> {
    let owner = make(&world, "a", &[]).await?;
    delete(&world, "a", "Background").await?;
    make(&world, "b", &[reference(&owner)]).await?;
    becomes(&world, "").await
}

async fn an_object_given_to_a_dead_owner_goes(world: World) -> anyhow::Result<()> {
    let owner = make(&world, "a", &[]).await?;
    make(&world, "b", &[]).await?;
    delete(&world, "a", "Background").await?;
    let patch = json!({ "metadata": { "ownerReferences": [reference(&owner)] } });
    world.merge(&world.core("configmaps/b"), &patch).await?.ok(200)?;
    becomes(&world, "").await
}

async fn an_owner_of_the_same_name_and_another_uid_is_none(world: World) -> anyhow::Result<()> {
    let first = make(&world, "a", &[]).await?;
    delete(&world, "a", "Background").await?;
    make(&world, "a", &[]).await?;
    make(&world, "b", &[reference(&first)]).await?;
    becomes(&world, "a").await
}

async fn make_namespace(world: &World, name: &str) -> anyhow::Result<String> {
    let name = world.unique(name);
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
    world.post("/api/v1/namespaces", &namespace).await?.ok(201)?;
    Ok(name)
}

async fn an_owner_in_another_namespace_is_none(world: World) -> anyhow::Result<()> {
    let other = make_namespace(&world, "other").await?;
    let owner = world.post(&format!("/api/v1/namespaces/{other}/configmaps"), &map("a")).await?.ok(201)?;
    make(&world, "b", &[reference(&owner)]).await?;
    becomes(&world, "").await
}

async fn make_role(world: &World, name: &str, owners: &[Value]) -> anyhow::Result<(String, Value)> {
    let path = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    let name = world.unique(name);
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": { "name": name, "ownerReferences": owners },
    });
    Ok((format!("{path}/{name}"), world.post(path, &role).await?.ok(201)?))
}

async fn an_object_of_the_cluster_owns_namespaced_ones(world: World) -> anyhow::Result<()> {
    let (path, role) = make_role(&world, "owner", &[]).await?;
    make(&world, "b", &[reference(&role)]).await?;
    make_held(&world, "c", &[blocking(&role)]).await?;
    collected(&world).await?;
    world.delete(&path, &json!({ "propagationPolicy": "Foreground" })).await?.ok(200)?;
    becomes(&world, &format!("c!<{}", world.unique("owner"))).await?;
    world.get(&path).await?.ok(200)?;
    release(&world, "c").await?;
    let gone = async || Ok((world.get(&path).await?.code == 404).then_some(()));
    world.eventually("the role to go", gone).await
}

async fn a_namespaced_owner_of_an_object_of_the_cluster_is_not_believed(world: World) -> anyhow::Result<()> {
    let owner = make(&world, "a", &[]).await?;
    let (path, _) = make_role(&world, "owned", &[reference(&owner)]).await?;
    delete(&world, "a", "Background").await?;
    collected(&world).await?;
    world.get(&path).await?.ok(200).map(drop)
}

async fn an_owner_of_an_unknown_kind_is_left_alone(world: World) -> anyhow::Result<()> {
    let unknown = |api_version: &str, kind: &str| json!({ "apiVersion": api_version, "kind": kind, "name": "x", "uid": "00000000-0000-4000-8000-000000000001" });
    make(&world, "a", &[unknown("nowhere.example.com/v1", "Nothing")]).await?;
    make(&world, "b", &[unknown("v2", "ConfigMap")]).await?;
    collected(&world).await?;
    same(state(&world).await?, "a<x b<x")
}

async fn custom_objects_own_and_are_owned(world: World) -> anyhow::Result<()> {
    collected_widgets(&world).await?;
    let first = world.make_widget("a", json!({ "title": "plain" })).await?;
    let mut second = super::world::widget("b", json!({ "title": "plain" }));
    second["metadata"]["ownerReferences"] = json!([reference(&first)]);
    let second = world.post(&world.widgets(""), &second).await?.ok(201)?;
    make(&world, "c", &[reference(&second)]).await?;
    world.delete(&world.widgets("/a"), &Value::Null).await?.ok(200)?;
    becomes(&world, "").await?;
    same(names(&world.get(&world.widgets("")).await?.ok(200)?), Vec::<String>::new())
}

async fn an_owner_named_in_an_old_version_owns_too(world: World) -> anyhow::Result<()> {
    collected_widgets(&world).await?;
    let owner = world.make_widget("a", json!({ "title": "plain" })).await?;
    let mut reference = reference(&owner);
    reference["apiVersion"] = "contract.example.com/v1alpha1".into();
    make(&world, "b", &[reference]).await?;
    collected(&world).await?;
    same(state(&world).await?, "b<a")?;
    world.delete(&world.widgets("/a"), &Value::Null).await?.ok(200)?;
    becomes(&world, "").await
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

/// A namespace on its way out, held by a map with a finalizer.
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

async fn nothing_new_comes_into_a_namespace_on_its_way_out(world: World) -> anyhow::Result<()> {
    let (path, _) = held_namespace(&world).await?;
    let status = world.post(&format!("{path}/configmaps"), &map("new")).await?.refused(403, "Forbidden")?;
    let name = world.unique("held");
    let wanted = format!(
        "configmaps \"new\" is forbidden: unable to create new content in namespace {name} because it is being \
         terminated"
    );
    same(status["message"].clone(), wanted)?;
    // What is there can still be changed.
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

/// A kind of the case's own with one object, which finalizers may hold; gives the paths of both.
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
    // A kind that was only just served may still refuse.
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
