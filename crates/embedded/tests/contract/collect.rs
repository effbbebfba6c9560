//! What follows from a deletion for owned objects. A real cluster needs a moment for it.

use anyhow::ensure;
use serde_json::{Value, json};

use super::list::names;
use super::world::{World, map, same};
use super::{Case, cases};

pub fn cases() -> Vec<Case> {
    cases![
        dependents_are_deleted_after_their_owner,
        a_dependent_held_by_a_finalizer_is_only_marked,
        a_chain_of_owners_goes_to_its_end,
        a_chain_waits_for_its_middle_object,
        an_object_with_two_owners_stays_with_the_second,
        an_object_with_two_owners_goes_with_the_last,
        an_object_with_a_dead_and_a_living_owner_loses_the_dead_one,
        in_the_foreground_an_owner_waits_for_what_blocks_it,
        in_the_foreground_an_owner_does_not_wait_for_what_does_not_block_it,
        in_the_foreground_a_chain_goes_from_its_end,
        in_the_foreground_an_object_with_another_owner_only_loses_the_reference,
        in_the_foreground_an_owner_goes_when_the_last_reference_is_taken_away,
        two_objects_that_own_each_other_are_both_deleted,
        an_orphaned_dependent_stays_without_its_owner,
        an_object_made_for_a_dead_owner_goes,
        an_object_given_to_a_dead_owner_goes,
        an_owner_of_the_same_name_and_another_uid_does_not_count,
        an_owner_in_another_namespace_does_not_count,
        an_object_of_the_cluster_owns_namespaced_ones,
        a_namespaced_owner_of_a_cluster_scoped_object_does_not_count,
        an_owner_of_an_unknown_kind_is_left_alone,
        custom_objects_own_and_are_owned,
        an_owner_named_in_an_old_version_owns_too,
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

pub fn owned(name: &str, owners: &[Value], finalizers: &[&str]) -> Value {
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

/// The case's maps: `a`, or `a!` for one that is being deleted, followed by the names of its owners: `b<a`.
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

/// Waits until the garbage collector has certainly seen everything before this: it has collected an object that came
/// later.
async fn collected(world: &World) -> anyhow::Result<()> {
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "probe" } });
    collected_as(world, &world.core("secrets"), secret).await
}

/// The same for widgets. A real collector looks for added kinds twice a minute.
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

async fn dependents_are_deleted_after_their_owner(world: World) -> anyhow::Result<()> {
    let owner = make(&world, "a", &[]).await?;
    make(&world, "b", &[reference(&owner)]).await?;
    make(&world, "c", &[]).await?;
    delete(&world, "a", "Background").await?;
    becomes(&world, "c").await
}

async fn a_dependent_held_by_a_finalizer_is_only_marked(world: World) -> anyhow::Result<()> {
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

async fn a_chain_waits_for_its_middle_object(world: World) -> anyhow::Result<()> {
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

async fn two_objects_that_own_each_other_are_both_deleted(world: World) -> anyhow::Result<()> {
    let first = make(&world, "a", &[]).await?;
    let second = make(&world, "b", &[blocking(&first)]).await?;
    let patch = json!({ "metadata": { "ownerReferences": [blocking(&second)] } });
    world.merge(&world.core("configmaps/a"), &patch).await?.ok(200)?;
    collected(&world).await?;
    delete(&world, "a", "Foreground").await?;
    becomes(&world, "").await
}

async fn an_orphaned_dependent_stays_without_its_owner(world: World) -> anyhow::Result<()> {
    let owner = make(&world, "a", &[]).await?;
    let other = make(&world, "b", &[]).await?;
    make(&world, "c", &[reference(&owner)]).await?;
    make(&world, "d", &[reference(&owner), reference(&other)]).await?;
    // A collector that has not seen them yet cannot remove their references.
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

async fn an_owner_of_the_same_name_and_another_uid_does_not_count(world: World) -> anyhow::Result<()> {
    let first = make(&world, "a", &[]).await?;
    delete(&world, "a", "Background").await?;
    make(&world, "a", &[]).await?;
    make(&world, "b", &[reference(&first)]).await?;
    becomes(&world, "a").await
}

pub async fn make_namespace(world: &World, name: &str) -> anyhow::Result<String> {
    let name = world.unique(name);
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
    world.post("/api/v1/namespaces", &namespace).await?.ok(201)?;
    Ok(name)
}

async fn an_owner_in_another_namespace_does_not_count(world: World) -> anyhow::Result<()> {
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

async fn a_namespaced_owner_of_a_cluster_scoped_object_does_not_count(world: World) -> anyhow::Result<()> {
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
