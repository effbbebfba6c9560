//! The controller's role: enough for everything that it does, and no more.

use std::collections::BTreeSet;
use std::fs;

use anyhow::ensure;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use prewarm_api::kruise::{AdvancedCronJob, BroadcastJob};
use prewarm_api::names::IMAGE_PREFETCH_FINALIZER;
use prewarm_api::names::condition::READY;
use prewarm_api::ofen::{ImagePrefetch, NodeImageSet};
use prewarm_api::permission::{CONTROLLER, IMAGE_ALLOW_LIST, SYSTEM_NAMESPACE, Scope};
use serde_json::{Value, json};

use crate::world::World;

/// Rights for rare faults that no test can cause at will: an object is read again after a conflict, a verdict is
/// written after ten minutes of silence, an event is counted up when it repeats.
const IN_TROUBLE_ONLY: [(&str, &str); 11] = [
    ("nodeimages", "get"),
    ("imagepulljobs", "get"),
    ("imagelistpulljobs", "get"),
    ("broadcastjobs", "get"),
    ("pods", "get"),
    ("advancedcronjobs", "get"),
    ("jobs", "get"),
    ("imageprefetches", "get"),
    ("nodeimagesets", "get"),
    ("nodeimages/status", "patch"),
    ("events", "patch"),
];

/// Scope, resource, verb.
type Right = (bool, String, String);

pub async fn the_shipped_roles_suffice_and_nothing_in_them_is_unused() -> anyhow::Result<()> {
    let mut world = World::start("roles", 1).await?;
    restrict(&mut world).await?;
    everything_once(&world).await?;
    let unused =
        || Ok::<_, anyhow::Error>(granted().difference(&used(&world)?.0).cloned().collect::<Vec<_>>());
    // The server logs a request after it has answered it.
    let in_time =
        world.until(30, "the last requests to be written down", async || Ok(unused()?.is_empty())).await;
    let (_, refused) = used(&world)?;
    ensure!(refused.is_empty(), "the role lacks {refused:?}");
    let unused = unused()?;
    ensure!(unused.is_empty(), "the role grants what nobody uses: {unused:?}");
    in_time
}

/// The controller is started anew, with a list of the images that people may have.
async fn restrict(world: &mut World) -> anyhow::Result<()> {
    let map = json!({"metadata": {"name": IMAGE_ALLOW_LIST}, "data": {"_all": "registry.example"}});
    let maps = Api::<ConfigMap>::namespaced(world.client()?, SYSTEM_NAMESPACE);
    maps.create(&PostParams::default(), &serde_json::from_value(map)?).await?;
    for controller in std::mem::take(&mut world.controllers) {
        controller.terminate()?;
        controller.ended().await?;
    }
    world.controllers.push(world.controller_with(0, &["--image-allow-list", IMAGE_ALLOW_LIST]).await?);
    Ok(())
}

/// Does everything that the controller does for its users.
async fn everything_once(world: &World) -> anyhow::Result<()> {
    let namespace = world.cluster.server.namespace().await?;
    world.secret(&namespace, "login", "kubernetes.io/dockerconfigjson", "registry.example", "x").await?;
    let image = world.publish("roles/web").await?;
    let ttl = json!({"ttlSecondsAfterFinished": 1});
    let list = json!({
        "images": [image], "pullSecrets": ["login"], "completionPolicy": ttl, "parallelism": 4,
        "selector": {"names": [world.nodes[0].name(), "nobody"]},
    });
    world.create("v1beta1", "ImageListPullJob", &namespace, "list", list).await?;
    let lists = world.lists(&namespace)?;
    world.until(60, "the end of the list", async || Ok(lists.get_opt("list").await?.is_none())).await?;
    let pod = json!({
        "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {
            "nodeName": world.nodes[1].name(), "automountServiceAccountToken": false,
            "containers": [{"name": "main", "image": "web"}],
        },
    });
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
    let accounts = Api::<k8s_openapi::api::core::v1::ServiceAccount>::namespaced(world.client()?, &namespace);
    accounts.create(&PostParams::default(), &serde_json::from_value(account)?).await?;
    let pods = Api::<Pod>::namespaced(world.client()?, &namespace);
    pods.create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
    let spec = json!({
        "image": image, "podSelector": {"matchLabels": {"app": "web"}}, "completionPolicy": ttl, "pullSecrets": ["login"],
    });
    world.create("v1beta1", "ImagePullJob", &namespace, "pods", spec).await?;
    world.job_is_gone(60, &namespace, "pods").await?;
    world.secret(&namespace, "login", "kubernetes.io/dockerconfigjson", "registry.example", "y").await?;
    rotate(world, &namespace, &image).await?;
    broadcast(world, &namespace).await?;
    schedules(world, &namespace).await?;
    prefetch(world, &namespace, &image).await?;
    let nodes = Api::<Node>::all(world.client()?);
    nodes.delete(world.nodes[2].name(), &DeleteParams::default()).await?;
    world.until(60, "a NodeImage less", async || Ok(world.node_images().await?.len() == 3)).await
}

