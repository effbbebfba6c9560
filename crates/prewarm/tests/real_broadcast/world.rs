//! The cluster that these tests share, and what they observe.

use anyhow::Context as _;
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kube::api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use prewarm_api::crd;
use prewarm_api::kruise::{BroadcastJob, BroadcastJobPhase};
use prewarm_api::permission::{CONTROLLER, SYSTEM_NAMESPACE};
use prewarm_testkit::{Cluster, Process, Runtime, install, wait, workload};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::program::{as_nobody, binary};

/// Both versions of the API.
pub const VERSIONS: [&str; 2] = ["v1alpha1", "v1beta1"];
/// The label of the nodes that all tests share. A test with nodes of its own leaves them without it.
pub const POOL: &str = "pool";
/// The image of all pods.
const IMAGE: &str = "registry.example/broadcast/tool:v1";

pub struct World {
    pub cluster: Cluster,
    controller: Process,
}

impl World {
    pub async fn shared() -> anyhow::Result<&'static Self> {
        static SHARED: OnceCell<World> = OnceCell::const_new();
        SHARED.get_or_try_init(Self::start).await
    }

    async fn start() -> anyhow::Result<Self> {
        let cluster = Cluster::start(&[Runtime::Containerd, Runtime::Crio]).await?;
        cluster.registry.push("broadcast/tool", &["v1"], &workload::image("broadcast")?.build()).await?;
        install::definitions(&cluster.server.client()?, crd::all()).await?;
        install::rights(&cluster.server).await?;
        for node in &cluster.nodes {
            label(&cluster.server.client()?, node.name(), "shared").await?;
        }
        let node = &cluster.nodes[0];
        let kubeconfig = cluster
            .server
            .kubeconfig_of_service_account(SYSTEM_NAMESPACE, CONTROLLER.name, node.name())
            .await?;
        let mut command = as_nobody(node)?;
        command.arg(binary()?).arg("controller").arg("--kubeconfig").arg(kubeconfig);
        command.args(["--listen", "127.0.0.1:10220", "--log-level", "info,prewarm_controller=debug"]);
        command.env("POD_NAME", "controller");
        let controller = Process::start("controller", command, node.directory())?;
        Ok(Self { cluster, controller })
    }

    pub fn client(&self) -> anyhow::Result<Client> {
        self.cluster.server.client()
    }

    /// Makes a job in a new namespace, with pods that have these arguments, for the shared nodes or for those that
    /// `spec` selects.
    pub async fn broadcast(
        &self,
        version: &str,
        arguments: &[&str],
        spec: Value,
    ) -> anyhow::Result<Scene<'_>> {
        let mut whole = json!({"template": {"spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": false,
            "terminationGracePeriodSeconds": 1,
            "nodeSelector": {POOL: "shared"},
            "containers": [{"name": "main", "image": IMAGE, "args": arguments}],
        }}});
        json_patch::merge(&mut whole, &spec);
        let namespace = self.cluster.namespace().await?;
        let resource = ApiResource {
            group: "apps.kruise.io".into(),
            version: version.into(),
            api_version: format!("apps.kruise.io/{version}"),
            kind: "BroadcastJob".into(),
            plural: "broadcastjobs".into(),
        };
        let object = json!({
            "apiVersion": resource.api_version, "kind": "BroadcastJob", "metadata": {"name": "sweep"},
            "spec": whole,
        });
        let api: Api<DynamicObject> = Api::namespaced_with(self.client()?, &namespace, &resource);
        api.create(&PostParams::default(), &serde_json::from_value(object)?)
            .await
            .context("making the job")?;
        let client = self.client()?;
        Ok(Scene {
            jobs: Api::namespaced(client.clone(), &namespace),
            pods: Api::namespaced(client.clone(), &namespace),
            events: Api::namespaced(client, &namespace),
            world: self,
        })
    }
}

