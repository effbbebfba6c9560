//! Definitions of another version: the server drops fields that it does not know without a word.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject, ListParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use crate::world::{World, real_nodes};

/// Fields that we write and other implementations do not know: the plural of the kind, and where they are in its schema.
const DROPPED: [(&str, &str, &str); 5] = [
    ("imagepulljobs", "/status", "conditions"),
    ("imagelistpulljobs", "/status", "conditions"),
    ("advancedcronjobs", "/status", "conditions"),
    ("nodeimages", "/status/imageStatuses/*/tags/*", "failureClass"),
    ("nodeimages", "/status/imageStatuses/*/tags/*", "failedAttempts"),
];
/// How long the server may take until it has read a definition anew.
const SETTLE: Duration = Duration::from_secs(5);
/// How long nobody may write. Before fields were given up, 85 writes a second came from each agent.
const QUIET: Duration = Duration::from_secs(30);

/// Nobody writes again and again what the server does not keep, and everybody says so.
pub async fn definitions_that_drop_our_fields_cause_no_flood() -> anyhow::Result<()> {
    let world = World::start("definitions", 1).await?;
    for (plural, path, field) in DROPPED {
        take_out(&world, plural, path, field).await?;
    }
    tokio::time::sleep(SETTLE).await;
    let namespace = world.cluster.server.namespace().await?;
    for name in ["one", "two"] {
        let list = json!({"spec": {"images": ["registry.example/absent:v1"], "completionPolicy": {}}});
        let spec = json!({"schedule": "0 0 1 1 *", "template": {"imageListPullJobTemplate": list}});
        world.create("v1beta1", "AdvancedCronJob", &namespace, name, spec).await?;
    }
    let spec = json!({
        "image": "registry.example/absent:v1", "selector": real_nodes(), "parallelism": 4,
        "pullPolicy": {"backoffLimit": 0}, "completionPolicy": {"type": "Never"},
    });
    world.create("v1beta1", "ImagePullJob", &namespace, "job", spec).await?;
    let jobs = world.jobs(&namespace)?;
    world
        .until(120, "a failure on every node", async || {
            Ok(jobs.get("job").await?.status.is_some_and(|status| status.failed == 3))
        })
        .await?;
    tokio::time::sleep(SETTLE).await;
    let before = versions(&world).await?;
    tokio::time::sleep(QUIET).await;
    let after = versions(&world).await?;
    ensure!(before == after, "somebody wrote: {before:?}, then {after:?}");
    let status = jobs.get("job").await?.status.unwrap_or_default();
    ensure!(status.conditions.is_none(), "the definition still has conditions");
    let events = Api::<Event>::all(world.client()?).list(&ListParams::default()).await?.items;
    let recorded = events.iter().filter(|event| event.reason.as_deref() == Some("FieldsNotKept"));
    let recorded: Vec<String> = recorded.filter_map(|event| event.note.clone()).collect();
    for field in ["conditions", "failureClass"] {
        ensure!(recorded.iter().any(|note| note.contains(field)), "no event names {field}: {recorded:?}");
    }
    Ok(())
}

/// The resourceVersions of everything that we write statuses of.
async fn versions(world: &World) -> anyhow::Result<BTreeMap<String, String>> {
    let mut versions = BTreeMap::new();
    for (kind, plural) in [
        ("NodeImage", "nodeimages"),
        ("ImagePullJob", "imagepulljobs"),
        ("AdvancedCronJob", "advancedcronjobs"),
    ] {
        let resource = ApiResource {
            group: "apps.kruise.io".into(),
            version: "v1beta1".into(),
            api_version: "apps.kruise.io/v1beta1".into(),
            kind: kind.into(),
            plural: plural.into(),
        };
        let api: Api<DynamicObject> = Api::all_with(world.client()?, &resource);
        for object in api.list(&ListParams::default()).await?.items {
            let version = object.resource_version().unwrap_or_default();
            versions.insert(format!("{kind} {}", object.name_any()), version);
        }
    }
    Ok(versions)
}

/// Applies a definition without this field.
async fn take_out(world: &World, plural: &str, path: &str, field: &str) -> anyhow::Result<()> {
    let resource = ApiResource::erase::<CustomResourceDefinition>(&());
    let api: Api<DynamicObject> = Api::all_with(world.client()?, &resource);
    let name = format!("{plural}.apps.kruise.io");
    let mut definition = api.get(&name).await?;
    let versions = definition.data["spec"]["versions"].as_array_mut().context("no versions")?;
    for version in versions {
        let names = path.split('/').skip(1);
        let schema = names.fold(&mut version["schema"]["openAPIV3Schema"], |schema, name| match name {
            "*" if schema.get("items").is_some() => &mut schema["items"],
            "*" => &mut schema["additionalProperties"],
            name => &mut schema["properties"][name],
        });
        let fields = schema["properties"].as_object_mut().context("no object with fields")?;
        ensure!(fields.remove(field).is_some(), "{name} has no {path}/{field}");
    }
    api.replace(&name, &PostParams::default(), &definition).await?;
    Ok(())
}