/// A BroadcastJob whose pod is deleted at its deadline, and one that is paused when its pod fails. There is no
/// kubelet.
async fn broadcast(world: &World, namespace: &str) -> anyhow::Result<()> {
    let (params, node) = (PatchParams::default(), world.nodes[0].name());
    let room = Patch::Merge(json!({"status": {"allocatable": {"pods": "10"}}}));
    Api::<Node>::all(world.client()?).patch_status(node, &params, &room).await?;
    let template = json!({"spec": {
        "restartPolicy": "Never", "nodeName": node, "tolerations": [{"operator": "Exists"}],
        "terminationGracePeriodSeconds": 0, "automountServiceAccountToken": false,
        "containers": [{"name": "main", "image": "tool"}],
    }});
    let policy = json!({"type": "Always", "activeDeadlineSeconds": 2, "ttlSecondsAfterFinished": 1});
    let late = json!({"template": template, "completionPolicy": policy});
    world.create("v1beta1", "BroadcastJob", namespace, "late", late).await?;
    let jobs = Api::<BroadcastJob>::namespaced(world.client()?, namespace);
    world.until(60, "the end of the job", async || Ok(jobs.get_opt("late").await?.is_none())).await?;

    let pausing = json!({"template": template, "failurePolicy": {"type": "Pause"}});
    world.create("v1beta1", "BroadcastJob", namespace, "pausing", pausing).await?;
    let pods = Api::<Pod>::namespaced(world.client()?, namespace);
    let failed = Patch::Merge(json!({"status": {"phase": "Failed"}}));
    let of_the_job = ListParams::default().labels("broadcastjob-name=pausing");
    world
        .until(60, "a pause", async || {
            for pod in pods.list_metadata(&of_the_job).await?.items {
                pods.patch_status(&pod.name_any(), &params, &failed).await?;
            }
            Ok(jobs.get("pausing").await?.spec.paused)
        })
        .await?;
    jobs.delete("pausing", &DeleteParams::background()).await?;
    Ok(())
}

/// An ImagePrefetch with what ofen leaves on it, which is changed and deleted.
async fn prefetch(world: &World, namespace: &str, image: &str) -> anyhow::Result<()> {
    let prefetches = Api::<ImagePrefetch>::namespaced(world.client()?, namespace);
    let object = json!({
        "metadata": {"name": "prefetch", "finalizers": [IMAGE_PREFETCH_FINALIZER]},
        "spec": {"images": [image], "replicas": 1},
    });
    prefetches.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
    let is_ready = async |generation| {
        let status = prefetches.get("prefetch").await?.status.unwrap_or_default();
        let mut conditions = status.conditions.into_iter().flatten();
        let is_ready = conditions.any(|condition| condition.type_ == READY && condition.status == "True");
        Ok(is_ready && status.observed_generation == Some(generation))
    };
    world.until(60, "the images on a node", async || is_ready(1).await).await?;
    let more = world.publish("roles/more").await?;
    let images = Patch::Merge(json!({"spec": {"images": [image, more]}}));
    prefetches.patch("prefetch", &PatchParams::default(), &images).await?;
    world.until(60, "another image on it", async || is_ready(2).await).await?;
    prefetches.delete("prefetch", &DeleteParams::background()).await?;
    let sets = Api::<NodeImageSet>::all(world.client()?);
    world
        .until(60, "the end of all that there was of it", async || {
            let is_gone = prefetches.get_opt("prefetch").await?.is_none();
            Ok(is_gone && sets.list(&ListParams::default()).await?.items.is_empty())
        })
        .await
}

