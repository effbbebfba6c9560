//! One row for each node.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use prewarm_api::kruise::{ImageTagStatus, NodeImage, NodeImageStatus, PullPhase};
use serde::Serialize;

use crate::show::{self, Cell, Column, Look, ago, bytes, table};

const COLUMNS: [Column; 9] = [
    Column::new("NODE"),
    Column::new("WANTED"),
    Column::new("PRESENT"),
    Column::new("PULLING"),
    Column::wide("WAITING"),
    Column::new("FAILED"),
    Column::new("PULLED"),
    Column::new("FREE DISK"),
    Column::new("LAST REPORT"),
];

#[derive(Debug, Serialize)]
pub struct Report {
    items: Vec<Row>,
    /// The labels that the nodes were selected by.
    #[serde(skip)]
    selector: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    node: String,
    wanted: usize,
    present: usize,
    pulling: usize,
    waiting: usize,
    failed: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_done: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    free_bytes: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    capacity_bytes: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_report: Option<Timestamp>,
    #[serde(skip)]
    reported: String,
}

impl Report {
    pub fn of<'a>(
        images: impl IntoIterator<Item = &'a NodeImage>,
        selector: Option<String>,
        now: Timestamp,
    ) -> Self {
        Self { items: images.into_iter().map(|image| Row::of(image, now)).collect(), selector }
    }
}

impl Row {
    fn of(image: &NodeImage, now: Timestamp) -> Self {
        let status = image.status.clone().unwrap_or_default();
        let statuses: Vec<&ImageTagStatus> = tags(&status).collect();
        let count = |phase| statuses.iter().filter(|tag| tag.phase == phase).count();
        let last_report = last_report(image);
        let disk = status.image_filesystem.as_ref();
        let wanted = image.spec.images.values().map(|image| image.tags.len()).sum();
        let (present, pulling) = (count(PullPhase::Succeeded), count(PullPhase::Pulling));
        let failed = count(PullPhase::Failed);
        Self {
            node: image.metadata.name.clone().unwrap_or_default(),
            wanted,
            present,
            pulling,
            // Images that the node has not reported are waiting, too.
            waiting: wanted.saturating_sub(present + pulling + failed),
            failed,
            bytes_done: statuses.iter().filter_map(|tag| tag.bytes_done).reduce(i64::saturating_add),
            free_bytes: disk.map(|disk| disk.free_bytes),
            capacity_bytes: disk.map(|disk| disk.capacity_bytes),
            last_report,
            reported: last_report.map_or("never".to_owned(), |last| format!("{} ago", ago(last, now))),
        }
    }

    fn cells(&self) -> Vec<Cell> {
        vec![
            self.node.clone().into(),
            self.wanted.to_string().into(),
            self.present.to_string().into(),
            self.pulling.to_string().into(),
            self.waiting.to_string().into(),
            Cell::bad_count(i64::try_from(self.failed).unwrap_or(i64::MAX)),
            bytes(self.bytes_done).into(),
            bytes(self.free_bytes).into(),
            self.reported.clone().into(),
        ]
    }
}

impl show::Report for Report {
    fn text(&self, look: Look) -> String {
        table(&COLUMNS, self.items.iter().map(Row::cells), look)
    }

    fn names(&self) -> Vec<String> {
        let group = prewarm_api::kruise::GROUP;
        self.items.iter().map(|row| format!("nodeimage.{group}/{}", row.node)).collect()
    }

    fn remark(&self) -> String {
        match &self.selector {
            _ if !self.items.is_empty() => String::new(),
            Some(selector) => format!("No node has the labels {selector}.\n"),
            None => "No NodeImages found; check that `prewarm controller` is running.\n".to_owned(),
        }
    }
}

/// The tags that a node reports.
fn tags(status: &NodeImageStatus) -> impl Iterator<Item = &ImageTagStatus> {
    status.image_statuses.iter().flat_map(|images| images.values()).flat_map(|image| &image.tags)
}

/// When the agent last reported; agents write nothing while nothing changes. The server records the time of each
/// write of the status; where it does not, the latest time in the status itself counts.
pub fn last_report(image: &NodeImage) -> Option<Timestamp> {
    let managed = image.metadata.managed_fields.iter().flatten();
    let written = managed.filter(|entry| entry.subresource.as_deref() == Some("status"));
    let written = written.filter_map(|entry| entry.time.as_ref());
    let status = image.status.as_ref();
    let reported = status.into_iter().flat_map(tags);
    let reported = reported.flat_map(|tag| [&tag.start_time, &tag.completion_time, &tag.lost_at]).flatten();
    let first = status.and_then(|status| status.first_sync_status.as_ref()?.sync_at.as_ref());
    written.chain(reported).chain(first).map(|Time(time)| *time).max()
}
