//! A small API server in memory: objects, their versions, and what watches say about them.

use std::collections::{BTreeMap, VecDeque};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use prewarm_api::kruise::{ImageListPullJob, ImagePullJob, NodeImage};
use prewarm_api::ofen::{ImagePrefetch, NodeImageSet};
use prewarm_plan::cluster::secret::{Content, Copy};
use prewarm_plan::cluster::{Input, Kind};
use prewarm_plan::object::{ObjectKey, SourceKey};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// One watch for each kind: its events come in order, those of others may come earlier or later.
pub const WATCHES: usize = 7;

/// The watch that says this.
fn watch(input: &Input) -> usize {
    let kind = match input {
        Input::Seen(object) => object.kind(),
        Input::Gone { kind, .. } => *kind,
        input => panic!("no watch says {input:?}"),
    };
    match kind {
        Kind::Node => 0,
        Kind::NodeImage => 1,
        Kind::ImagePullJob => 2,
        Kind::Secret => 3,
        Kind::ImageListPullJob => 4,
        Kind::ImagePrefetch => 5,
        Kind::NodeImageSet => 6,
        kind => panic!("there is no watch of {kind:?}"),
    }
}

pub(super) fn gone(kind: Kind, key: ObjectKey, uid: Option<String>) -> Input {
    Input::Gone { kind, key, uid: uid.map(|uid| uid.as_str().into()) }
}

pub(super) fn cluster_key(name: &str) -> ObjectKey {
    ObjectKey { namespace: String::new(), name: name.to_owned() }
}

/// What does not arrive as it was written: definitions of another version drop it, or a webhook.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is another thing that does not stay")]
pub struct Meddles {
    /// The conditions of jobs are dropped.
    pub with_conditions: bool,
    /// The owners of tags are dropped.
    pub with_owners: bool,
    /// From where tags come is dropped.
    pub with_origins: bool,
    /// The policies of ImagePullJobs that are made become others.
    pub with_children: bool,
}

/// All objects.
#[derive(Clone, Debug)]
pub struct Store {
    pub nodes: BTreeMap<String, Node>,
    pub images: BTreeMap<String, NodeImage>,
    pub jobs: BTreeMap<ObjectKey, ImagePullJob>,
    pub lists: BTreeMap<ObjectKey, ImageListPullJob>,
    pub prefetches: BTreeMap<ObjectKey, ImagePrefetch>,
    pub sets: BTreeMap<String, NodeImageSet>,
    /// Secrets that jobs may name, with a number for what they hold.
    pub sources: BTreeMap<SourceKey, u64>,
    /// Secrets of the config namespace.
    pub copies: BTreeMap<String, Copy>,
    /// The schema's bound on the images of a NodeImage.
    pub most_images: usize,
    /// What does not arrive as it was written.
    pub meddles: Meddles,
    events: [VecDeque<Input>; WATCHES],
    version: u64,
    uids: u64,
}

impl Default for Store {
    fn default() -> Self {
        Self {
            nodes: BTreeMap::new(),
            images: BTreeMap::new(),
            jobs: BTreeMap::new(),
            lists: BTreeMap::new(),
            prefetches: BTreeMap::new(),
            sets: BTreeMap::new(),
            sources: BTreeMap::new(),
            copies: BTreeMap::new(),
            most_images: 256,
            meddles: Meddles::default(),
            events: Default::default(),
            version: 0,
            uids: 0,
        }
    }
}

impl Store {
    /// Everything there is, as a watch that begins tells it.
    pub fn all(&self) -> Vec<Input> {
        let nodes = self.nodes.values().cloned().map(Input::seen);
        let images = self.images.values().cloned().map(Input::seen);
        let jobs = self.jobs.values().cloned().map(Input::seen);
        let copies = self.copies.values().cloned().map(Input::seen);
        let lists = self.lists.values().cloned().map(Input::seen);
        let prefetches = self.prefetches.values().cloned().map(Input::seen);
        let sets = self.sets.values().cloned().map(Input::seen);
        nodes.chain(images).chain(lists).chain(jobs).chain(copies).chain(prefetches).chain(sets).collect()
    }

    /// The next event of a watch.
    pub fn event(&mut self, watch: usize) -> Option<Input> {
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

    pub(super) fn emit(&mut self, input: Input) {
        self.events[watch(&input)].push_back(input);
    }

    pub(super) fn touch(&mut self, metadata: &mut ObjectMeta) {
        self.version += 1;
        metadata.resource_version = Some(self.version.to_string());
    }

    pub(super) fn uid(&mut self, of: &str) -> String {
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
        self.emit(Input::seen(node));
    }

    /// A Node is deleted.
    pub fn delete_node(&mut self, name: &str) {
        if self.nodes.remove(name).is_some() {
            self.emit(gone(Kind::Node, cluster_key(name), None));
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

    pub(super) fn keep_image(&mut self, mut image: NodeImage) -> NodeImage {
        self.touch(&mut image.metadata);
        self.images.insert(image.metadata.name.clone().unwrap(), image.clone());
        self.emit(Input::seen(image.clone()));
        image
    }

    /// A NodeImage is deleted.
    pub fn delete_image(&mut self, name: &str) {
        if let Some(image) = self.images.remove(name) {
            self.emit(gone(Kind::NodeImage, cluster_key(name), image.metadata.uid));
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
        self.emit(Input::seen(job));
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
    pub(super) fn keep_job(&mut self, old: ImagePullJob, mut new: ImagePullJob) -> ImagePullJob {
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
            self.emit(gone(Kind::ImagePullJob, key, new.metadata.uid.clone()));
        } else {
            self.jobs.insert(key, new.clone());
            self.emit(Input::seen(new.clone()));
        }
        new
    }

    /// A list is made.
    pub fn create_list(&mut self, mut list: ImageListPullJob) {
        self.touch(&mut list.metadata);
        self.lists.insert(ObjectKey::of(&list.metadata), list.clone());
        self.emit(Input::seen(list));
    }

    /// A person deletes a list. Its children go when the garbage collector comes to them.
    pub fn delete_list(&mut self, key: &ObjectKey) {
        if let Some(list) = self.lists.remove(key) {
            self.emit(gone(Kind::ImageListPullJob, key.clone(), list.metadata.uid));
        }
    }

    /// A Secret of the config namespace is made or changed.
    pub fn keep_copy(&mut self, copy: Copy) -> Copy {
        self.copies.insert(copy.name.clone(), copy.clone());
        self.emit(Input::seen(copy.clone()));
        copy
    }
}

pub(super) fn content(held: u64) -> Content {
    Content { type_: "kubernetes.io/dockerconfigjson".to_owned(), fingerprint: held }
}

pub(super) fn key_of(job: &ImagePullJob) -> ObjectKey {
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
