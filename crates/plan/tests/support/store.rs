//! A small API server in memory: objects, their versions, and what watches say about them.

use std::collections::{BTreeMap, VecDeque};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use prewarm_api::kruise::{ImagePullJob, NodeImage, NodeImageSpec};
use prewarm_plan::ledger::{Ledger, Outcome, Write};
use prewarm_plan::node_image::silence::judged;
use prewarm_plan::node_image::{Action, owner};
use prewarm_plan::object::ObjectKey;
use prewarm_plan::object::SourceKey;
use prewarm_plan::secret::{self, Content, Copy, SourceState};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// What a watch says.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "there are few of them, and not for long")]
pub enum Event {
    Node(Node),
    NodeGone(String),
    Image(NodeImage),
    ImageGone { name: String, uid: String },
    Job(ImagePullJob),
    JobGone { key: ObjectKey, uid: String },
    Copy(Copy),
    CopyGone(String),
}

/// One watch for each kind: its events come in order, those of others may come earlier or later.
pub const WATCHES: usize = 4;

impl Event {
    fn watch(&self) -> usize {
        match self {
            Self::Node(_) | Self::NodeGone(_) => 0,
            Self::Image(_) | Self::ImageGone { .. } => 1,
            Self::Job(_) | Self::JobGone { .. } => 2,
            Self::Copy(_) | Self::CopyGone(_) => 3,
        }
    }

    /// Tells it to a ledger.
    pub fn tell(self, ledger: &mut Ledger, now: Timestamp) {
        match self {
            Self::Node(node) => ledger.hear_node(node),
            Self::NodeGone(name) => ledger.lose_node(&name),
            Self::Image(image) => ledger.hear_node_image(image, now),
            Self::ImageGone { name, uid } => ledger.lose_node_image(&name, Some(&uid)),
            Self::Job(job) => ledger.hear_job(job),
            Self::JobGone { key, uid } => ledger.lose_job(&key, Some(&uid)),
            Self::Copy(copy) => ledger.hear_copy(copy),
            Self::CopyGone(name) => ledger.lose_copy(&name),
        }
    }
}

/// All objects.
#[derive(Clone, Debug)]
pub struct Store {
    pub nodes: BTreeMap<String, Node>,
    pub images: BTreeMap<String, NodeImage>,
    pub jobs: BTreeMap<ObjectKey, ImagePullJob>,
    /// Secrets that jobs may name, with a number for what they hold.
    pub sources: BTreeMap<SourceKey, u64>,
    /// Secrets of the config namespace.
    pub copies: BTreeMap<String, Copy>,
    /// The schema's bound on the images of a NodeImage.
    pub most_images: usize,
    events: [VecDeque<Event>; WATCHES],
    version: u64,
    uids: u64,
}

impl Default for Store {
    fn default() -> Self {
        Self {
            nodes: BTreeMap::new(),
            images: BTreeMap::new(),
            jobs: BTreeMap::new(),
            sources: BTreeMap::new(),
            copies: BTreeMap::new(),
            most_images: 256,
            events: Default::default(),
            version: 0,
            uids: 0,
        }
    }
}

impl Store {
    /// Everything there is, as a watch that begins tells it.
    pub fn all(&self) -> Vec<Event> {
        let nodes = self.nodes.values().cloned().map(Event::Node);
        let images = self.images.values().cloned().map(Event::Image);
        let jobs = self.jobs.values().cloned().map(Event::Job);
        let copies = self.copies.values().cloned().map(Event::Copy);
        nodes.chain(images).chain(jobs).chain(copies).collect()
    }

    /// The next event of a watch.
    pub fn event(&mut self, watch: usize) -> Option<Event> {
        self.events[watch].pop_front()
    }

    /// Whether all events were told.
    pub fn is_quiet(&self) -> bool {
        self.events.iter().all(VecDeque::is_empty)
    }

    /// Nobody watches any more.
    pub fn forget_events(&mut self) {
        self.events = Default::default();
    }

    fn emit(&mut self, event: Event) {
        self.events[event.watch()].push_back(event);
    }

    fn touch(&mut self, metadata: &mut ObjectMeta) {
        self.version += 1;
        metadata.resource_version = Some(self.version.to_string());
    }

    fn uid(&mut self, of: &str) -> String {
        self.uids += 1;
        format!("{of}-{}", self.uids)
    }

    /// A Node is made or changed. It keeps the UID of the one that is there.
    pub fn put_node(&mut self, mut node: Node) {
        let name = node.metadata.name.clone().unwrap();
        let uid = self.nodes.get(&name).and_then(|node| node.metadata.uid.clone());
        node.metadata.uid = uid.or_else(|| Some(self.uid(&name)));
        self.touch(&mut node.metadata);
        self.nodes.insert(name, node.clone());
        self.emit(Event::Node(node));
    }

