//! A cluster in which Prewarm is installed.

use std::fs;
use std::io::Read as _;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, ensure};
use flate2::read::GzDecoder;
use k8s_openapi::api::apps::v1::{DaemonSet, DaemonSetStatus, Deployment};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::{Patch, PatchParams};
use prewarm_api::names::DEFAULT_CONFIG_NAMESPACE;
use prewarm_image::Artifact;
use prewarm_package::chart;
use prewarm_package::image::{self, Origin, Program};
use prewarm_testkit::api_server::Service;
use prewarm_testkit::node::RUNTIME_DIRECTORY;
use prewarm_testkit::{Cluster, Runtime, helm, wait};
use serde_json::{Value, json};
use tokio::sync::{Mutex, MutexGuard};

use crate::release;

/// Controllers of Kubernetes that make the pods of an installation.
const CONTROLLERS: [&str; 4] =
    ["daemonset-controller", "deployment-controller", "replicaset-controller", "disruption-controller"];
/// The name of the image in the registry of the cluster, as the chart has it.
const REPOSITORY: &str = "prewarm/prewarm";
/// Its tags: of the release under test, of the one before, and of the one after.
const THIS: &str = env!("CARGO_PKG_VERSION");
const LAST: &str = "last";
const NEXT: &str = "next";
/// What `install.yaml` was in the release before. Its program is gone, so that of this release stands for it.
const LAST_RELEASE: &[u8] = include_bytes!("last-release.yaml.gz");
const SYSTEM: &str = "prewarm-system";
const AGENTS: &str = "prewarm-agents";

