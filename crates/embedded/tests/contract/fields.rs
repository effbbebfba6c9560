//! Field selectors: which fields each kind has, what they select, and how invalid ones are refused.

use anyhow::ensure;
use serde_json::{Value, json};

use super::selectors::{numbered, query, selected};
use super::world::{World, same};
use super::{Case, cases};

pub fn cases() -> Vec<Case> {
    cases![
        a_field_selector_selects_by_name,
        a_field_selector_selects_by_namespace,
        an_unequal_field_selector_selects_the_others,
        all_parts_of_a_field_selector_must_hold,
        label_and_field_selectors_must_both_hold,
        empty_parts_of_a_field_selector_mean_nothing,
        pods_are_selected_by_their_node,
        pods_are_selected_by_their_phase,
        pods_without_a_network_of_the_host_are_selected_by_false,
        nodes_that_take_pods_are_selected_by_false,
        namespaces_are_selected_by_their_phase,
        secrets_are_selected_by_their_type,
        events_are_selected_by_what_they_are_about,
        events_are_selected_by_their_source,
        custom_objects_are_selected_by_the_fields_of_their_definition,
        custom_objects_without_the_field_are_selected_by_the_empty_value,
        an_unknown_field_of_a_plain_kind_is_refused,
        an_unknown_field_of_a_kind_with_fields_is_refused,
        an_unknown_field_of_a_custom_kind_is_refused,
        a_field_of_another_version_is_refused,
        a_field_selector_without_an_operator_is_refused,
    ]
}

async fn by_fields(world: &World, path: &str, selector: &str) -> anyhow::Result<String> {
    selected(world, path, &query("fieldSelector", selector)).await
}

async fn refused_fields(world: &World, path: &str, selector: &str) -> anyhow::Result<Value> {
    let path = format!("{path}?{}", query("fieldSelector", selector));
    Ok(world.get(&path).await?.refused(400, "BadRequest")?["message"].clone())
}

async fn a_field_selector_selects_by_name(world: World) -> anyhow::Result<()> {
    numbered(&world).await?;
    let path = world.core("configmaps");
    same(by_fields(&world, &path, "metadata.name=m1").await?, "m1")?;
    same(by_fields(&world, &path, "metadata.name==m1").await?, "m1")?;
    same(by_fields(&world, &path, "metadata.name=absent").await?, "")
}

async fn a_field_selector_selects_by_namespace(world: World) -> anyhow::Result<()> {
    world.make_map("one").await?;
    let own = format!("metadata.namespace={}", world.namespace);
    same(by_fields(&world, &world.core("configmaps"), &own).await?, "one")?;
    same(by_fields(&world, &world.core("configmaps"), "metadata.namespace=default").await?, "")?;
    same(by_fields(&world, "/api/v1/configmaps", &own).await?, "one")
}

async fn an_unequal_field_selector_selects_the_others(world: World) -> anyhow::Result<()> {
    numbered(&world).await?;
    let selector = "metadata.name!=m1,metadata.name!=none";
    same(by_fields(&world, &world.core("configmaps"), selector).await?, "m0 m2 m3 m4")
}

async fn all_parts_of_a_field_selector_must_hold(world: World) -> anyhow::Result<()> {
    numbered(&world).await?;
    let path = world.core("configmaps");
    same(by_fields(&world, &path, "metadata.name=m1,metadata.name!=m1").await?, "")?;
    let both = format!("metadata.name=m1,metadata.namespace={}", world.namespace);
    same(by_fields(&world, &path, &both).await?, "m1")
}

async fn label_and_field_selectors_must_both_hold(world: World) -> anyhow::Result<()> {
    numbered(&world).await?;
    let both =
        format!("{}&{}", query("labelSelector", "odd=true"), query("fieldSelector", "metadata.name!=m1"));
    same(selected(&world, &world.core("configmaps"), &both).await?, "m3")
}

async fn empty_parts_of_a_field_selector_mean_nothing(world: World) -> anyhow::Result<()> {
    numbered(&world).await?;
    same(by_fields(&world, &world.core("configmaps"), ",metadata.name=m1,,").await?, "m1")
}

