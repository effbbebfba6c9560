//! Plays the pods of BroadcastJobs: does what scheduler and kubelets would do with them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use prewarm_api::names::BROADCAST_JOB_UID_LABEL;
use prewarm_clock::Clock;
use prewarm_embedded::Server;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// How often the pods are looked at.
const INTERVAL: Duration = Duration::from_millis(250);

/// What becomes of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// It runs for this long and succeeds.
    Succeeds(Duration),
    /// It runs for this long and fails.
    Fails(Duration),
    /// Its container restarts once a second, this many times, and then keeps running.
    Restarts(i32),
    /// It keeps running.
    Hangs,
    /// The scheduler finds no node for it.
    Waits,
}

/// The pods of a cluster. Dropping it ends the play.
pub struct Player {
    stage: Arc<Mutex<Stage>>,
    task: JoinHandle<()>,
}

/// What is played, and what was seen.
struct Stage {
    usual: Act,
    by_node: BTreeMap<String, Act>,
    seen: BTreeMap<String, BTreeSet<String>>,
    most_at_once: usize,
    most_on_a_node: usize,
}

impl Player {
    /// Plays this for every pod, unless its node has an act of its own.
    pub fn start(server: &Server, clock: Arc<dyn Clock>, usual: Act) -> Self {
        let stage = Stage {
            usual,
            by_node: BTreeMap::new(),
            seen: BTreeMap::new(),
            most_at_once: 0,
            most_on_a_node: 0,
        };
        let stage = Arc::new(Mutex::new(stage));
        let task = tokio::spawn(play(server.clone(), clock, stage.clone()));
        Self { stage, task }
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Plays this act for the pods of a node from here on.
    pub fn act(&self, node: &str, act: Act) {
        self.stage().by_node.insert(node.to_owned(), act);
    }

    /// How many pods each node has had, one after the other.
    pub fn pods_by_node(&self) -> BTreeMap<String, usize> {
        self.stage().seen.iter().map(|(node, uids)| (node.clone(), uids.len())).collect()
    }

    /// The most pods that ran at the same time, in the cluster and on one node.
    pub fn most(&self) -> (usize, usize) {
        let stage = self.stage();
        (stage.most_at_once, stage.most_on_a_node)
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn play(server: Server, clock: Arc<dyn Clock>, stage: Arc<Mutex<Stage>>) {
    let pods: Api<Pod> = Api::default_namespaced(server.client());
    let nodes: Api<Node> = Api::all(server.client());
    let labelled = ListParams::default().labels(BROADCAST_JOB_UID_LABEL);
    let mut seen = server.revision();
    let mut list = pods.list(&labelled).await.expect("pods");
    loop {
        // What nobody has written to is as it was; pods only get older.
        let revision = server.revision();
        if revision != seen {
            list = pods.list(&labelled).await.expect("pods");
            seen = revision;
        }
        let acts = stage.lock().unwrap_or_else(PoisonError::into_inner).cast(&list.items);
        for (pod, act) in list.items.iter().zip(acts) {
            let age = pod.metadata.creation_timestamp.as_ref().map(|made| clock.now().duration_since(made.0));
            let age = age.and_then(|age| Duration::try_from(age).ok()).unwrap_or_default();
            let status = pod.status.as_ref().map_or(Value::Null, |status| json!(status));
            let Some(next) = next(act, age, &status) else { continue };
            let name = pod.metadata.name.as_deref().unwrap_or_default();
            // A pod that is gone, or whose node is, needs nothing.
            let node = pod_node(pod);
            if nodes.get_opt(&node).await.expect("nodes").is_some() {
                let patch = Patch::Merge(json!({"status": next}));
                drop(pods.patch_status(name, &PatchParams::default(), &patch).await);
            }
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

impl Stage {
    /// Records the pods, and returns the act of each.
    fn cast(&mut self, pods: &[Pod]) -> Vec<Act> {
        let mut live: BTreeMap<String, usize> = BTreeMap::new();
        let mut acts = Vec::new();
        for pod in pods {
            let node = pod_node(pod);
            let uid = pod.metadata.uid.clone().unwrap_or_default();
            self.seen.entry(node.clone()).or_default().insert(uid);
            let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
            if !matches!(phase, Some("Succeeded" | "Failed")) {
                *live.entry(node.clone()).or_default() += 1;
            }
            acts.push(self.by_node.get(&node).copied().unwrap_or(self.usual));
        }
        self.most_at_once = self.most_at_once.max(live.values().sum());
        self.most_on_a_node = self.most_on_a_node.max(live.values().copied().max().unwrap_or(0));
        acts
    }
}

/// The status that a pod of this age gets, if it differs from its current one.
fn next(act: Act, age: Duration, status: &Value) -> Option<Value> {
    if matches!(status["phase"].as_str(), Some("Succeeded" | "Failed")) {
        return None;
    }
    let running = || json!({"phase": "Running"});
    let wanted = match act {
        Act::Succeeds(after) if age >= after => json!({"phase": "Succeeded"}),
        Act::Fails(after) if age >= after => json!({"phase": "Failed"}),
        Act::Succeeds(_) | Act::Fails(_) | Act::Hangs => running(),
        Act::Restarts(times) => {
            let count = i32::try_from(age.as_secs()).unwrap_or(i32::MAX).min(times);
            let container = json!({
                "name": "main", "image": "tool:1", "imageID": "", "ready": false, "restartCount": count,
            });
            json!({"phase": "Running", "containerStatuses": [container]})
        }
        Act::Waits => json!({"phase": "Pending", "conditions": [{
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "message": "0/1 nodes are available: 1 Too many pods.",
        }]}),
    };
    let has = |(key, value): (&String, &Value)| status.get(key) == Some(value);
    (!wanted.as_object()?.iter().all(has)).then_some(wanted)
}

/// The node that a pod is bound to, or has to be bound to.
fn pod_node(pod: &Pod) -> String {
    let spec = pod.spec.as_ref();
    let name = spec.and_then(|spec| spec.node_name.clone());
    let path = "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/\
                matchFields/0/values/0";
    let asked =
        || spec.map(|spec| json!(spec)).and_then(|spec| Some(spec.pointer(path)?.as_str()?.to_owned()));
    name.or_else(asked).unwrap_or_default()
}
