//! One ImagePullJob, as far as its demand is not concerned.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use prewarm_api::kruise::{IMAGE_LIST_PULL_JOB, ImagePullJob, ImagePullJobStatus};

use super::demand::demand;
use super::is_finished;
use crate::cluster::demands::roll::{Counts, Roll};
use crate::cluster::demands::{DemandRecord, State, Statement};
use crate::cluster::{Kind, Target, Ticket};
use crate::object::attempts::Attempts;
use crate::object::echo::Echo;
use crate::object::store::Entry;
use crate::object::version::version;
use crate::object::{ObjectKey, OwnerKey, Uid};

/// One job.
#[derive(Clone, Debug)]
pub struct Job {
    /// The object.
    pub object: ImagePullJob,
    /// Where it is.
    pub key: ObjectKey,
    /// Writes to it.
    pub attempts: Attempts,
    /// What comes back of its status.
    pub echo: Echo<ImagePullJobStatus>,
    /// When its status was last written.
    pub written_at: Option<Timestamp>,
    /// The counts that its list has seen.
    pub seen_counts: Option<Counts>,
    /// When it was first looked at.
    pub begun_at: Option<Timestamp>,
    /// Whether the list that made it is gone, so that the garbage collector is about to take it.
    pub is_abandoned: bool,
}

impl Job {
    /// Reads a job.
    pub fn new(object: ImagePullJob) -> Self {
        Self {
            key: ObjectKey::of(&object.metadata),
            object,
            attempts: Attempts::default(),
            echo: Echo::default(),
            written_at: None,
            seen_counts: None,
            begun_at: None,
            is_abandoned: false,
        }
    }

    /// The job has another form. Returns whether it asks something else than before.
    pub fn renew(&mut self, mut object: ImagePullJob) -> bool {
        object.status = self.echo.read(object.status.take());
        let has_changed = self.object.spec != object.spec;
        // Whoever took the owner off wants the job to live on.
        self.is_abandoned &= owner_list(&object).is_some();
        self.object = object;
        has_changed
    }

    /// Whether it is being deleted.
    pub fn is_terminating(&self) -> bool {
        self.object.metadata.deletion_timestamp.is_some()
    }

    /// Whether it is at work: neither over nor on its way out.
    pub fn is_active(&self) -> bool {
        !self.is_terminating() && !self.is_abandoned && !is_finished(&self.object)
    }

    /// What it says of its demand; what it wants only if it asks something else than before.
    pub fn statement(&self, uid: &Uid, is_new_spec: bool) -> Statement {
        let metadata = &self.object.metadata;
        let state = match () {
            () if self.is_abandoned => State::Abandoned,
            () if self.is_active() => State::Active,
            () => State::Over,
        };
        Statement {
            target: Target::Job(uid.clone()),
            key: self.key.clone(),
            made_at: metadata.creation_timestamp.as_ref().map(|Time(made)| *made),
            demand: is_new_spec.then(|| demand(&self.object)),
            state,
            is_edited: metadata.generation != Some(1),
        }
    }

    /// The counts of this moment, while it is at work.
    pub fn live_counts(&self, record: &DemandRecord) -> Option<Counts> {
        let is_begun = self.begun_at.is_some() && self.is_active();
        record.roll.as_ref().filter(|_| is_begun).map(Roll::counts)
    }

    /// For a write to the job itself.
    pub fn ticket(&self, uid: &Uid) -> Ticket {
        Ticket {
            asker: Target::Job(uid.clone()),
            kind: Kind::ImagePullJob,
            key: self.key.clone(),
            uid: Some(uid.clone()),
        }
    }

    /// The ImageListPullJob that made it, by what it says itself.
    pub fn list(&self) -> Option<OwnerKey> {
        owner_list(&self.object).map(|uid| OwnerKey::new(&self.key.namespace, uid))
    }
}

impl Entry for Job {
    fn key(&self) -> &ObjectKey {
        &self.key
    }

    fn version(&self) -> &str {
        version(&self.object.metadata)
    }
}

fn owner_list(object: &ImagePullJob) -> Option<&str> {
    let owners = object.metadata.owner_references.as_deref().unwrap_or_default();
    let list = owners.iter().find(|owner| owner.kind == IMAGE_LIST_PULL_JOB);
    list.map(|owner| owner.uid.as_str())
}
