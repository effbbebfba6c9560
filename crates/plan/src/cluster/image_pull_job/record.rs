//! One ImagePullJob, and what is derived from it once instead of at every pass.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use prewarm_api::kruise::{IMAGE_LIST_PULL_JOB, ImagePullJob, SecretReference};
use prewarm_api::reference_object::ObjectReference;

use super::demand::demand;
use super::roll::{Counts, Roll};
use super::standing::Claim;
use super::status::number;
use super::{UnknownNodes, is_finished};
use crate::cluster::{Kind, Target, Ticket};
use crate::demand::Demand;
use crate::object::attempts::Attempts;
use crate::object::store::Entry;
use crate::object::version::version;
use crate::object::{NodeName, ObjectKey, SourceKey, Uid};
use crate::time::stamp;

/// One job.
#[derive(Clone, Debug)]
pub struct Job {
    /// The object.
    pub object: ImagePullJob,
    /// Where it is.
    pub key: ObjectKey,
    /// What it wants of nodes.
    pub demand: Demand,
    /// Its nodes, while it is not over.
    pub roll: Option<Roll>,
    /// How many matching pods there are on each node, for a job that selects by pods.
    pub pods: HashMap<NodeName, usize>,
    /// The Secrets that its pulls use.
    pub secrets: Vec<SecretReference>,
    /// Secrets that it names and that do not exist.
    pub missing_secrets: Vec<String>,
    /// Why its Secrets are not ready.
    pub secrets_wait: Option<String>,
    /// Names in its selector that no NodeImage has; `None` if that has to be looked up again.
    pub unknown_nodes: Option<UnknownNodes>,
    /// Writes to it.
    pub attempts: Attempts,
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
        let metadata = &object.metadata;
        let key = ObjectKey::of(metadata);
        Self {
            key,
            demand: demand(&object),
            object,
            roll: None,
            pods: HashMap::new(),
            secrets: Vec::new(),
            missing_secrets: Vec::new(),
            secrets_wait: None,
            unknown_nodes: None,
            attempts: Attempts::default(),
            written_at: None,
            seen_counts: None,
            begun_at: None,
            is_abandoned: false,
        }
    }

    /// The job has another form. Returns whether it asks something else than before.
    pub fn renew(&mut self, object: ImagePullJob) -> bool {
        let has_changed = self.object.spec != object.spec;
        if has_changed {
            self.demand = demand(&object);
            self.unknown_nodes = None;
        }
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

    /// The Secrets of its namespace that it names, each once.
    pub fn sources(&self) -> BTreeSet<SourceKey> {
        self.demand
            .secrets
            .iter()
            .map(|name| SourceKey { namespace: self.key.namespace.clone(), name: name.clone() })
            .collect()
    }

    /// Whether there are any.
    pub fn names_secrets(&self) -> bool {
        !self.demand.secrets.is_empty()
    }

    /// The object with the counts of this moment: a child's status is written less often than its list looks at it.
    pub fn live_object(&self) -> Cow<'_, ImagePullJob> {
        let (Some(roll), Some(begun_at)) = (&self.roll, self.begun_at.filter(|_| self.is_active())) else {
            return Cow::Borrowed(&self.object);
        };
        let mut object = self.object.clone();
        let counts = roll.counts();
        let status = object.status.get_or_insert_default();
        status.start_time.get_or_insert(Time(stamp(begun_at)));
        status.desired = number(counts.desired);
        status.active = number(counts.active);
        status.succeeded = number(counts.succeeded);
        status.failed = number(counts.failed);
        Cow::Owned(object)
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

    /// How entries name it.
    pub fn reference(&self) -> ObjectReference {
        self.demand.owner.clone()
    }

    /// The UID of the ImageListPullJob that made it.
    pub fn list_uid(&self) -> Option<&str> {
        owner_list(&self.object)
    }

    /// Whether it names a Secret that its pulls cannot use, be it that nobody has looked yet.
    pub fn lacks_secret(&self) -> bool {
        self.names_secrets() && self.secrets.len() < self.sources().len()
    }

    /// What settles where a node is for it.
    pub fn claim(&self, is_member: bool) -> Option<Claim<'_>> {
        Some(Claim {
            uid: self.object.metadata.uid.as_deref()?,
            key: self.demand.image.as_ref()?,
            is_lasting: self.demand.is_lasting(),
            secrets: &self.secrets,
            lacks_secret: self.lacks_secret(),
            is_member,
        })
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