/// Puts a node into a pool.
pub async fn label(client: &Client, node: &str, pool: &str) -> anyhow::Result<()> {
    let patch = Patch::Merge(json!({"metadata": {"labels": {POOL: pool}}}));
    Api::<Node>::all(client.clone()).patch(node, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// One job and what belongs to it.
pub struct Scene<'a> {
    pub jobs: Api<BroadcastJob>,
    pub pods: Api<Pod>,
    events: Api<Event>,
    world: &'a World,
}

impl Scene<'_> {
    /// Waits until the job meets the condition.
    pub async fn until(
        &self,
        what: &str,
        is_wanted: impl Fn(&BroadcastJob) -> bool,
    ) -> anyhow::Result<BroadcastJob> {
        let mut last = None;
        let job = wait::until(what, async || {
            let job = self.jobs.get("sweep").await?;
            last.clone_from(&job.status);
            Ok(is_wanted(&job).then_some(job))
        });
        job.await.with_context(|| {
            format!("the job is {last:#?}\nthe controller logged\n{}", self.world.controller.log_tail())
        })
    }

    pub async fn reaches(&self, phase: BroadcastJobPhase) -> anyhow::Result<BroadcastJob> {
        let has = |job: &BroadcastJob| job.status.as_ref().is_some_and(|status| status.phase == Some(phase));
        self.until(&format!("phase {phase:?}"), has).await
    }

    /// Waits until there are this many unfinished pods.
    pub async fn live_pods(&self, wanted: usize) -> anyhow::Result<()> {
        let is_live = |pod: &&Pod| {
            let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
            !matches!(phase, Some("Succeeded" | "Failed"))
        };
        wait::until(&format!("{wanted} live pods"), async || {
            let pods = self.pods.list(&ListParams::default()).await?.items;
            Ok((pods.iter().filter(is_live).count() == wanted).then_some(()))
        })
        .await
    }

    /// The nodes of all pods, sorted.
    pub async fn nodes(&self) -> anyhow::Result<Vec<String>> {
        let pods = self.pods.list(&ListParams::default()).await?.items;
        let mut nodes: Vec<String> =
            pods.into_iter().filter_map(|pod| pod.spec.and_then(|spec| spec.node_name)).collect();
        nodes.sort();
        Ok(nodes)
    }

    /// The job, its pods, the nodes' taints, and what the controller logged: whatever tells how it came to this.
    pub async fn whole(&self) -> anyhow::Result<String> {
        let job = self.jobs.get("sweep").await?;
        let pods = self.pods.list(&ListParams::default()).await?.items;
        let nodes = Api::<Node>::all(self.world.client()?).list(&ListParams::default()).await?.items;
        let taints: Vec<_> = nodes.into_iter().map(|node| (node.metadata.name, node.spec)).collect();
        let log = self.world.controller.log_tail();
        Ok(format!("{job:#?}\n{pods:#?}\n{taints:#?}\nthe controller logged\n{log}"))
    }

    pub async fn edit(&self, patch: Value) -> anyhow::Result<()> {
        self.jobs.patch("sweep", &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    /// Waits for an event with this reason on the job, and returns its message.
    pub async fn event(&self, reason: &str) -> anyhow::Result<String> {
        let is_it = |event: &Event| {
            event.reason.as_deref() == Some(reason)
                && event.involved_object.kind.as_deref() == Some("BroadcastJob")
        };
        wait::until(&format!("the event {reason}"), async || {
            let events = self.events.list(&ListParams::default()).await?.items;
            Ok(events.into_iter().find(is_it).map(|event| event.message.unwrap_or_default()))
        })
        .await
    }
}

/// Desired, active, succeeded, failed.
pub fn counters(job: &BroadcastJob) -> [i32; 4] {
    let status = job.status.clone().unwrap_or_default();
    [status.desired, status.active, status.succeeded, status.failed]
}

/// The message of a condition that is false.
pub fn trouble(job: &BroadcastJob, type_: &str) -> Option<String> {
    let conditions = job.status.clone()?.conditions?;
    let found = conditions.into_iter().find(|one| one.type_ == type_ && one.status == "False")?;
    found.message
}
