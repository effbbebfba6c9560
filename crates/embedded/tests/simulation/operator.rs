//! A program with `kube-runtime`'s Controller: for each widget it maintains a child and reports what it has seen.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::runtime::controller::{Action, Config, Controller};
use kube::runtime::watcher;
use kube::{Api, Resource as _, ResourceExt as _};
use prewarm_embedded::faults::Faults;
use serde_json::{Value, json};

use super::world::{KINDS, WIDGET, World};

/// Holds a widget until the operator has seen that it is being deleted.
pub const FINALIZER: &str = "example.org/operator";
/// How long after an error a widget is reconciled again.
const RETRY: Duration = Duration::from_secs(5);
/// How long a pass takes at least. If nothing took any time, an operator that makes children of a widget whose deletion
/// it has not seen, and a garbage collector that removes them, would keep the clock from advancing, and so the deletion
/// from being seen.
const PASS: Duration = Duration::from_millis(100);
/// How many widgets are reconciled at a time.
const CONCURRENCY: u16 = 3;

pub struct Operator {
    pub faults: Faults,
    reconciled: Arc<Mutex<BTreeMap<String, String>>>,
}

struct Context {
    client: kube::Client,
    /// The version of each widget that was last reconciled completely.
    reconciled: Arc<Mutex<BTreeMap<String, String>>>,
}

impl Operator {
    pub fn start(world: &World, faults: Faults) -> Self {
        let client = faults.client(&world.server);
        let reconciled = Arc::<Mutex<BTreeMap<_, _>>>::default();
        let context = Arc::new(Context { client: client.clone(), reconciled: reconciled.clone() });
        let widgets = WIDGET.api(client.clone());
        let controller = Controller::new_with(widgets, watcher::Config::default(), WIDGET.resource())
            .owns(Api::<ConfigMap>::default_namespaced(client), watcher::Config::default().any_semantic())
            .with_config(Config::default().concurrency(CONCURRENCY))
            .run(reconcile, |_, _, _| Action::requeue(RETRY), context);
        tokio::spawn(controller.for_each(|_| std::future::ready(())));
        Self { faults, reconciled }
    }

    /// The last version of every widget was reconciled, and its child and report agree.
    pub async fn check(&self, world: &World) {
        let widgets = world.objects(&WIDGET, None).await;
        let mut wanted = BTreeMap::new();
        for ((_, name), widget) in &widgets {
            let version = widget["metadata"]["resourceVersion"].as_str().unwrap();
            assert_eq!(
                self.reconciled.lock().unwrap().get(name).map(String::as_str),
                Some(version),
                "{name}"
            );
            assert_eq!(widget["status"]["value"], widget["spec"]["value"], "{name}");
            assert!(widget["metadata"]["deletionTimestamp"].is_null(), "{name} is stuck");
            let owner = widget["metadata"]["uid"].clone();
            wanted.insert(format!("child-of-{name}"), (owner, widget["spec"]["value"].clone()));
        }
        let maps = world.objects(&KINDS[1], None).await;
        let children = maps.into_iter().filter(|((_, name), _)| name.starts_with("child-of-"));
        let children = children.map(|((_, name), child)| {
            let owner = child["metadata"]["ownerReferences"][0]["uid"].clone();
            (name, (owner, child["data"]["value"].clone()))
        });
        assert_eq!(children.collect::<BTreeMap<_, _>>(), wanted);
    }
}

async fn reconcile(widget: Arc<DynamicObject>, ctx: Arc<Context>) -> kube::Result<Action> {
    tokio::time::sleep(PASS).await;
    let widgets = WIDGET.api(ctx.client.clone());
    if widget.metadata.deletion_timestamp.is_some() {
        // Guarded by the version, so that nothing is removed from a later widget of the same name.
        let version = widget.resource_version();
        let patch = json!({ "metadata": { "resourceVersion": version, "finalizers": [] } });
        widgets.patch(&widget.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await?;
        return Ok(Action::await_change());
    }
    let value = &widget.data["spec"]["value"];
    keep_child(&widget, value, &ctx).await?;
    if widget.data["status"]["value"] != *value {
        let patch = json!({ "metadata": { "uid": widget.uid() }, "status": { "value": value } });
        widgets.patch_status(&widget.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await?;
    }
    let version = widget.resource_version().unwrap_or_default();
    ctx.reconciled.lock().unwrap().insert(widget.name_any(), version);
    Ok(Action::await_change())
}

async fn keep_child(widget: &DynamicObject, value: &Value, ctx: &Context) -> kube::Result<()> {
    let children = Api::<ConfigMap>::default_namespaced(ctx.client.clone());
    let name = format!("child-of-{}", widget.name_any());
    let data = json!({ "value": value });
    match children.get_opt(&name).await? {
        None => {
            let owner = widget.controller_owner_ref(&WIDGET.resource());
            let child = json!({ "metadata": { "name": name, "ownerReferences": [owner] }, "data": data });
            let child = serde_json::from_value(child).map_err(kube::Error::SerdeError)?;
            children.create(&PostParams::default(), &child).await?;
        }
        Some(child)
            if child.data.as_ref().and_then(|data| data.get("value")).map(String::as_str)
                != value.as_str() =>
        {
            let patch = json!({ "metadata": { "uid": child.uid() }, "data": data });
            children.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        }
        Some(_) => {}
    }
    Ok(())
}
