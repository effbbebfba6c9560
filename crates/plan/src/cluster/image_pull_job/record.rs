//! ImagePullJobs: what is remembered of each, how it is observed, and how it is read into a demand. Nothing is decided here; what has
//! changed is marked.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use prewarm_api::kruise::{
    API_VERSION, CompletionType, IMAGE_LIST_PULL_JOB, IMAGE_PULL_JOB, ImagePullJob, ImagePullJobStatus,
};
use prewarm_api::reference::ImageRef;

use super::is_finished;
use crate::cluster::demands::roll::{Counts, Roll};
use crate::cluster::demands::{DemandRecord, State, Statement};
use crate::cluster::interface::{About, Demands, Observe, Writes, owned};
use crate::cluster::{Kernel, Kind, Target, Ticket, reference};
use crate::demand::selection::{Selection, parallelism};
use crate::demand::{Demand, Limits, Source, Until};
use crate::object::attempts::Attempts;
use crate::object::echo::Echo;
use crate::object::store::{Admission, Entry};
use crate::object::version::version;
use crate::object::{ImageKey, ObjectKey, OwnerKey, Uid};

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

/// What a job wants of nodes.
pub fn demand(job: &ImagePullJob) -> Demand {
    let spec = &job.spec;
    let until = match spec.completion_policy.type_ {
        CompletionType::Never => Until::Withdrawn,
        CompletionType::Always => Until::Done {
            deadline_seconds: spec.completion_policy.active_deadline_seconds,
            ttl_seconds: spec.completion_policy.ttl_seconds_after_finished,
        },
    };
    Demand {
        owner: reference::object(IMAGE_PULL_JOB, &job.metadata),
        image: image(&spec.image),
        nodes: Selection::of(spec.selector.as_ref(), spec.pod_selector.as_ref()),
        at_once: parallelism(spec.parallelism.as_ref()),
        secrets: spec.pull_secrets.iter().flatten().cloned().collect(),
        pull_policy: spec.image_pull_policy,
        limits: Limits {
            timeout_seconds: spec.pull_policy.timeout_seconds,
            backoff_limit: spec.pull_policy.backoff_limit,
        },
        sandbox: spec.sandbox_config.clone(),
        source: Source::Anywhere,
        until,
    }
}

fn image(text: &str) -> Option<ImageKey> {
    let reference = ImageRef::parse(text).ok()?;
    Some(ImageKey { name: reference.name().to_owned(), tag: reference.tag().to_owned() })
}

impl Observe for ImagePullJob {
    const ABOUT: About = About {
        is_needed: true,
        can_be_left_out: true,
        demands: Demands::OfRegistries,
        ..About::new(API_VERSION, IMAGE_PULL_JOB, Writes::Both)
    };

    fn metadata(&self) -> Option<&ObjectMeta> {
        Some(&self.metadata)
    }

    fn observe(self, kernel: &mut Kernel, _now: Timestamp) {
        kernel.observe_job(self);
    }

    fn forget(kernel: &mut Kernel, key: &ObjectKey, uid: Option<&str>) {
        kernel.forget_job(key, uid);
    }

    fn held(kernel: &Kernel) -> Vec<(ObjectKey, Uid)> {
        owned(kernel.jobs.all.held())
    }

    fn released(kernel: &mut Kernel, key: &ObjectKey, uid: Uid) {
        kernel.demands.find_entries_of(uid);
        kernel.mark_sources_of(key);
    }

    fn visits(kernel: &Kernel, key: &ObjectKey) -> Option<u64> {
        let uid = kernel.jobs.all.uid(key)?;
        Some(kernel.demands.get(uid)?.roll.as_ref()?.visits())
    }
}

impl Kernel {
    /// An ImagePullJob is like this.
    fn observe_job(&mut self, mut object: ImagePullJob) {
        object.metadata.managed_fields = None;
        let Some(uid) = object.metadata.uid.as_deref().map(|uid| self.shared.text::<Uid>(uid)) else {
            return;
        };
        let key = ObjectKey::of(&object.metadata);
        let admission = self.jobs.all.admit(&key, &uid, version(&object.metadata));
        if let Admission::Replaces(other) = &admission {
            self.forget_job(&key, Some(&other.clone()));
        }
        let is_new_spec = match (admission, self.jobs.all.get_mut(&uid)) {
            (Admission::Stale, _) => return,
            (Admission::Known, Some(job)) => job.renew(object),
            _ => {
                self.jobs.all.insert(uid.clone(), Job::new(object));
                true
            }
        };
        self.place_job(&uid, is_new_spec);
    }

    /// Brings everything that depends on a job in line with it.
    fn place_job(&mut self, uid: &Uid, is_new_spec: bool) {
        let Some(job) = self.jobs.all.get(uid) else { return };
        let statement = job.statement(uid, is_new_spec);
        if let Some(list) = job.list() {
            self.agenda.mark(Target::List(list.uid.clone()));
            self.jobs.children.entry(list).or_default().insert(uid.clone());
        }
        let is_terminating = job.is_terminating();
        self.place_demand(uid, statement);
        if is_terminating {
            // What is kept for a while after its end goes with it.
            let sources = self.demands.get(uid).map(DemandRecord::sources).unwrap_or_default();
            self.agenda.mark_all(sources.into_iter().map(Target::Source));
        }
    }

    /// An ImagePullJob is gone. With a UID, only if it is still that one.
    fn forget_job(&mut self, key: &ObjectKey, uid: Option<&str>) {
        let Some((held, job)) = self.jobs.all.forget(key, uid) else { return };
        self.forget_demand(&held);
        if let Some(list) = job.list() {
            self.forget_child(&list, &held);
        }
        self.agenda.drop_target(Target::Job(held));
    }

    /// The list of these children is gone, and the garbage collector is about to take them one by one. They leave all nodes
    /// at once, so that each node is written once.
    pub(in crate::cluster) fn abandon_children(&mut self, list: &OwnerKey) {
        let children: Vec<Uid> = self.jobs.children.get(list).into_iter().flatten().cloned().collect();
        for uid in children {
            let Some(job) = self.jobs.all.get_mut(&uid) else { continue };
            if !std::mem::replace(&mut job.is_abandoned, true) {
                self.abandon_demand(&uid);
            }
        }
    }

    fn forget_child(&mut self, list: &OwnerKey, child: &Uid) {
        if let Some(children) = self.jobs.children.get_mut(list) {
            children.remove(child);
            if children.is_empty() {
                self.jobs.children.remove(list);
            }
        }
        self.agenda.mark(Target::List(list.uid.clone()));
    }
}
