//! The control plane: the API, the faults of its clients, and the objects that users create in it.

use std::fmt::Debug;
use std::sync::{Arc, OnceLock};

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource};
use prewarm_api::kruise::{AdvancedCronJob, BroadcastJob, ImagePullJob, ImagePullJobStatus, NodeImage};
use prewarm_api::names::DEFAULT_CONFIG_NAMESPACE;
use prewarm_clock::{Clock, TokioClock};
use prewarm_embedded::faults::Faults;
use prewarm_embedded::{Options, Server};
use prewarm_plan::cluster::journal::Entry;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::controller::Controller;
use crate::player::{Act, Player};

/// When simulated time begins.
const BEGINNING: &str = "2026-11-15T08:00:00Z";

/// A cluster without nodes.
pub struct ControlPlane {
    pub server: Server,
    /// A client without faults.
    pub client: Client,
    pub clock: Arc<dyn Clock>,
    /// The faults of the controller's requests, and their journal.
    pub faults: Faults,
    pub config: prewarm_controller::config::Config,
    /// Where controllers that start from here on write down what they observe and decide.
    pub journal: Option<mpsc::UnboundedSender<Entry>>,
    pub(crate) controller: Option<Controller>,
}

impl Default for ControlPlane {
    fn default() -> Self {
        Self::new()
    }
}

impl ControlPlane {
    /// An API with our definitions and nothing else. The time of day follows tokio's.
    pub fn new() -> Self {
        Self::with(Options::default())
    }

    /// The same with these options.
    pub fn with(options: Options) -> Self {
        let beginning = BEGINNING.parse().expect("the beginning is a time");
        Self::on(Arc::new(TokioClock::starting_at(beginning)), options)
    }

    /// The same with this clock.
    pub fn on(clock: Arc<dyn Clock>, options: Options) -> Self {
        let server = server(clock.clone(), options);
        Self {
            client: server.client(),
            server,
            clock,
            faults: Faults::none(),
            config: prewarm_controller::config::Config::default(),
            journal: None,
            controller: None,
        }
    }

