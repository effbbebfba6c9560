//! What the small API server makes of the controller's writes and reads.

use jiff::Timestamp;
use prewarm_api::kruise::{ImageListPullJob, ImagePullJob, NodeImage};
use prewarm_plan::cluster::command::{Outcome, Verb, Write};
use prewarm_plan::cluster::node_image::silence::judged;
use prewarm_plan::cluster::secret::{self, Copy, SourceState};
use prewarm_plan::cluster::{Input, Kind, Object};
use prewarm_plan::object::{ObjectKey, SourceKey};
use serde_json::Value;

use super::store::{Store, cluster_key, content, gone, key_of, patched};

impl Store {
    /// The controller writes an object.
    pub fn write(&mut self, write: Write, now: Timestamp) -> Outcome<Object> {
        let Write { ticket, verb } = write;
        let uid = ticket.uid.as_deref().unwrap_or_default();
        match (ticket.kind, verb) {
            (Kind::NodeImage, verb) => self.write_image(&ticket.key.name, uid, verb, now).map(Object::from),
            (Kind::ImagePullJob, Verb::Create(child)) => self.create_child(*child).map(Object::from),
            (Kind::ImageListPullJob, verb) => self.write_list(&ticket.key, verb).map(Object::from),
            (Kind::ImagePullJob, verb) => self.write_job(&ticket.key, uid, verb, now).map(Object::from),
            (Kind::ImagePrefetch, verb) => self.write_prefetch(&ticket.key, uid, verb).map(Object::from),
            (Kind::NodeImageSet, verb) => self.write_set(&ticket.key.name, uid, verb, now).map(Object::from),
            (Kind::Secret, Verb::Copy(excerpt, action)) => self.write_copy(&excerpt.source, action),
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
        if self.meddles.with_owners {
            let tags = new.spec.images.values_mut().flat_map(|image| &mut image.tags);
            tags.for_each(|tag| tag.owner_references = None);
        }
        if self.meddles.with_origins {
            let tags = new.spec.images.values_mut().flat_map(|image| &mut image.tags);
            tags.for_each(|tag| (tag.registry_policy, tag.digest) = (None, None));
        }
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
                let keeps = !self.meddles.with_conditions;
                patched(&job, operations).map(|mut new| {
                    if let Some(status) = &mut new.status {
                        status.conditions = status.conditions.take().filter(|_| keeps);
                    }
                    ImagePullJob { status: new.status, ..job.clone() }
                })
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

    fn create_child(&mut self, object: Value) -> Outcome<ImagePullJob> {
        let mut child: ImagePullJob = serde_json::from_value(object).unwrap();
        let key = key_of(&child);
        if let Some(job) = self.jobs.get(&key) {
            return Outcome::Collided(job.clone());
        }
        child.metadata.uid = Some(self.uid(&key.name));
        child.metadata.generation = Some(1);
        child.spec.pull_policy.backoff_limit += i32::from(self.meddles.with_children);
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
}
