//! A cluster in which Prewarm is installed.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, ensure};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::{Patch, PatchParams};
use prewarm_bed::{inside, programs};
use prewarm_testkit::api_server::Service;
use prewarm_testkit::node::RUNTIME_DIRECTORY;
use prewarm_testkit::{Cluster, Runtime, binary, wait};
use serde_json::{Value, json};
use tokio::sync::{Mutex, MutexGuard};

use crate::archive;

/// Controllers of Kubernetes that make the pods of an installation.
const CONTROLLERS: [&str; 4] =
    ["daemonset-controller", "deployment-controller", "replicaset-controller", "disruption-controller"];
/// The name of the image in the registry of the cluster, as the chart has it.
const REPOSITORY: &str = "prewarm/prewarm";
const SYSTEM: &str = "prewarm-system";
const AGENTS: &str = "prewarm-agents";

pub struct Installation {
    pub cluster: Cluster,
    /// What was applied.
    rendered: PathBuf,
    /// Where the agents are.
    agents: &'static str,
    _service: Service,
    _turn: MutexGuard<'static, ()>,
}

/// Pods reach the API server of one cluster at a time.
static TURN: Mutex<()> = Mutex::const_new(());

impl Installation {
    /// Installs the chart, the controller in a namespace that enforces the level "restricted", and waits until all pods are
    /// ready.
    pub async fn of_chart(runtimes: &[Runtime]) -> anyhow::Result<Self> {
        let installation = Self::prepare(runtimes, AGENTS).await?;
        for (name, level) in [(SYSTEM, "restricted"), (AGENTS, "privileged")] {
            let labels = json!({"pod-security.kubernetes.io/enforce": level});
            let metadata = json!({"name": name, "labels": labels});
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
            installation.apply(&namespace.to_string()).await?;
        }
        installation.install(&render()?).await?;
        Ok(installation)
    }

    /// Installs the file for people without Helm.
    pub async fn of_file(runtimes: &[Runtime]) -> anyhow::Result<Self> {
        let installation = Self::prepare(runtimes, SYSTEM).await?;
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/install.yaml");
        installation.install(&fs::read_to_string(file).context("reading install.yaml")?).await?;
        Ok(installation)
    }

    /// A cluster with the image in its registry.
    async fn prepare(runtimes: &[Runtime], agents: &'static str) -> anyhow::Result<Self> {
        let turn = TURN.lock().await;
        let cluster = Cluster::configure().nodes(runtimes).controllers(&CONTROLLERS).start().await?;
        let service = cluster.server.serve_pods().await?;
        let (image, _) = archive::image()?;
        let tags = [env!("CARGO_PKG_VERSION"), "next"];
        cluster.registry.push(REPOSITORY, &tags, &image).await?;
        let rendered = cluster.server.kubeconfig().with_file_name("installed.yaml");
        Ok(Self { cluster, rendered, agents, _service: service, _turn: turn })
    }

    /// Nothing is changed but where sockets are in a bed.
    async fn install(&self, text: &str) -> anyhow::Result<()> {
        let mut text = text.to_owned();
        for directory in ["/run/containerd", "/run/crio"] {
            let (usual, here) = (format!("path: {directory}\n"), format!("path: {RUNTIME_DIRECTORY}\n"));
            ensure!(text.contains(&usual), "{directory} is not mounted");
            text = text.replace(&usual, &here);
        }
        fs::write(&self.rendered, &text)?;
        self.apply(&text).await?;
        self.controllers_ready().await?;
        self.agents_ready().await
    }

    async fn apply(&self, text: &str) -> anyhow::Result<()> {
        let path = self.rendered.with_file_name("applied.yaml");
        fs::write(&path, text)?;
        let path = path.display().to_string();
        self.kubectl(&["apply", "--server-side", "--force-conflicts", "-f", &path]).await.map(drop)
    }

    pub async fn kubectl(&self, arguments: &[&str]) -> anyhow::Result<String> {
        self.cluster.server.kubectl(arguments).await
    }

    async fn controllers_ready(&self) -> anyhow::Result<()> {
        let deployments = Api::<Deployment>::namespaced(self.cluster.server.client()?, SYSTEM);
        let ready = wait::until("the controllers", async || {
            let status = deployments.get("prewarm-controller").await?.status.unwrap_or_default();
            Ok((status.ready_replicas == Some(2)).then_some(()))
        });
        self.or_pods(ready.await).await
    }

