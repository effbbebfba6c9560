//! A small API server in memory: objects, their versions, and what watches say about them.

use std::collections::{BTreeMap, VecDeque};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use prewarm_api::kruise::{ImageListPullJob, ImagePullJob, NodeImage};
use prewarm_plan::cluster::command::{Outcome, Verb, Write};
use prewarm_plan::cluster::node_image::silence::judged;
use prewarm_plan::cluster::secret::{self, Content, Copy, SourceState};
use prewarm_plan::cluster::{Input, Kind, Object};
use prewarm_plan::object::{ObjectKey, SourceKey};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// One watch for each kind: its events come in order, those of others may come earlier or later.
pub const WATCHES: usize = 5;

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
        kind => panic!("there is no watch of {kind:?}"),
    }
}

fn gone(kind: Kind, key: ObjectKey, uid: Option<String>) -> Input {
    Input::Gone { kind, key, uid: uid.map(|uid| uid.as_str().into()) }
}

fn cluster_key(name: &str) -> ObjectKey {
    ObjectKey { namespace: String::new(), name: name.to_owned() }
}

/// All objects.
#[derive(Clone, Debug)]
pub struct Store {
    pub nodes: BTreeMap<String, Node>,
    pub images: BTreeMap<String, NodeImage>,
    pub jobs: BTreeMap<ObjectKey, ImagePullJob>,
    pub lists: BTreeMap<ObjectKey, ImageListPullJob>,
    /// Secrets that jobs may name, with a number for what they hold.
    pub sources: BTreeMap<SourceKey, u64>,
    /// Secrets of the config namespace.
    pub copies: BTreeMap<String, Copy>,
    /// The schema's bound on the images of a NodeImage.
    pub most_images: usize,
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
    pub fn all(&self) -> Vec<Input> {
        let nodes = self.nodes.values().cloned().map(Input::seen);
        let images = self.images.values().cloned().map(Input::seen);
        let jobs = self.jobs.values().cloned().map(Input::seen);
        let copies = self.copies.values().cloned().map(Input::seen);
        let lists = self.lists.values().cloned().map(Input::seen);
        nodes.chain(images).chain(lists).chain(jobs).chain(copies).collect()
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

    fn emit(&mut self, input: Input) {
        self.events[watch(&input)].push_back(input);
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

    fn keep_image(&mut self, mut image: NodeImage) -> NodeImage {
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
            self.emit(gone(Kind::ImagePullJob, key, new.metadata.uid.clone()));
        } else {
            self.jobs.insert(key, new.clone());
            self.emit(Input::seen(new.clone()));
        }
        new
    }

    /// The controller writes an object.
    pub fn write(&mut self, write: Write, now: Timestamp) -> Outcome<Object> {
        let Write { ticket, verb } = write;
        let uid = ticket.uid.as_deref().unwrap_or_default();
        match (ticket.kind, verb) {
            (Kind::NodeImage, verb) => self.write_image(&ticket.key.name, uid, verb, now).map(Object::from),
            (Kind::ImagePullJob, Verb::Create(child)) => self.create_child(*child).map(Object::from),
            (Kind::ImageListPullJob, verb) => self.write_list(&ticket.key, verb).map(Object::from),
            (Kind::ImagePullJob, verb) => self.write_job(&ticket.key, uid, verb, now).map(Object::from),
            (Kind::Secret, Verb::Copy(source, action)) => self.write_copy(&source, action),
            (kind, verb) => panic!("there is no {kind:?} here: {verb:?}"),
        }
    }

    fn write_image(&mut self, name: &str, uid: &str, verb: Verb, now: Timestamp) -> Outcome<NodeImage> {
        if let Verb::Create(object) = verb {
            return self.create_image(name, *object);
        }
        let Some(image) = self.images.get(name).cloned() else { return Outcome::Gone };
        let is_that = *uid == image.metadata.uid.clone().unwrap();
        match verb {
            Verb::Delete if is_that => {
                self.delete_image(name);
                Outcome::Gone
            }
            Verb::Delete => Outcome::Collided(image),
            Verb::Patch(operations, _) => self.patch_image(image, operations),
            Verb::Judge(verdicts) => match judged(&image, &verdicts, now).filter(|_| is_that) {
                Some(status) => {
                    Outcome::Written(self.keep_image(NodeImage { status: Some(status), ..image }))
                }
                None => Outcome::Collided(image),
            },
            verb => panic!("no NodeImage is written like this: {verb:?}"),
        }
    }

    fn create_image(&mut self, name: &str, object: Value) -> Outcome<NodeImage> {
        if let Some(image) = self.images.get(name) {
            return Outcome::Collided(image.clone());
        }
        let mut image: NodeImage = serde_json::from_value(object).unwrap();
        image.metadata.uid = Some(self.uid(name));
        image.metadata.generation = Some(1);
        Outcome::Written(self.keep_image(image))
    }

    fn patch_image(&mut self, image: NodeImage, operations: Vec<Value>) -> Outcome<NodeImage> {
        let Some(mut new) = patched(&image, operations) else { return Outcome::Collided(image) };
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

    fn write_job(&mut self, key: &ObjectKey, uid: &str, verb: Verb, now: Timestamp) -> Outcome<ImagePullJob> {
        let Some(job) = self.jobs.get(key).cloned() else { return Outcome::Gone };
        if job.metadata.uid.as_deref() != Some(uid) {
            return Outcome::Collided(job);
        }
        let new = match verb {
            Verb::Patch(operations, _) => {
                patched(&job, operations).map(|new| ImagePullJob { status: job.status.clone(), ..new })
            }
            Verb::PatchStatus(operations) => {
                patched(&job, operations).map(|new| ImagePullJob { status: new.status, ..job.clone() })
            }
            Verb::Delete => {
                self.delete_job(key, now);
                return self.jobs.get(key).cloned().map_or(Outcome::Gone, Outcome::Written);
            }
            verb => panic!("no job is written like this: {verb:?}"),
        };
        match new {
            Some(new) => Outcome::Written(self.keep_job(job, new)),
            None => Outcome::Collided(job),
        }
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

    fn create_child(&mut self, object: Value) -> Outcome<ImagePullJob> {
        let mut child: ImagePullJob = serde_json::from_value(object).unwrap();
        let key = key_of(&child);
        if let Some(job) = self.jobs.get(&key) {
            return Outcome::Collided(job.clone());
        }
        child.metadata.uid = Some(self.uid(&key.name));
        child.metadata.generation = Some(1);
        self.touch(&mut child.metadata);
        self.jobs.insert(key, child.clone());
        self.emit(Input::seen(child.clone()));
        Outcome::Written(child)
    }

    fn write_list(&mut self, key: &ObjectKey, verb: Verb) -> Outcome<ImageListPullJob> {
        let Some(list) = self.lists.get(key).cloned() else { return Outcome::Gone };
        let operations = match verb {
            Verb::Patch(operations, _) | Verb::PatchStatus(operations) => operations,
            verb => panic!("no list is written like this: {verb:?}"),
        };
        let Some(mut new) = patched(&list, operations) else { return Outcome::Collided(list) };
        self.touch(&mut new.metadata);
        self.lists.insert(key.clone(), new.clone());
        self.emit(Input::seen(new.clone()));
        Outcome::Written(new)
    }

    /// What reading a Secret that jobs name tells.
    pub fn read_source(&self, key: &SourceKey) -> SourceState {
        self.sources.get(key).map_or(SourceState::Missing, |held| SourceState::Present(content(*held)))
    }

    fn write_copy(&mut self, source: &SourceKey, action: secret::Action) -> Outcome<Object> {
        match self.try_write_copy(source, action) {
            Ok(Some(copy)) => Outcome::Written(copy.into()),
            Ok(None) => Outcome::Gone,
            Err(trouble) => Outcome::Failed(Some(trouble)),
        }
    }

    fn try_write_copy(&mut self, source: &SourceKey, action: secret::Action) -> Result<Option<Copy>, String> {
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
                self.emit(gone(Kind::Secret, cluster_key(&name), None));
                Ok(None)
            }
        }
    }

    /// A Secret of the config namespace is made or changed.
    pub fn keep_copy(&mut self, copy: Copy) -> Copy {
        self.copies.insert(copy.name.clone(), copy.clone());
        self.emit(Input::seen(copy.clone()));
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