/// A pod with these fields in its spec. A real server waits for the namespace's service account.
pub async fn make_pod(world: &World, name: &str, spec: Value) -> anyhow::Result<Value> {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name },
        "spec": { "containers": [{ "name": "main", "image": "nginx:1.25" }] },
    });
    for (field, value) in spec.as_object().into_iter().flatten() {
        pod["spec"][field] = value.clone();
    }
    world
        .eventually("the account of a pod", async || {
            let answer = world.post(&world.core("pods"), &pod).await?;
            let waits = answer.code == 403 && answer.text.contains("service account");
            if waits { Ok(None) } else { answer.ok(201).map(Some) }
        })
        .await
}

async fn pods_are_selected_by_their_node(world: World) -> anyhow::Result<()> {
    make_pod(&world, "a", json!({ "nodeName": "here" })).await?;
    make_pod(&world, "b", json!({ "nodeName": "there" })).await?;
    make_pod(&world, "c", json!({})).await?;
    let path = world.core("pods");
    same(by_fields(&world, &path, "spec.nodeName=here").await?, "a")?;
    same(by_fields(&world, &path, "spec.nodeName!=here").await?, "b c")?;
    same(by_fields(&world, &path, "spec.nodeName=").await?, "c")
}

async fn pods_are_selected_by_their_phase(world: World) -> anyhow::Result<()> {
    make_pod(&world, "a", json!({})).await?;
    make_pod(&world, "b", json!({})).await?;
    let phase = json!({ "status": { "phase": "Running" } });
    world.merge(&world.core("pods/b/status"), &phase).await?.ok(200)?;
    let path = world.core("pods");
    same(by_fields(&world, &path, "status.phase=Running").await?, "b")?;
    same(by_fields(&world, &path, "status.phase=Pending").await?, "a")?;
    same(by_fields(&world, &path, "status.phase!=Running,spec.nodeName=").await?, "a")
}

async fn pods_without_a_network_of_the_host_are_selected_by_false(world: World) -> anyhow::Result<()> {
    make_pod(&world, "a", json!({})).await?;
    make_pod(&world, "b", json!({ "hostNetwork": true })).await?;
    let path = world.core("pods");
    same(by_fields(&world, &path, "spec.hostNetwork=false").await?, "a")?;
    same(by_fields(&world, &path, "spec.hostNetwork=true").await?, "b")
}

async fn nodes_that_take_pods_are_selected_by_false(world: World) -> anyhow::Result<()> {
    let (open, closed) = (world.unique("open"), world.unique("closed"));
    let node = |name: &str, spec: Value| json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name }, "spec": spec });
    world.post("/api/v1/nodes", &node(&open, json!({}))).await?.ok(201)?;
    world.post("/api/v1/nodes", &node(&closed, json!({ "unschedulable": true }))).await?.ok(201)?;
    let found = by_fields(&world, "/api/v1/nodes", "spec.unschedulable=false").await?;
    ensure!(found.contains(&open) && !found.contains(&closed), "{found}");
    let found = by_fields(&world, "/api/v1/nodes", "spec.unschedulable=true").await?;
    ensure!(found.contains(&closed) && !found.contains(&open), "{found}");
    Ok(())
}

async fn namespaces_are_selected_by_their_phase(world: World) -> anyhow::Result<()> {
    let own = format!("metadata.name={},status.phase", world.namespace);
    same(by_fields(&world, "/api/v1/namespaces", &format!("{own}=Active")).await?, world.namespace.clone())?;
    same(by_fields(&world, "/api/v1/namespaces", &format!("{own}!=Active")).await?, "")
}

async fn secrets_are_selected_by_their_type(world: World) -> anyhow::Result<()> {
    let secret = |name: &str| json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name } });
    world.post(&world.core("secrets"), &secret("plain")).await?.ok(201)?;
    let mut special = secret("special");
    special["type"] = "example.com/special".into();
    world.post(&world.core("secrets"), &special).await?.ok(201)?;
    let path = world.core("secrets");
    same(by_fields(&world, &path, "type=Opaque").await?, "plain")?;
    same(by_fields(&world, &path, "type=example.com/special").await?, "special")
}

async fn make_event(world: &World, name: &str, about: &str) -> anyhow::Result<Value> {
    let event = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": { "name": name },
        "involvedObject": { "kind": "Pod", "name": about, "namespace": world.namespace },
        "reason": "Pulled", "type": "Normal", "message": "done", "source": { "component": "test" },
        "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z", "count": 1,
    });
    world.post(&world.core("events"), &event).await?.ok(201)
}

