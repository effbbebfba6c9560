//! One row for each job, and remarks on the jobs that were named. Cron jobs have a table of their own.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use prewarm_api::kruise::{self, ImagePullJob};
use prewarm_api::names::condition::{NODES_FOUND, PROGRESSING, READY, SECRETS_READY};
use prewarm_api::ofen::{self, IMAGE_PREFETCH, ImagePrefetch};
use prewarm_plan::cluster::image_pull_job::estimate::Progress;
use serde::Serialize;

use super::crons;
use crate::answer::Exit;
use crate::crons::Summary;
use crate::jobs::{Group, Job, State};
use crate::prefetches;
use crate::show::{self, Cell, Column, Look, ago, counted, duration, speed, table};

const COLUMNS: [Column; 11] = [
    Column::new("NAME"),
    Column::new("STATE"),
    Column::new("NODES"),
    Column::new("PULLING"),
    Column::new("FAILED"),
    Column::wide("BYTES"),
    Column::new("SPEED"),
    Column::new("LEFT"),
    Column::new("AGE"),
    Column::new("IMAGES"),
    Column::wide("MESSAGE"),
];

#[derive(Debug, Serialize)]
pub struct Report {
    pub items: Vec<Row>,
    /// The cron jobs; `None` if they cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crons: Option<Vec<Summary>>,
    #[serde(skip)]
    pub has_namespaces: bool,
    /// Whether the jobs were named, so that details are shown.
    #[serde(skip)]
    pub is_detailed: bool,
    /// The line that is printed if there is nothing to show.
    #[serde(skip)]
    pub nothing: String,
}

/// One pull job or ImagePrefetch.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    kind: &'static str,
    namespace: String,
    name: String,
    state: State,
    images: Vec<String>,
    nodes: i32,
    succeeded: i32,
    active: i32,
    failed: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_done: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_total: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_per_second: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds_left: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    created: Option<Timestamp>,
    message: String,
    /// What a person has to know or do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failures: Vec<Group>,
    #[serde(skip)]
    age: String,
}

impl Row {
    /// The row of a job, with the reasons of its failures if they were looked up.
    pub fn of(job: &Job, failures: Vec<Group>, now: Timestamp) -> Self {
        let status = job.status();
        let progress = Progress::of(&status, now);
        let left = progress.filter(|_| job.ended_at().is_none()).and_then(|progress| progress.left());
        let created = job.metadata().creation_timestamp.as_ref().map(|Time(time)| *time);
        Self {
            kind: job.kind(),
            namespace: job.namespace().to_owned(),
            name: job.name().to_owned(),
            state: State::of(job),
            images: job.images().into_iter().map(str::to_owned).collect(),
            nodes: status.desired,
            succeeded: status.succeeded,
            active: status.active,
            failed: status.failed,
            bytes_done: status.bytes_done,
            bytes_total: status.bytes_total,
            bytes_per_second: progress.and_then(|progress| progress.speed()),
            seconds_left: left.map(|left| left.as_secs()),
            created,
            message: message(job),
            notes: notes(job),
            failures,
            age: created.map_or("-".to_owned(), |created| ago(created, now)),
        }
    }

    /// The row of an ImagePrefetch. It tells neither bytes nor an end: it never ends.
    pub fn of_prefetch(prefetch: &ImagePrefetch, failures: Vec<Group>, now: Timestamp) -> Self {
        let metadata = &prefetch.metadata;
        let status = prefetch.status.clone().unwrap_or_default();
        let created = metadata.creation_timestamp.as_ref().map(|Time(time)| *time);
        let ready = status.conditions.iter().flatten().find(|condition| condition.type_ == READY);
        Self {
            kind: IMAGE_PREFETCH,
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
            state: prefetches::state(prefetch),
            images: prefetch.spec.images.clone(),
            nodes: status.desired_nodes,
            succeeded: status.image_pulled_nodes,
            active: prefetches::number(&status),
            failed: status.image_pull_failed_nodes,
            bytes_done: None,
            bytes_total: None,
            bytes_per_second: None,
            seconds_left: None,
            created,
            message: ready.map(|condition| condition.message.clone()).unwrap_or_default(),
            notes: prefetches::notes(prefetch),
            failures,
            age: created.map_or("-".to_owned(), |created| ago(created, now)),
        }
    }

