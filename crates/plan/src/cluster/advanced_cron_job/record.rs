//! One AdvancedCronJob.

use std::collections::BTreeSet;

use prewarm_api::kruise::{ADVANCED_CRON_JOB, AdvancedCronJob, AdvancedCronJobStatus, TemplateKind};
use prewarm_api::reference_object::ObjectReference;

use super::runs::Runs;
use super::timetable::{self, Trouble};
use crate::cluster::command::{Event, Notice};
use crate::cluster::reference;
use crate::object::attempts::Attempts;
use crate::object::echo::Echo;
use crate::object::store::Entry;
use crate::object::version::version;
use crate::object::{ObjectKey, Uid};
use crate::schedule::Schedule;

/// One cron job.
#[derive(Clone, Debug)]
pub struct Cron {
    /// The object.
    pub object: AdvancedCronJob,
    /// Where it is.
    pub key: ObjectKey,
    /// Its schedule, or why it has none.
    pub schedule: Result<Schedule, Trouble>,
    /// Whether a run is being made.
    pub is_creating: bool,
    /// UIDs of runs that are being deleted.
    pub deleting: BTreeSet<Uid>,
    /// UIDs of runs that are or were deleted for the next one, until the status says so.
    pub replaced: BTreeSet<Uid>,
    /// Why the API server took no run.
    pub refusal: Option<String>,
    /// What is recorded when the write that is under way has arrived.
    pub events: Vec<Event>,
    /// What is counted when the write that is under way has arrived.
    pub runs: Runs,
    /// Writes to it.
    pub attempts: Attempts,
    /// What comes back of its status.
    pub echo: Echo<AdvancedCronJobStatus>,
    /// Pauses after trouble with its runs.
    pub run_attempts: Attempts,
}

impl Cron {
    /// Reads a cron job.
    pub fn new(object: AdvancedCronJob) -> Self {
        Self {
            key: ObjectKey::of(&object.metadata),
            schedule: timetable::read(&object.spec),
            object,
            is_creating: false,
            deleting: BTreeSet::new(),
            replaced: BTreeSet::new(),
            refusal: None,
            events: Vec::new(),
            runs: Runs::default(),
            attempts: Attempts::default(),
            echo: Echo::default(),
            run_attempts: Attempts::default(),
        }
    }

    /// Takes a newer object.
    pub fn renew(&mut self, mut object: AdvancedCronJob) {
        object.status = self.echo.read(object.status.take());
        if self.object.spec != object.spec {
            // What was refused may be taken now.
            (self.refusal, self.run_attempts) = (None, Attempts::default());
            self.schedule = timetable::read(&object.spec);
        }
        self.object = object;
        let status = self.object.status.as_ref();
        let active = status.iter().flat_map(|status| &status.active).flatten();
        let active: BTreeSet<&str> = active.filter_map(|run| run.uid.as_deref()).collect();
        let deleting = &self.deleting;
        self.replaced.retain(|uid| active.contains(&**uid) || deleting.contains(uid));
    }

    /// What it makes.
    pub fn kind(&self) -> Option<TemplateKind> {
        self.object.spec.template.kind()
    }

    /// How events name it.
    pub fn reference(&self) -> ObjectReference {
        reference::object(ADVANCED_CRON_JOB, &self.object.metadata)
    }

    /// As an event on it.
    pub fn event(&self, notice: Notice) -> Event {
        notice.about(self.reference())
    }
}

impl Entry for Cron {
    fn key(&self) -> &ObjectKey {
        &self.key
    }

    fn version(&self) -> &str {
        version(&self.object.metadata)
    }
}
