//! Objects that are valid as they stand. A test changes the one thing that it is about.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use prewarm_api::kruise::{
    FailureClass, ImagePullJob, ImageStatus, ImageTagSpec, ImageTagStatus, NodeImage, PullPhase,
    SecretReference,
};
use prewarm_api::reference::ImageRef;
use prewarm_api::reference_object::ObjectReference;
use prewarm_plan::object::ImageKey;
use prewarm_plan::object::ObjectKey;
use serde_json::{Value, json};

/// The namespace of all jobs.
pub const NAMESPACE: &str = "team";
/// The namespace of copied Secrets.
pub const CONFIG: &str = "kruise-daemon-config";

/// So many seconds after the beginning of a test.
pub fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + seconds).unwrap()
}

/// The entry of an image.
pub fn key(image: &str) -> ImageKey {
    let image = ImageRef::parse(image).unwrap();
    ImageKey { name: image.name().to_owned(), tag: image.tag().to_owned() }
}

/// The key of a job.
pub fn job_key(name: &str) -> ObjectKey {
    ObjectKey { namespace: NAMESPACE.to_owned(), name: name.to_owned() }
}

/// The UID of a job, while nobody else gives UIDs.
pub fn uid(job: &str) -> String {
    format!("uid-{job}")
}

/// How entries name a job.
pub fn owner(job: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some("apps.kruise.io/v1beta1".to_owned()),
        kind: Some("ImagePullJob".to_owned()),
        namespace: Some(NAMESPACE.to_owned()),
        name: Some(job.to_owned()),
        uid: Some(uid(job)),
        ..ObjectReference::default()
    }
}

/// A job for `nginx:1` on all nodes that ends, with these fields of its spec.
pub fn job(name: &str, fields: &Value) -> ImagePullJob {
    let mut object = json!({
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "ImagePullJob",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "uid": uid(name),
            "generation": 1,
            "resourceVersion": "1",
            "creationTimestamp": Time(at(0)),
        },
        "spec": {"image": "nginx:1"},
    });
    json_patch::merge(&mut object["spec"], fields);
    serde_json::from_value(object).unwrap()
}

/// The job with this status.
pub fn with_status(job: ImagePullJob, status: Value) -> ImagePullJob {
    ImagePullJob { status: Some(serde_json::from_value(status).unwrap()), ..job }
}

/// The job after its end.
pub fn finished(job: ImagePullJob) -> ImagePullJob {
    let status = json!({"desired": 0, "startTime": Time(at(0)), "completionTime": Time(at(1))});
    with_status(job, status)
}

/// A Node that is ready.
pub fn node(name: &str) -> Node {
    labelled(name, &[])
}

/// A Node that is ready and has these labels.
pub fn labelled(name: &str, labels: &[(&str, &str)]) -> Node {
    let labels: serde_json::Map<String, Value> =
        labels.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
    let object = json!({
        "metadata": {"name": name, "uid": format!("node-{name}"), "labels": labels},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    });
    serde_json::from_value(object).unwrap()
}

/// The Node when it cannot work.
pub fn unready(mut node: Node) -> Node {
    for condition in node.status.iter_mut().filter_map(|status| status.conditions.as_mut()).flatten() {
        "False".clone_into(&mut condition.status);
    }
    node
}

/// The NodeImage of a Node, with these entries.
pub fn node_image(name: &str, entries: &[Entry]) -> NodeImage {
    let object = json!({
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "NodeImage",
        "metadata": {
            "name": name,
            "uid": format!("image-{name}"),
            "generation": 1,
            "resourceVersion": "1",
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": name, "uid": format!("node-{name}")}],
        },
        "spec": {},
    });
    let mut object: NodeImage = serde_json::from_value(object).unwrap();
    for entry in entries {
        entry.put(&mut object);
    }
    object
}

/// One tag of a NodeImage and its status. It starts as written by hand, without an answer.
#[derive(Clone)]
pub struct Entry {
    key: ImageKey,
    spec: ImageTagSpec,
    status: Option<ImageTagStatus>,
    secrets: Vec<SecretReference>,
}

