//! One AdvancedCronJob.

use std::collections::BTreeSet;

use prewarm_api::kruise::{ADVANCED_CRON_JOB, AdvancedCronJob, TemplateKind};

use crate::advanced_cron_job::runs::Runs;
use crate::advanced_cron_job::timetable::{self, Trouble};
use crate::ledger::attempts::Attempts;
use crate::ledger::command::{News, Telling};
use crate::ledger::reference;
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
    /// What people are told when the write that is under way has arrived.
    pub tellings: Vec<Telling>,
    /// What is counted when the write that is under way has arrived.
    pub runs: Runs,
    /// Writes to it.
    pub attempts: Attempts,
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
            tellings: Vec::new(),
            runs: Runs::default(),
            attempts: Attempts::default(),
            run_attempts: Attempts::default(),
        }
    }

    /// Takes a newer object.
    pub fn renew(&mut self, object: AdvancedCronJob) {
        if self.object.spec != object.spec {
            // What was refused may be taken now.
            (self.refusal, self.run_attempts) = (None, Attempts::default());
            self.schedule = timetable::read(&object.spec);
        }
        self.object = object;
        let status = self.object.status.as_ref();
        let told = status.iter().flat_map(|status| &status.active).flatten();
        let told: BTreeSet<&str> = told.filter_map(|run| run.uid.as_deref()).collect();
        let deleting = &self.deleting;
        self.replaced.retain(|uid| told.contains(&**uid) || deleting.contains(uid));
    }

    /// What it makes.
    pub fn kind(&self) -> Option<TemplateKind> {
        self.object.spec.template.kind()
    }

    /// Something that people hear of it.
    pub fn telling(&self, news: News) -> Telling {
        news.about(reference::object(ADVANCED_CRON_JOB, &self.object.metadata))
    }
}