    /// A Node is deleted.
    pub fn delete_node(&mut self, name: &str) {
        if self.nodes.remove(name).is_some() {
            self.emit(Event::NodeGone(name.to_owned()));
        }
    }

    /// A NodeImage is made or changed by hand, whatever is there.
    pub fn put_image(&mut self, mut image: NodeImage) {
        let name = image.metadata.name.clone().unwrap();
        let old = self.images.get(&name);
        let generation = old.and_then(|old| old.metadata.generation).unwrap_or_default();
        image.metadata.generation = Some(generation + 1);
        image.metadata.uid = old.and_then(|old| old.metadata.uid.clone()).or_else(|| Some(self.uid(&name)));
        self.keep_image(image);
    }

    fn keep_image(&mut self, mut image: NodeImage) -> NodeImage {
        self.touch(&mut image.metadata);
        self.images.insert(image.metadata.name.clone().unwrap(), image.clone());
        self.emit(Event::Image(image.clone()));
        image
    }

    /// A NodeImage is deleted.
    pub fn delete_image(&mut self, name: &str) {
        if let Some(image) = self.images.remove(name) {
            let uid = image.metadata.uid.unwrap();
            self.emit(Event::ImageGone { name: name.to_owned(), uid });
        }
    }

    /// The status of a NodeImage is written by its agent.
    pub fn report(&mut self, name: &str, change: impl FnOnce(&mut NodeImage)) {
        if let Some(image) = self.images.get(name) {
            let mut new = image.clone();
            change(&mut new);
            if new != *image {
                self.keep_image(new);
            }
        }
    }

    /// A job is made. A second one of its name has another UID.
    pub fn create_job(&mut self, mut job: ImagePullJob) {
        let (key, uid) = (key_of(&job), job.metadata.uid.clone().unwrap_or_default());
        self.uids += 1;
        job.metadata.uid = Some(if self.version == 0 { uid } else { format!("{uid}-{}", self.uids) });
        self.touch(&mut job.metadata);
        self.jobs.insert(key, job.clone());
        self.emit(Event::Job(job));
    }

    /// A person changes a job.
    pub fn edit_job(&mut self, key: &ObjectKey, change: impl FnOnce(&mut ImagePullJob)) {
        if let Some(job) = self.jobs.get(key) {
            let mut new = job.clone();
            change(&mut new);
            self.keep_job(job.clone(), new);
        }
    }

    /// A person deletes a job.
    pub fn delete_job(&mut self, key: &ObjectKey, now: Timestamp) {
        if let Some(job) = self.jobs.get(key).cloned() {
            let mut new = job.clone();
            new.metadata.deletion_timestamp.get_or_insert(Time(now));
            self.keep_job(job, new);
        }
    }

    /// Keeps a changed job; one that is being deleted and has no finalizer is gone.
    fn keep_job(&mut self, old: ImagePullJob, mut new: ImagePullJob) -> ImagePullJob {
        if new == old && new.metadata.deletion_timestamp.is_none() {
            return old;
        }
        if new.spec != old.spec {
            new.metadata.generation = new.metadata.generation.map(|generation| generation + 1);
        }
        self.touch(&mut new.metadata);
        let key = key_of(&new);
        let is_held = new.metadata.finalizers.as_ref().is_some_and(|finalizers| !finalizers.is_empty());
        if new.metadata.deletion_timestamp.is_some() && !is_held {
            self.jobs.remove(&key);
            self.emit(Event::JobGone { key, uid: new.metadata.uid.clone().unwrap() });
        } else {
            self.jobs.insert(key, new.clone());
            self.emit(Event::Job(new.clone()));
        }
        new
    }

    /// The controller writes a NodeImage.
    pub fn write_image(&mut self, name: &str, action: Action, now: Timestamp) -> Outcome<NodeImage> {
        if let Action::Create { labels, node_uid } = action {
            return self.create_image(name, (*labels).clone(), &node_uid);
        }
        let Some(image) = self.images.get(name).cloned() else { return Outcome::Gone };
        let held = image.metadata.uid.clone().unwrap();
        match action {
            Action::Create { .. } => unreachable!("handled above"),
            Action::Delete { uid } if *uid == *held => {
                self.delete_image(name);
                Outcome::Gone
            }
            Action::Delete { .. } => Outcome::Collided(Box::new(image)),
            Action::Patch { operations, .. } => self.patch_image(image, operations),
            Action::Judge { uid, verdicts } => {
                match judged(&image, &verdicts, now).filter(|_| *uid == *held) {
                    Some(status) => {
                        Outcome::Written(self.keep_image(NodeImage { status: Some(status), ..image }))
                    }
                    None => Outcome::Collided(Box::new(image)),
                }
            }
        }
    }