async fn events_are_selected_by_what_they_are_about(world: World) -> anyhow::Result<()> {
    make_event(&world, "first", "web").await?;
    make_event(&world, "second", "api").await?;
    let path = world.core("events");
    same(by_fields(&world, &path, "involvedObject.name=web").await?, "first")?;
    same(by_fields(&world, &path, "involvedObject.kind=Pod,involvedObject.name=api").await?, "second")?;
    same(by_fields(&world, &path, "involvedObject.kind=Job").await?, "")?;
    same(by_fields(&world, &path, "reason=Pulled,type=Normal").await?, "first second")
}

async fn events_are_selected_by_their_source(world: World) -> anyhow::Result<()> {
    make_event(&world, "first", "web").await?;
    same(by_fields(&world, &world.core("events"), "source=test").await?, "first")?;
    same(by_fields(&world, &world.core("events"), "source=other").await?, "")
}

async fn custom_objects_are_selected_by_the_fields_of_their_definition(world: World) -> anyhow::Result<()> {
    world.make_widget("a", json!({ "title": "plain", "color": "blue", "size": 3 })).await?;
    world.make_widget("b", json!({ "title": "plain", "color": "green" })).await?;
    let path = world.widgets("");
    same(by_fields(&world, &path, "spec.color=blue").await?, "a")?;
    same(by_fields(&world, &path, "spec.color!=blue").await?, "b")?;
    same(by_fields(&world, &path, "spec.size=3").await?, "a")?;
    // A default counts as if it had been written.
    same(by_fields(&world, &path, "spec.size=1,metadata.name=b").await?, "b")
}

async fn custom_objects_without_the_field_are_selected_by_the_empty_value(
    world: World,
) -> anyhow::Result<()> {
    world.make_widget("a", json!({ "title": "plain", "color": "blue" })).await?;
    same(by_fields(&world, &world.widgets(""), "spec.color=").await?, "")?;
    same(by_fields(&world, &world.widgets(""), "spec.color!=").await?, "a")
}

async fn an_unknown_field_of_a_plain_kind_is_refused(world: World) -> anyhow::Result<()> {
    let wanted = "\"data.a\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"";
    same(refused_fields(&world, &world.core("configmaps"), "data.a=1").await?, wanted)?;
    let wanted = "\"spec\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"";
    for path in [world.at("apps/v1", "deployments"), world.at("coordination.k8s.io/v1", "leases")] {
        same(refused_fields(&world, &path, "spec=1").await?, wanted)?;
    }
    Ok(())
}

async fn an_unknown_field_of_a_kind_with_fields_is_refused(world: World) -> anyhow::Result<()> {
    for plural in ["pods", "secrets", "events"] {
        let message = refused_fields(&world, &world.core(plural), "spec.image=a").await?;
        same(message, "field label not supported: spec.image")?;
    }
    let message = refused_fields(&world, &world.at("batch/v1", "jobs"), "spec.image=a").await?;
    same(message, "field label \"spec.image\" not supported for Job")
}

async fn an_unknown_field_of_a_custom_kind_is_refused(world: World) -> anyhow::Result<()> {
    let message = refused_fields(&world, &world.widgets(""), "spec.title=plain").await?;
    same(message, "field label not supported: spec.title")?;
    let path = world.at("apps.kruise.io/v1beta1", "imagepulljobs");
    same(refused_fields(&world, &path, "spec.image=a").await?, "field label not supported: spec.image")
}

async fn a_field_of_another_version_is_refused(world: World) -> anyhow::Result<()> {
    let path = world.at("contract.example.com/v1alpha1", "widgets");
    let message = refused_fields(&world, &path, "spec.color=red").await?;
    same(message, "field label not supported: spec.color")
}

async fn a_field_selector_without_an_operator_is_refused(world: World) -> anyhow::Result<()> {
    let path = world.core("configmaps");
    let wanted = "invalid selector: 'metadata.name'; can't understand 'metadata.name'";
    same(refused_fields(&world, &path, "metadata.name").await?, wanted)?;
    let wanted = "invalid selector: 'metadata.name=a,b in (c)'; can't understand 'b in (c)'";
    same(refused_fields(&world, &path, "metadata.name=a,b in (c)").await?, wanted)
}