    /// Its name in the output of kubectl.
    fn full_name(&self) -> String {
        let group = if self.kind == IMAGE_PREFETCH { ofen::GROUP } else { kruise::GROUP };
        format!("{}.{group}/{}", self.kind.to_lowercase(), self.name)
    }

    fn cells(&self) -> Vec<Cell> {
        let left = self.seconds_left.map(std::time::Duration::from_secs);
        let images = match self.images.as_slice() {
            [one] => one.clone(),
            many => counted(many.len(), "image"),
        };
        let bytes = match (self.bytes_done, self.bytes_total) {
            (None, None) => "-".to_owned(),
            (done, total) => format!("{} of {}", show::bytes(done), show::bytes(total)),
        };
        vec![
            format!("{}/{}", self.kind.to_lowercase(), self.name).into(),
            Cell::toned(format!("{:?}", self.state), self.state.tone()),
            format!("{}/{}", self.succeeded, self.nodes).into(),
            self.active.to_string().into(),
            Cell::bad_count(self.failed),
            bytes.into(),
            speed(self.bytes_per_second).into(),
            left.map_or("-".to_owned(), duration).into(),
            self.age.clone().into(),
            images.into(),
            self.message.clone().into(),
        ]
    }

    /// The lines about it below the table.
    fn remarks(&self) -> String {
        let notes = self.notes.iter().map(|note| format!("\n{}: {note}\n", self.name));
        notes.chain(self.failures.iter().map(|group| group.remark(&self.name))).collect()
    }
}

impl Report {
    /// Whether a job failed on some node, or a cron job needs attention.
    fn has_failed(&self) -> bool {
        let is_bad = |row: &Row| row.state == State::Failed || row.failed > 0;
        self.items.iter().any(is_bad) || self.crons().iter().any(|cron| cron.state.is_bad())
    }

    fn crons(&self) -> &[Summary] {
        self.crons.as_deref().unwrap_or_default()
    }
}

impl show::Report for Report {
    fn text(&self, look: Look) -> String {
        let mut columns = COLUMNS.to_vec();
        let mut rows: Vec<Vec<Cell>> = self.items.iter().map(Row::cells).collect();
        if self.has_namespaces {
            columns.insert(0, Column::new("NAMESPACE"));
            for (cells, row) in rows.iter_mut().zip(&self.items) {
                cells.insert(0, row.namespace.clone().into());
            }
        }
        let jobs = table(&columns, rows, look);
        let crons = crons::text(self.crons(), self.has_namespaces, look);
        let gap = if jobs.is_empty() || crons.is_empty() { "" } else { "\n" };
        let of_jobs: String = self.items.iter().map(Row::remarks).collect();
        let of_crons: String =
            self.crons().iter().map(|cron| crons::remarks(cron, self.is_detailed)).collect();
        [jobs.as_str(), gap, &crons, &of_jobs, &of_crons].concat()
    }

    fn names(&self) -> Vec<String> {
        self.items.iter().map(Row::full_name).chain(self.crons().iter().map(Summary::full_name)).collect()
    }

    fn remark(&self) -> String {
        let is_empty = self.items.is_empty() && self.crons().is_empty();
        if is_empty { self.nothing.clone() } else { String::new() }
    }

    fn exit(&self) -> Exit {
        Exit::found(self.is_detailed && self.has_failed())
    }
}

fn message(job: &Job) -> String {
    match job {
        Job::One(one) => one.status.as_ref().and_then(|status| status.message.clone()).unwrap_or_default(),
        Job::List(list, _) => list.status.as_ref().map_or(String::new(), |status| {
            format!("{} of {} images are on every node", status.succeeded, status.desired)
        }),
    }
}

/// The messages of bad conditions, each once, and a note if no controller has looked at the job.
fn notes(job: &Job) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for note in job.parts().iter().flat_map(|part| troubles(part)) {
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    if State::of(job) == State::New {
        notes.push(
            "no controller has looked at the job yet; check that `prewarm controller` is running".to_owned(),
        );
    }
    notes
}

fn troubles(job: &ImagePullJob) -> Vec<String> {
    let conditions = job.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
    let is_over = job.status.as_ref().is_some_and(|status| status.completion_time.is_some());
    let is_trouble =
        |type_: &str| matches!(type_, NODES_FOUND | SECRETS_READY) || (type_ == PROGRESSING && !is_over);
    let troubles = conditions.into_iter().filter(|one| one.status == "False" && is_trouble(&one.type_));
    troubles.map(|condition| condition.message).collect()
}
