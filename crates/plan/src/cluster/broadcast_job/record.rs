//! One BroadcastJob.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use prewarm_api::kruise::{BROADCAST_JOB, BroadcastJob, BroadcastJobPhase, BroadcastJobStatus};
use prewarm_api::reference_object::ObjectReference;

use super::is_over;
use super::roll::Roll;
use super::shape::Shape;
use crate::cluster::command::{Event, Notice};
use crate::cluster::reference;
use crate::cluster::size::JobState;
use crate::object::attempts::Attempts;
use crate::object::echo::Echo;
use crate::object::store::Entry;
use crate::object::version::version;
use crate::object::{NodeName, ObjectKey, Uid};

/// One job.
#[derive(Clone, Debug)]
pub struct Broadcast {
    /// The object.
    pub object: BroadcastJob,
    /// Where it is.
    pub key: ObjectKey,
    /// What its pods ask of a node, or why that cannot be read.
    pub shape: Result<Shape, String>,
    /// Its nodes and pods.
    pub roll: Roll,
    /// The names of pods that are being made, and their nodes.
    pub creating: BTreeMap<String, NodeName>,
    /// UIDs of pods that are being deleted.
    pub deleting: BTreeSet<Uid>,
    /// How many pods may be made at once: it begins at one and grows with each that is taken, so that a refusal costs
    /// one request and not a thousand (kruise R120).
    pub window: usize,
    /// Why the API server takes no pod.
    pub refusal: Option<String>,
    /// Whether there is an event that there are too many pods.
    pub has_warned_of_too_many: bool,
    /// What is recorded when the write that is under way has arrived.
    pub events: Vec<Event>,
    /// Writes to it.
    pub attempts: Attempts,
    /// What comes back of its status.
    pub echo: Echo<BroadcastJobStatus>,
    /// Pauses after trouble with its pods.
    pub pod_attempts: Attempts,
    /// When its status was last written.
    pub written_at: Option<Timestamp>,
}

impl Broadcast {
    /// Reads a job. Its roll is empty.
    pub fn new(object: BroadcastJob) -> Self {
        let metadata = &object.metadata;
        let key = ObjectKey::of(metadata);
        Self {
            shape: Shape::read(&object.spec.template),
            roll: Roll::new(object.spec.failure_policy.restart_limit.unwrap_or(0)),
            key,
            object,
            creating: BTreeMap::new(),
            deleting: BTreeSet::new(),
            window: 1,
            refusal: None,
            has_warned_of_too_many: false,
            events: Vec::new(),
            attempts: Attempts::default(),
            echo: Echo::default(),
            pod_attempts: Attempts::default(),
            written_at: None,
        }
    }

    /// Takes a newer object. Returns whether its roll has to be made anew.
    pub fn renew(&mut self, mut object: BroadcastJob) -> bool {
        object.status = self.echo.read(object.status.take());
        let is_edited = self.object.spec.template != object.spec.template
            || self.object.spec.failure_policy != object.spec.failure_policy;
        if self.object.spec != object.spec {
            // What was refused may be taken now.
            (self.refusal, self.pod_attempts, self.window) = (None, Attempts::default(), 1);
        }
        if is_edited {
            self.shape = Shape::read(&object.spec.template);
        }
        let was_over = is_over(&self.object);
        self.object = object;
        is_edited || was_over != is_over(&self.object)
    }

    /// Where it is in its life.
    pub fn state(&self) -> JobState {
        let has_failed =
            self.object.status.as_ref().and_then(|status| status.phase) == Some(BroadcastJobPhase::Failed);
        match () {
            () if self.object.metadata.deletion_timestamp.is_some() => JobState::Terminating,
            // One that never ends can fail all the same.
            () if has_failed => JobState::Failed,
            () if is_over(&self.object) => JobState::Succeeded,
            () if self.object.spec.paused => JobState::Paused,
            () => JobState::Running,
        }
    }

    /// How events name it.
    pub fn reference(&self) -> ObjectReference {
        reference::object(BROADCAST_JOB, &self.object.metadata)
    }

    /// As an event on this job.
    pub fn event(&self, notice: Notice) -> Event {
        notice.about(self.reference())
    }
}

impl Entry for Broadcast {
    fn key(&self) -> &ObjectKey {
        &self.key
    }

    fn version(&self) -> &str {
        version(&self.object.metadata)
    }
}
