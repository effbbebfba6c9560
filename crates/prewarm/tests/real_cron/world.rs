//! The cluster that these tests share, and what they observe.

use anyhow::Context as _;
use k8s_openapi::api::core::v1::Event;
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use prewarm_api::crd;
use prewarm_api::kruise::AdvancedCronJob;
use prewarm_api::permission::{CONTROLLER, SYSTEM_NAMESPACE};
use prewarm_testkit::image::{Image, Layer};
use prewarm_testkit::{Node, Process, Runtime, wait, workload};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::cluster::Cluster;
use crate::program::{Agent, as_nobody, binary};

/// Both versions of the API.
pub const VERSIONS: [&str; 2] = ["v1alpha1", "v1beta1"];
/// The image of pods.
const TOOL: &str = "registry.example/cron/tool:v1";
/// Images that lists pull.
pub const IMAGES: [&str; 2] = ["registry.example/cron/one:v1", "registry.example/cron/two:v1"];

pub struct World {
    pub cluster: Cluster,
    pub nodes: Vec<Node>,
    controller: Process,
    /// Kept alive, because an agent ends when its handle is dropped.
    _agents: Vec<Agent>,
}

impl World {
    pub async fn shared() -> anyhow::Result<&'static Self> {
        static SHARED: OnceCell<World> = OnceCell::const_new();
        SHARED.get_or_try_init(Self::start).await
    }

    async fn start() -> anyhow::Result<Self> {
        let bare = prewarm_testkit::Cluster::configure()
            .nodes(&[Runtime::Containerd, Runtime::Crio])
            .controllers(&["job-controller"])
            .start()
            .await?;
        let prewarm_testkit::Cluster { nodes, server, registry } = bare;
        registry.push("cron/tool", &["v1"], &workload::image("cron")?.build()).await?;
        for name in ["cron/one", "cron/two"] {
            registry.push(name, &["v1"], &Image::new(name).layer(Layer::of(50_000)).build()).await?;
        }
        let cluster = Cluster::furnish(server, registry, crd::all()).await?;
        let mut agents = Vec::new();
        for node in &nodes {
            agents.push(Agent::start(&cluster, node, &[]).await?);
        }
        let kubeconfig = cluster
            .server
            .kubeconfig_of_service_account(SYSTEM_NAMESPACE, CONTROLLER.name, nodes[0].name())
            .await?;
        let mut command = as_nobody(&nodes[0])?;
        command.arg(binary()?).arg("controller").arg("--kubeconfig").arg(kubeconfig);
        command.args(["--listen", "127.0.0.1:10220", "--log-level", "info,prewarm_controller=debug"]);
        command.env("POD_NAME", "controller");
        let controller = Process::start("controller", command, nodes[0].directory())?;
        Ok(Self { cluster, nodes, controller, _agents: agents })
    }

    pub fn client(&self) -> anyhow::Result<Client> {
        self.cluster.server.client()
    }

    /// Makes a cron job with this template in a new namespace. It is due every five seconds, one run at a time, unless
    /// `spec` says otherwise.
    pub async fn cron(&self, version: &str, template: Value, spec: Value) -> anyhow::Result<Scene<'_>> {
        let mut whole = json!({"schedule": "@every 5s", "concurrencyPolicy": "Forbid", "template": template});
        json_patch::merge(&mut whole, &spec);
        let namespace = self.cluster.server.namespace_for_pods().await?;
        let resource = ApiResource {
            group: "apps.kruise.io".into(),
            version: version.into(),
            api_version: format!("apps.kruise.io/{version}"),
            kind: "AdvancedCronJob".into(),
            plural: "advancedcronjobs".into(),
        };
        let object = json!({
            "apiVersion": resource.api_version, "kind": "AdvancedCronJob", "metadata": {"name": "nightly"},
            "spec": whole,
        });
        let api: Api<DynamicObject> = Api::namespaced_with(self.client()?, &namespace, &resource);
        api.create(&PostParams::default(), &serde_json::from_value(object)?)
            .await
            .context("making the cron job")?;
        let client = self.client()?;
        Ok(Scene {
            crons: Api::namespaced(client.clone(), &namespace),
            events: Api::namespaced(client, &namespace),
            namespace,
            world: self,
        })
    }
}

/// One cron job and what belongs to it.
pub struct Scene<'a> {
    pub crons: Api<AdvancedCronJob>,
    pub namespace: String,
    events: Api<Event>,
    world: &'a World,
}

impl Scene<'_> {
    /// Waits until the cron job meets the condition.
    pub async fn until(
        &self,
        what: &str,
        is_wanted: impl Fn(&AdvancedCronJob) -> bool,
    ) -> anyhow::Result<AdvancedCronJob> {
        let mut last = None;
        let cron = wait::until(what, async || {
            let cron = self.crons.get("nightly").await?;
            last.clone_from(&cron.status);
            Ok(is_wanted(&cron).then_some(cron))
        });
        cron.await.with_context(|| {
            format!("the cron job is {last:#?}\nthe controller logged\n{}", self.world.controller.log_tail())
        })
    }

    /// Its runs, of any kind.
    pub fn runs<K>(&self) -> anyhow::Result<Api<K>>
    where
        K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    {
        Ok(Api::namespaced(self.world.client()?, &self.namespace))
    }

    pub async fn edit(&self, patch: Value) -> anyhow::Result<()> {
        self.crons.patch("nightly", &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    /// Waits for an event with this reason on the cron job, and returns its message.
    pub async fn event(&self, reason: &str) -> anyhow::Result<String> {
        let is_it = |event: &Event| {
            event.reason.as_deref() == Some(reason)
                && event.involved_object.kind.as_deref() == Some("AdvancedCronJob")
        };
        wait::until(&format!("the event {reason}"), async || {
            let events = self.events.list(&ListParams::default()).await?.items;
            Ok(events.into_iter().find(is_it).map(|event| event.message.unwrap_or_default()))
        })
        .await
    }

    /// Deletes the cron job, so that it does not run during the next test.
    pub async fn end(&self) -> anyhow::Result<()> {
        self.crons.delete("nightly", &DeleteParams::background()).await?;
        Ok(())
    }
}

/// Reason and message of a condition.
pub fn condition(cron: &AdvancedCronJob, type_: &str) -> (String, String) {
    let mut conditions = cron.status.iter().flat_map(|status| &status.conditions).flatten();
    let found = conditions.find(|one| one.type_ == type_);
    found.map(|one| (one.reason.clone(), one.message.clone())).unwrap_or_default()
}

/// The run that ended last was complete.
pub fn is_complete(cron: &AdvancedCronJob) -> bool {
    condition(cron, "LastRunSucceeded").0 == "Complete"
}

/// A pod that does what its arguments say.
pub fn pod(arguments: &[&str]) -> Value {
    json!({"spec": {
        "restartPolicy": "Never", "automountServiceAccountToken": false, "terminationGracePeriodSeconds": 1,
        "containers": [{"name": "main", "image": TOOL, "args": arguments}],
    }})
}

/// A template of an image list.
pub fn list(images: &[&str]) -> Value {
    let spec = json!({"images": images, "parallelism": 2, "pullPolicy": {"backoffLimit": 0}});
    json!({"imageListPullJobTemplate": {"metadata": {"labels": {"app": "prefetch"}}, "spec": spec}})
}