/// All that people make, as `docs/install.md` has it.
const JOBS: [&str; 6] = [
    "advancedcronjobs",
    "imagelistpulljobs",
    "imagepulljobs",
    "broadcastjobs",
    "imageprefetches",
    "nodeimagesets",
];

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
static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

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

    /// Installs what people without Helm installed from the last release.
    pub async fn of_last_release(runtimes: &[Runtime]) -> anyhow::Result<Self> {
        let installation = Self::prepare(runtimes, SYSTEM).await?;
        let mut text = String::new();
        GzDecoder::new(LAST_RELEASE).read_to_string(&mut text)?;
        let (this, last) = (format!("{REPOSITORY}:{THIS}"), format!("{REPOSITORY}:{LAST}"));
        ensure!(text.contains(&this), "the last release has another image than {this}");
        installation.install(&text.replace(&this, &last)).await?;
        Ok(installation)
    }

    /// Installs the file of this release over what is there, and waits until all pods are of it.
    pub async fn bring_up_to_date(&self) -> anyhow::Result<()> {
        let file = release::file(prewarm_package::release::INSTALL)?;
        self.install(&fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?)
            .await?;
        let images = ["get", "pods", "-n", SYSTEM, "-o", "jsonpath={.items[*].spec.containers[*].image}"];
        let wanted = format!("ghcr.io/{REPOSITORY}:{THIS}");
        wait::until("pods of this release", async || {
            Ok(self.kubectl(&images).await?.split(' ').all(|image| image == wanted).then_some(()))
        })
        .await
    }

    /// A cluster with the image in its registry.
    async fn prepare(runtimes: &[Runtime], agents: &'static str) -> anyhow::Result<Self> {
        let turn = ONE_AT_A_TIME.lock().await;
        let cluster = Cluster::configure().nodes(runtimes).controllers(&CONTROLLERS).start().await?;
        let service = cluster.server.serve_pods().await?;
        let (image, _) = release::image()?;
        cluster.registry.push(REPOSITORY, &[THIS, LAST], &image).await?;
        cluster.registry.push(REPOSITORY, &[NEXT], &next_image()?).await?;
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
            let deployment = deployments.get("prewarm-controller").await?;
            let status = deployment.status.unwrap_or_default();
            let is_new = status.observed_generation == deployment.metadata.generation
                && status.updated_replicas == Some(2)
                && status.replicas == Some(2);
            Ok((is_new && status.ready_replicas == Some(2)).then_some(()))
        });
        self.or_pods(ready.await).await
    }

    /// Waits until an agent is ready on every node.
    pub async fn agents_ready(&self) -> anyhow::Result<()> {
        let nodes = i32::try_from(self.cluster.nodes.len())?;
        self.agents_are("ready agents", |status| {
            status.updated_number_scheduled == Some(nodes) && status.number_ready == nodes
        })
        .await
    }

    /// Waits until the agents are in a state, once their controller has seen what is wanted of them.
    async fn agents_are(&self, what: &str, is_so: impl Fn(&DaemonSetStatus) -> bool) -> anyhow::Result<()> {
        let sets = self.sets()?;
        let waited = wait::until(what, async || {
            let set = sets.get("prewarm-agent").await?;
            let status = set.status.unwrap_or_default();
            let is_seen = status.observed_generation == set.metadata.generation;
            Ok((is_seen && is_so(&status)).then_some(()))
        });
        self.or_pods(waited.await).await
    }

    async fn patch_agents(&self, patch: &Patch<Value>) -> anyhow::Result<()> {
        self.sets()?.patch("prewarm-agent", &PatchParams::default(), patch).await?;
        Ok(())
    }

    fn sets(&self) -> anyhow::Result<Api<DaemonSet>> {
        Ok(Api::namespaced(self.cluster.server.client()?, self.agents))
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

    /// The same, as docs/install.md says to do it after an installation: a new leader takes a moment.
    pub async fn check_at_last(&self) -> anyhow::Result<String> {
        self.prewarm(&["check", "--wait", "60"]).await
    }

    /// Takes away what the controller did not clean up.
    pub async fn finish(&self) -> anyhow::Result<()> {
        self.prewarm(&["uninstall", "--finish"]).await.map(drop)
    }

    async fn prewarm(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let program = release::file(&prewarm_package::release::program_name("amd64"))?;
        let mut command = Command::new(program);
        command.args(arguments).arg("--kubeconfig").arg(self.cluster.server.kubeconfig());
        let output = tokio::process::Command::from(command).output().await.context("starting prewarm")?;
        let output_text = String::from_utf8_lossy(&output.stdout).into_owned();
        ensure!(output.status.success(), "{output_text}{}", String::from_utf8_lossy(&output.stderr));
        Ok(output_text)
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
        self.begin_private(name, image).await?;
        self.ends_well(name).await
    }

    /// Asks for an image on every node, with a Secret.
    pub async fn begin_private(&self, name: &str, image: &str) -> anyhow::Result<()> {
        let config = json!({"auths": {"registry.example": {"username": "robot", "password": "hunter2"}}});
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/dockerconfigjson",
            "metadata": {"name": "robot", "namespace": "default"},
            "stringData": {".dockerconfigjson": config.to_string()}});
        self.apply(&secret.to_string()).await?;
        self.pull(name, &format!("shop/{image}"), json!({"pullSecrets": ["robot"]})).await
    }

    /// Waits until every node is in the middle of pulling an image.
    pub async fn pulls_everywhere(&self, name: &str) -> anyhow::Result<()> {
        let image = format!("registry.example/shop/{name}");
        let mut last = String::new();
        let waited = wait::until("a pull on every node", async || {
            last = self.kubectl(&["get", "nodeimages", "-o", "json"]).await?;
            let listed: Value = serde_json::from_str(&last)?;
            let nodes = listed["items"].as_array().context("a list")?;
            let is_pulling =
                |node: &&Value| node["status"]["imageStatuses"][&image]["tags"][0]["phase"] == "Pulling";
            Ok((nodes.iter().filter(is_pulling).count() == self.cluster.nodes.len()).then_some(()))
        });
        waited.await.with_context(|| format!("of {image} there is {last}"))
    }

    /// Has a new image kept on one node, and waits until it is there.
    pub async fn prefetch(&self, name: &str) -> anyhow::Result<()> {
        crate::push(self, name).await?;
        let spec = json!({"images": [format!("registry.example/shop/{name}:v1")], "replicas": 1});
        let prefetch = json!({"apiVersion": "ofen.cybozu.io/v1", "kind": "ImagePrefetch",
            "metadata": {"name": name, "namespace": "default"}, "spec": spec});
        self.apply(&prefetch.to_string()).await?;
        let ready =
            ["wait", "imageprefetch", name, "-n", "default", "--for=condition=Ready", "--timeout=60s"];
        self.or_pods(self.kubectl(&ready).await.map(drop)).await
    }

    /// Whether a Secret was copied for the agents.
    pub async fn has_copies(&self) -> anyhow::Result<bool> {
        let secrets = self.kubectl(&["get", "secrets", "-n", DEFAULT_CONFIG_NAMESPACE, "-o", "name"]).await?;
        Ok(!secrets.trim().is_empty())
    }

    /// Deletes all that people have asked for, kind by kind, and waits until it is gone.
    pub async fn delete_jobs(&self) -> anyhow::Result<()> {
        for kind in JOBS {
            let deleted = self.kubectl(&["delete", kind, "-A", "--all", "--timeout=60s"]).await;
            self.or_pods(deleted.map(drop)).await?;
        }
        Ok(())
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
    pub async fn replace_agents(&self) -> anyhow::Result<()> {
        let image = format!("ghcr.io/{REPOSITORY}:{NEXT}");
        let template = json!({"spec": {"containers": [{"name": "agent", "image": image}]}});
        self.patch_agents(&Patch::Strategic(json!({"spec": {"template": template}}))).await?;
        // One after the other: each of them may take as long as a wait may.
        for done in 1..=i32::try_from(self.cluster.nodes.len())? {
            let is_done =
                |status: &DaemonSetStatus| status.updated_number_scheduled.unwrap_or_default() >= done;
            self.agents_are(&format!("{done} new agents"), is_done).await?;
        }
        self.agents_ready().await
    }

    /// Takes the agents out of the group that may open the sockets, and waits until none is ready.
    pub async fn close_sockets(&self) -> anyhow::Result<()> {
        let template = json!({"spec": {"securityContext": {"supplementalGroups": [1]}}});
        let patch = Patch::Merge(json!({"spec": {"template": template,
            "updateStrategy": {"rollingUpdate": {"maxUnavailable": "100%"}}}}));
        self.patch_agents(&patch).await?;
        let nodes = i32::try_from(self.cluster.nodes.len())?;
        self.agents_are("agents that are not ready", |status| {
            status.updated_number_scheduled == Some(nodes) && status.number_ready == 0
        })
        .await
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
    let chart = release::file(&chart::file_name())?.display().to_string();
    let agents = format!("agent.namespace={AGENTS}");
    helm::run(&["template", "prewarm", &chart, "--namespace", SYSTEM, "--set", &agents])
}

/// An image of the same program and of other bytes, as the next release has them.
fn next_image() -> anyhow::Result<Artifact> {
    let path = release::file(&prewarm_package::release::program_name("amd64"))?;
    let program =
        Program { architecture: "amd64".to_owned(), target: "x86_64-unknown-linux-gnu".to_owned(), path };
    image::build(&[program], &Origin { revision: NEXT.to_owned(), time: 1_800_000_000 })
}