/// An entry that was asked for at the beginning and stays ten minutes after its end.
pub fn entry(image: &str) -> Entry {
    let key = key(image);
    let spec = json!({
        "tag": key.tag,
        "createdAt": Time(at(0)),
        "pullPolicy": {"ttlSecondsAfterFinished": 600},
    });
    Entry { key, spec: serde_json::from_value(spec).unwrap(), status: None, secrets: Vec::new() }
}

impl Entry {
    /// These jobs want it.
    pub fn of(self, jobs: &[&str]) -> Self {
        self.owned_by(jobs.iter().map(|job| owner(job)).collect())
    }

    /// These objects want it.
    pub fn owned_by(mut self, owners: Vec<ObjectReference>) -> Self {
        self.spec.owner_references = Some(owners);
        self
    }

    /// It has these fields.
    pub fn with(mut self, fields: &Value) -> Self {
        let mut spec = json!(self.spec);
        json_patch::merge(&mut spec, fields);
        self.spec = serde_json::from_value(spec).unwrap();
        self
    }

    /// It is asked for in this round. A status that it has stays what it is.
    pub fn version(mut self, version: i64) -> Self {
        self.spec.version = version;
        self
    }

    /// Its image is pulled with this copy of a Secret, or with one that was named by hand.
    pub fn secret(mut self, name: &str, mode: Option<&str>) -> Self {
        self.secrets.push(secret(name, mode));
        self
    }

    /// The node waits with it.
    pub fn waiting(self) -> Self {
        self.status(PullPhase::Waiting, None, None)
    }

    /// The node pulls since then.
    pub fn pulling(self, since: Timestamp) -> Self {
        self.status(PullPhase::Pulling, Some(since), None)
    }

    /// The node has it since then.
    pub fn succeeded(self, since: Timestamp) -> Self {
        self.status(PullPhase::Succeeded, Some(since), Some(since))
    }

    /// The node could not pull.
    pub fn failed(self, since: Timestamp) -> Self {
        self.status(PullPhase::Failed, Some(since), Some(since))
    }

    /// The node could not pull, for this reason.
    pub fn failed_as(self, class: FailureClass, since: Timestamp) -> Self {
        self.failed(since).answer(|status| status.failure_class = Some(class))
    }

    /// The status is changed like this.
    pub fn answer(mut self, change: impl FnOnce(&mut ImageTagStatus)) -> Self {
        change(self.status.get_or_insert_default());
        self
    }

    fn status(mut self, phase: PullPhase, start: Option<Timestamp>, end: Option<Timestamp>) -> Self {
        self.status = Some(ImageTagStatus {
            tag: self.key.tag.clone(),
            phase,
            start_time: start.map(Time),
            completion_time: end.map(Time),
            version: self.spec.version,
            ..ImageTagStatus::default()
        });
        self
    }

    fn put(&self, object: &mut NodeImage) {
        let image = object.spec.images.entry(self.key.name.clone()).or_default();
        image.tags.push(self.spec.clone());
        let known = image.pull_secrets.clone().unwrap_or_default();
        let secrets: Vec<SecretReference> = known.into_iter().chain(self.secrets.clone()).collect();
        image.pull_secrets = (!secrets.is_empty()).then_some(secrets);
        if let Some(status) = self.status.clone() {
            let images = object.status.get_or_insert_default().image_statuses.get_or_insert_default();
            let image = images.entry(self.key.name.clone()).or_insert_with(|| ImageStatus { tags: vec![] });
            image.tags.push(status);
        }
    }
}

/// A reference to a Secret of the config namespace.
pub fn secret(name: &str, mode: Option<&str>) -> SecretReference {
    SecretReference {
        namespace: Some(CONFIG.to_owned()),
        name: Some(name.to_owned()),
        mode: mode.map(str::to_owned),
    }
}