    /// Creates a ready Node with these labels, without an agent.
    pub async fn make_node(&self, name: &str, labels: Value) {
        let mut node = json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
        });
        node["metadata"]["labels"]["kubernetes.io/hostname"] = json!(name);
        let _: k8s_openapi::api::core::v1::Node = self.create_in_cluster(node).await;
        self.set_ready(name, true).await;
    }

    /// Sets whether a Node is ready.
    pub async fn set_ready(&self, name: &str, is_ready: bool) {
        let status = if is_ready { "True" } else { "False" };
        let now = self.clock.now().to_string();
        let patch = json!({"status": {"conditions": [{
            "type": "Ready", "status": status, "lastTransitionTime": now, "lastHeartbeatTime": now,
            "reason": "Simulated", "message": "",
        }], "allocatable": {"cpu": "4", "memory": "16Gi", "pods": "110"}}});
        let api: Api<k8s_openapi::api::core::v1::Node> = Api::all(self.client.clone());
        api.patch_status(name, &PatchParams::default(), &Patch::Merge(patch)).await.expect("a Node's status");
    }

    pub async fn delete_node(&self, name: &str) {
        let api: Api<k8s_openapi::api::core::v1::Node> = Api::all(self.client.clone());
        api.delete(name, &DeleteParams::default()).await.expect("a Node to delete");
    }

    /// Creates an ImagePullJob in the namespace `default`. `spec` lacks only what is the same everywhere.
    pub async fn pull(&self, name: &str, spec: Value) -> ImagePullJob {
        self.create(json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob",
            "metadata": {"name": name}, "spec": with_completion_policy(spec),
        }))
        .await
    }

    /// Creates an ImageListPullJob in the namespace `default`.
    pub async fn pull_list(&self, name: &str, spec: Value) -> prewarm_api::kruise::ImageListPullJob {
        self.create(json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "ImageListPullJob",
            "metadata": {"name": name}, "spec": with_completion_policy(spec),
        }))
        .await
    }

    /// Creates a BroadcastJob in the namespace `default`. `spec` lacks only what is the same everywhere.
    pub async fn broadcast(&self, name: &str, spec: Value) -> BroadcastJob {
        let mut whole = json!({"template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "main", "image": "tool:1"}],
        }}});
        json_patch::merge(&mut whole, &spec);
        self.create(json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "BroadcastJob",
            "metadata": {"name": name}, "spec": whole,
        }))
        .await
    }

    /// Creates an AdvancedCronJob of an image list in the namespace `default`, through this version. `spec` lacks only
    /// what is the same everywhere.
    pub async fn cron(&self, version: &str, name: &str, spec: &Value) {
        let mut whole = json!({"template": {"imageListPullJobTemplate": {"spec": {
            "images": ["registry.example/base:1"], "completionPolicy": {"type": "Always"},
        }}}});
        json_patch::merge(&mut whole, spec);
        let body = json!({
            "apiVersion": format!("apps.kruise.io/{version}"), "kind": "AdvancedCronJob",
            "metadata": {"name": name}, "spec": whole,
        });
        let path = format!("/apis/apps.kruise.io/{version}/namespaces/default/advancedcronjobs");
        let request = http::Request::post(path).header("content-type", "application/json");
        let request = request.body(body.to_string().into_bytes()).expect("a request");
        self.client.request_text(request).await.expect("a cron job that the API accepts");
    }

    /// Plays the pods of BroadcastJobs.
    pub fn play(&self, usual: Act) -> Player {
        Player::start(&self.server, self.clock.clone(), usual)
    }

    /// Creates any object, in its namespace or in `default`.
    pub async fn create<K>(&self, object: Value) -> K
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + Debug
            + Serialize
            + DeserializeOwned,
    {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default").to_owned();
        let object: K = serde_json::from_value(object).expect("an object of that kind");
        let api: Api<K> = Api::namespaced(self.client.clone(), &namespace);
        api.create(&PostParams::default(), &object).await.expect("an object that the API accepts")
    }

    /// Creates a cluster-scoped object.
    pub async fn create_in_cluster<K>(&self, object: Value) -> K
    where
        K: Resource<DynamicType = (), Scope = ClusterResourceScope>
            + Clone
            + Debug
            + Serialize
            + DeserializeOwned,
    {
        let object: K = serde_json::from_value(object).expect("an object of that kind");
        Api::<K>::all(self.client.clone()).create(&PostParams::default(), &object).await.expect("an object")
    }

    /// Jobs of the namespace `default`.
    pub fn jobs(&self) -> Api<ImagePullJob> {
        Api::default_namespaced(self.client.clone())
    }

    /// Lists of the namespace `default`.
    pub fn lists(&self) -> Api<prewarm_api::kruise::ImageListPullJob> {
        Api::default_namespaced(self.client.clone())
    }

    /// BroadcastJobs of the namespace `default`.
    pub fn broadcasts(&self) -> Api<BroadcastJob> {
        Api::default_namespaced(self.client.clone())
    }

    /// AdvancedCronJobs of the namespace `default`.
    pub fn crons(&self) -> Api<AdvancedCronJob> {
        Api::default_namespaced(self.client.clone())
    }

    /// Kubernetes' own Jobs in the namespace `default`.
    pub fn batch_jobs(&self) -> Api<Job> {
        Api::default_namespaced(self.client.clone())
    }

    /// Pods of the namespace `default`.
    pub fn pods(&self) -> Api<Pod> {
        Api::default_namespaced(self.client.clone())
    }

    pub fn node_images(&self) -> Api<NodeImage> {
        Api::all(self.client.clone())
    }

    pub async fn status(&self, name: &str) -> ImagePullJobStatus {
        self.jobs().get(name).await.expect("a job").status.unwrap_or_default()
    }

    /// Merges a patch into a job.
    pub async fn edit(&self, name: &str, patch: Value) {
        self.jobs().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.expect("a job to edit");
    }

    pub async fn delete_job(&self, name: &str) {
        self.jobs().delete(name, &DeleteParams::background()).await.expect("a job to delete");
    }

    pub async fn events(&self) -> Vec<k8s_openapi::api::events::v1::Event> {
        let api: Api<k8s_openapi::api::events::v1::Event> = Api::all(self.client.clone());
        api.list(&ListParams::default()).await.expect("events").items
    }
}

/// A server with our definitions. The usual one is made once and copied: stories start thousands of times, and making
/// it each time would be a fifth of their time.
fn server(clock: Arc<dyn Clock>, options: Options) -> Server {
    static USUAL: OnceLock<Server> = OnceLock::new();
    let furnish = |clock, options| {
        let server = Server::new(clock, options);
        server.install_definitions();
        server.install_namespace(DEFAULT_CONFIG_NAMESPACE);
        server
    };
    if options != Options::default() {
        return furnish(clock, options);
    }
    USUAL.get_or_init(|| furnish(clock.clone(), options)).copy(clock)
}

fn with_completion_policy(mut spec: Value) -> Value {
    if spec.get("completionPolicy").is_none() {
        spec["completionPolicy"] = json!({});
    }
    spec
}