    /// Waits until an agent is ready on every node.
    pub async fn agents_ready(&self) -> anyhow::Result<()> {
        let sets = Api::<DaemonSet>::namespaced(self.cluster.server.client()?, self.agents);
        let nodes = i32::try_from(self.cluster.nodes.len())?;
        let ready = wait::until("the agents", async || {
            let set = sets.get("prewarm-agent").await?;
            let status = set.status.unwrap_or_default();
            let is_seen = status.observed_generation == set.metadata.generation;
            let is_new = status.updated_number_scheduled == Some(nodes);
            Ok((is_seen && is_new && status.number_ready == nodes).then_some(()))
        });
        self.or_pods(ready.await).await
    }

    /// An error says how the pods are.
    async fn or_pods(&self, outcome: anyhow::Result<()>) -> anyhow::Result<()> {
        let Err(error) = outcome else { return Ok(()) };
        let mut pods = self.kubectl(&["get", "pods", "-A", "-o", "wide"]).await?;
        for namespace in [SYSTEM, self.agents] {
            pods += &self.kubectl(&["get", "events", "-n", namespace]).await?;
            let labels = "app.kubernetes.io/part-of=prewarm";
            let logs = self.kubectl(&["logs", "-n", namespace, "-l", labels, "--tail=20", "--prefix"]).await;
            pods += &logs.unwrap_or_else(|error| format!("{error:#}"));
        }
        Err(error.context(pods))
    }

    /// What `prewarm check` prints, which fails if something is wrong.
    pub async fn check(&self) -> anyhow::Result<String> {
        self.prewarm(&["check"]).await
    }

    /// Takes away what the controller did not clean up.
    pub async fn finish(&self) -> anyhow::Result<()> {
        self.prewarm(&["uninstall", "--finish"]).await.map(drop)
    }

    async fn prewarm(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let mut command = Command::new(binary::prewarm()?);
        command.args(arguments).arg("--kubeconfig").arg(self.cluster.server.kubeconfig());
        let output = tokio::process::Command::from(command).output().await.context("starting prewarm")?;
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        ensure!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
        Ok(told)
    }

    /// The pod that leads.
    pub async fn leader(&self) -> anyhow::Result<String> {
        let leases = Api::<Lease>::namespaced(self.cluster.server.client()?, SYSTEM);
        let holder = leases.get("prewarm-controller").await?.spec.and_then(|spec| spec.holder_identity);
        let holder = holder.filter(|holder| !holder.is_empty()).context("nobody leads")?;
        // The pod's name, and something that tells its lives apart.
        Ok(holder.split('_').next().unwrap_or_default().to_owned())
    }

    /// Brings a new image to every node.
    pub async fn warm(&self, name: &str) -> anyhow::Result<()> {
        self.begin(name).await?;
        self.ends_well(name).await
    }

    /// Asks for a new image on every node.
    pub async fn begin(&self, name: &str) -> anyhow::Result<()> {
        crate::push(self, name).await?;
        self.pull(name, &format!("shop/{name}"), json!({})).await
    }