    fn create_image(
        &mut self,
        name: &str,
        labels: BTreeMap<String, String>,
        node_uid: &str,
    ) -> Outcome<NodeImage> {
        if let Some(image) = self.images.get(name) {
            return Outcome::Collided(Box::new(image.clone()));
        }
        let metadata = ObjectMeta {
            name: Some(name.to_owned()),
            labels: (!labels.is_empty()).then_some(labels),
            owner_references: serde_json::from_value(json!([owner(name, node_uid)])).unwrap(),
            uid: Some(self.uid(name)),
            generation: Some(1),
            ..ObjectMeta::default()
        };
        let image = NodeImage { metadata, spec: NodeImageSpec::default(), status: None };
        Outcome::Written(self.keep_image(image))
    }

    fn patch_image(&mut self, image: NodeImage, operations: Vec<Value>) -> Outcome<NodeImage> {
        let Some(mut new) = patched(&image, operations) else { return Outcome::Collided(Box::new(image)) };
        new.status.clone_from(&image.status);
        if new.spec.images.len() > self.most_images {
            return Outcome::Refused(format!("must have at most {} items", self.most_images));
        }
        if new == image {
            return Outcome::Written(image);
        }
        let generation = new.metadata.generation.unwrap();
        new.metadata.generation = Some(generation + i64::from(new.spec != image.spec));
        Outcome::Written(self.keep_image(new))
    }

    /// The controller writes a job.
    pub fn write_job(
        &mut self,
        key: &ObjectKey,
        uid: &str,
        write: Write,
        now: Timestamp,
    ) -> Outcome<ImagePullJob> {
        let Some(job) = self.jobs.get(key).cloned() else { return Outcome::Gone };
        if job.metadata.uid.as_deref() != Some(uid) {
            return Outcome::Collided(Box::new(job));
        }
        let new = match write {
            Write::Patch(operations) => {
                patched(&job, operations).map(|new| ImagePullJob { status: job.status.clone(), ..new })
            }
            Write::Status(operations) => {
                patched(&job, operations).map(|new| ImagePullJob { status: new.status, ..job.clone() })
            }
            Write::Delete => {
                self.delete_job(key, now);
                return self.jobs.get(key).cloned().map_or(Outcome::Gone, Outcome::Written);
            }
        };
        match new {
            Some(new) => Outcome::Written(self.keep_job(job, new)),
            None => Outcome::Collided(Box::new(job)),
        }
    }

    /// What reading a Secret that jobs name tells.
    pub fn read_source(&self, key: &SourceKey) -> SourceState {
        self.sources.get(key).map_or(SourceState::Missing, |held| SourceState::Present(content(*held)))
    }

    /// The controller writes a copy. `None` if it is gone.
    pub fn write_copy(&mut self, source: &SourceKey, action: secret::Action) -> Result<Option<Copy>, String> {
        let held = self.sources.get(source).copied();
        match action {
            secret::Action::Create { name, references } => {
                let content = content(held.ok_or("the Secret is gone")?);
                let uid = self.uid(&name);
                Ok(Some(self.keep_copy(Copy {
                    name,
                    uid,
                    source: Some(source.clone()),
                    references,
                    mode: Some("batch".to_owned()),
                    content,
                    is_terminating: false,
                })))
            }
            secret::Action::Update { name, references, has_new_data, .. } => {
                let Some(mut copy) = self.copies.get(&name).cloned() else { return Ok(None) };
                copy.references = references;
                if has_new_data {
                    copy.content = content(held.ok_or("the Secret is gone")?);
                }
                Ok(Some(self.keep_copy(copy)))
            }
            secret::Action::Delete { name, .. } => {
                self.copies.remove(&name);
                self.emit(Event::CopyGone(name));
                Ok(None)
            }
        }
    }

    /// A Secret of the config namespace is made or changed.
    pub fn keep_copy(&mut self, copy: Copy) -> Copy {
        self.copies.insert(copy.name.clone(), copy.clone());
        self.emit(Event::Copy(copy.clone()));
        copy
    }
}

fn content(held: u64) -> Content {
    Content { type_: "kubernetes.io/dockerconfigjson".to_owned(), fingerprint: held }
}

fn key_of(job: &ImagePullJob) -> ObjectKey {
    ObjectKey { namespace: job.metadata.namespace.clone().unwrap(), name: job.metadata.name.clone().unwrap() }
}

/// The object after a JSON patch; `None` if one of its tests fails.
pub fn patched<T: Serialize + DeserializeOwned>(object: &T, operations: Vec<Value>) -> Option<T> {
    let mut value = json!(object);
    let patch: json_patch::Patch = serde_json::from_value(Value::Array(operations)).unwrap();
    match json_patch::patch(&mut value, &patch) {
        Ok(()) => Some(serde_json::from_value(value).unwrap()),
        Err(error) if matches!(error.kind, json_patch::PatchErrorKind::TestFailed) => None,
        Err(error) => panic!("{error} in {patch}"),
    }
}