/// Runs of every kind, each of which is replaced by the next.
async fn schedules(world: &World, namespace: &str) -> anyhow::Result<()> {
    let pod = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "tool"}]}});
    let templates = [
        json!({"jobTemplate": {"spec": {"template": pod}}}),
        json!({"broadcastJobTemplate": {"spec": {"template": pod, "paused": true}}}),
        json!({"imageListPullJobTemplate": {"spec": {"images": ["registry.example/roles/web:v1"], "parallelism": 0}}}),
    ];
    let crons = Api::<AdvancedCronJob>::namespaced(world.client()?, namespace);
    for (number, template) in templates.into_iter().enumerate() {
        let name = format!("cron-{number}");
        let spec = json!({"schedule": "@every 1s", "concurrencyPolicy": "Replace", "template": template});
        world.create("v1beta1", "AdvancedCronJob", namespace, &name, spec).await?;
        world
            .until(60, "a replaced run", async || {
                let status = crons.get(&name).await?.status.unwrap_or_default();
                let mut conditions = status.conditions.into_iter().flatten();
                Ok(conditions.any(|condition| condition.reason == "Replaced"))
            })
            .await?;
        crons.delete(&name, &DeleteParams::background()).await?;
    }
    Ok(())
}

/// A Secret that changes while a job uses it.
async fn rotate(world: &World, namespace: &str, image: &str) -> anyhow::Result<()> {
    let spec = json!({
        "image": image, "pullSecrets": ["login"], "selector": {"names": [world.nodes[0].name()]},
        "completionPolicy": {"type": "Never"},
    });
    world.create("v1beta1", "ImagePullJob", namespace, "rotating", spec).await?;
    let before = world.is_copied(30, namespace, "login", "rotating").await?;
    world.secret(namespace, "login", "kubernetes.io/dockerconfigjson", "registry.example", "z").await?;
    world
        .until(30, "the copy to follow", async || {
            Ok(world.copies(namespace, "login").await?.first().is_some_and(|copy| copy.data != before.data))
        })
        .await?;
    world.delete_job(namespace, "rotating").await?;
    world.copies_are_gone(30, namespace, "login").await
}

/// The requests of the controller and those that were refused, from the audit log.
fn used(world: &World) -> anyhow::Result<(BTreeSet<Right>, BTreeSet<String>)> {
    let (mut used, mut refused) = (BTreeSet::new(), BTreeSet::new());
    let text = fs::read_to_string(&world.audit)?;
    // A last line without an end is still being written.
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    for line in whole.lines() {
        let event: Value = serde_json::from_str(line)?;
        if event["user"]["username"] != CONTROLLER.user().as_str() {
            continue;
        }
        let object = &event["objectRef"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let resource = match text(&object["subresource"]) {
            sub if sub.is_empty() => text(&object["resource"]),
            sub => format!("{}/{sub}", text(&object["resource"])),
        };
        if event["responseStatus"]["code"] == 403 {
            refused.insert(line.to_owned());
        }
        let place = text(&object["namespace"]);
        for scope in [Scope::ConfigNamespace, Scope::SystemNamespace] {
            if scope.namespace() == Some(place.as_str()) {
                used.insert((false, resource.clone(), text(&event["verb"])));
            }
        }
        used.insert((true, resource, text(&event["verb"])));
    }
    Ok((used, refused))
}

/// What the role grants, without the rights for rare faults.
fn granted() -> BTreeSet<Right> {
    let mut granted = BTreeSet::new();
    for permission in CONTROLLER.permissions {
        for verb in permission.verbs {
            if !IN_TROUBLE_ONLY.contains(&(permission.resource, verb)) {
                let is_everywhere = permission.scope == Scope::Cluster;
                granted.insert((is_everywhere, permission.resource.to_owned(), (*verb).to_owned()));
            }
        }
    }
    granted
}