    /// Brings an image that is on the nodes already once more, with a Secret.
    pub async fn private(&self, name: &str, image: &str) -> anyhow::Result<()> {
        let config = json!({"auths": {"registry.example": {"username": "robot", "password": "hunter2"}}});
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/dockerconfigjson",
            "metadata": {"name": "robot", "namespace": "default"},
            "stringData": {".dockerconfigjson": config.to_string()}});
        self.apply(&secret.to_string()).await?;
        self.pull(name, &format!("shop/{image}"), json!({"pullSecrets": ["robot"]})).await?;
        self.ends_well(name).await
    }

    /// Makes a job. `spec` lacks only what is the same everywhere.
    pub async fn pull(&self, name: &str, image: &str, spec: Value) -> anyhow::Result<()> {
        let mut whole = json!({
            "image": format!("registry.example/{image}:v1"), "parallelism": 10, "completionPolicy": {},
        });
        for (field, value) in spec.as_object().into_iter().flatten() {
            whole[field] = value.clone();
        }
        let job = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob",
            "metadata": {"name": name, "namespace": "default"}, "spec": whole});
        self.apply(&job.to_string()).await
    }

    /// Waits until a job is over, and every node has its image.
    pub async fn ends_well(&self, name: &str) -> anyhow::Result<()> {
        let mut last = Value::Null;
        let waited = wait::until(&format!("the job {name}"), async || {
            let job = self.kubectl(&["get", "imagepulljob", name, "-n", "default", "-o", "json"]).await?;
            last = serde_json::from_str::<Value>(&job)?["status"].clone();
            Ok(last["completionTime"].is_string().then_some(()))
        })
        .await;
        self.or_pods(waited.with_context(|| format!("its status is {last}"))).await?;
        let nodes = self.cluster.nodes.len();
        ensure!(last["succeeded"] == json!(nodes) && last["failed"] == json!(0), "{name}: {last}");
        Ok(())
    }

    /// Lets the agents run another image, and waits until all of them do.
    pub async fn roll_agents(&self) -> anyhow::Result<()> {
        let sets = Api::<DaemonSet>::namespaced(self.cluster.server.client()?, self.agents);
        let image = format!("ghcr.io/{REPOSITORY}:next");
        let template = json!({"spec": {"containers": [{"name": "agent", "image": image}]}});
        let patch = Patch::Strategic(json!({"spec": {"template": template}}));
        sets.patch("prewarm-agent", &PatchParams::default(), &patch).await?;
        // One after the other: each of them may take as long as a wait may.
        for done in 1..=self.cluster.nodes.len() {
            let what = format!("{done} new agents");
            let rolled = wait::until(&what, async || {
                let set = sets.get("prewarm-agent").await?;
                let status = set.status.unwrap_or_default();
                let is_seen = status.observed_generation == set.metadata.generation;
                let updated = usize::try_from(status.updated_number_scheduled.unwrap_or_default())?;
                Ok((is_seen && updated >= done).then_some(()))
            });
            self.or_pods(rolled.await).await?;
        }
        self.agents_ready().await
    }

    /// Takes the agents out of the group that may open the sockets, and waits until none is ready.
    pub async fn close_sockets(&self) -> anyhow::Result<()> {
        let sets = Api::<DaemonSet>::namespaced(self.cluster.server.client()?, self.agents);
        let template = json!({"spec": {"securityContext": {"supplementalGroups": [1]}}});
        let patch = Patch::Merge(json!({"spec": {"template": template,
            "updateStrategy": {"rollingUpdate": {"maxUnavailable": "100%"}}}}));
        sets.patch("prewarm-agent", &PatchParams::default(), &patch).await?;
        let nodes = i32::try_from(self.cluster.nodes.len())?;
        let closed = wait::until("agents that are not ready", async || {
            let set = sets.get("prewarm-agent").await?;
            let status = set.status.unwrap_or_default();
            let is_seen = status.observed_generation == set.metadata.generation;
            let is_new = is_seen && status.updated_number_scheduled == Some(nodes);
            Ok((is_new && status.number_ready == 0).then_some(()))
        });
        self.or_pods(closed.await).await
    }

    /// Deletes all that was applied, in no order, and waits for nothing.
    pub async fn begin_to_uninstall(&self) -> anyhow::Result<()> {
        let rendered = self.rendered.display().to_string();
        self.kubectl(&["delete", "-f", &rendered, "--wait=false"]).await.map(drop)
    }

    /// Waits until no controller is there to clean up.
    pub async fn controllers_gone(&self) -> anyhow::Result<()> {
        let labels = "app.kubernetes.io/name=prewarm-controller";
        wait::until("the end of the controllers", async || {
            let pods = self.kubectl(&["get", "pods", "-n", SYSTEM, "-l", labels, "-o", "name"]).await?;
            Ok(pods.is_empty().then_some(()))
        })
        .await
    }

    /// Deletes all that was applied, definitions too, and the namespaces.
    pub async fn uninstall(&self) -> anyhow::Result<()> {
        let rendered = self.rendered.display().to_string();
        self.kubectl(&["delete", "-f", &rendered, "--wait=true", "--timeout=180s"]).await?;
        self.kubectl(&["delete", "namespace", SYSTEM, AGENTS, "--wait=true", "--timeout=180s"])
            .await
            .map(drop)
    }
}

fn render() -> anyhow::Result<String> {
    let chart = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/chart");
    let mut helm = Command::new(programs::locate("helm")?);
    helm.args(["template", "prewarm", chart, "--namespace", SYSTEM]).env("HOME", inside::directory("helm")?);
    helm.args(["--set", &format!("agent.namespace={AGENTS}")]);
    let output = helm.output().context("starting helm")?;
    ensure!(output.status.success(), "helm: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).context("helm printed no text")
}
