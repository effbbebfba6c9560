//! One row for each image of the named nodes.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use prewarm_api::kruise::{ImageTagSpec, ImageTagStatus, NodeImage, PullPhase};
use prewarm_api::reference::ImageRef;
use serde::Serialize;

use crate::show::{self, Cell, Column, Look, Tone, ago, bytes, table};

const COLUMNS: [Column; 7] = [
    Column::new("NODE"),
    Column::new("IMAGE"),
    Column::new("STATE"),
    Column::new("BYTES"),
    Column::new("SINCE"),
    Column::wide("JOBS"),
    Column::new("MESSAGE"),
];

#[derive(Debug, Serialize)]
pub struct Detail {
    items: Vec<Row>,
}

/// One image on one node.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    node: String,
    image: String,
    phase: PullPhase,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_done: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_total: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<Timestamp>,
    jobs: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
    #[serde(skip)]
    age: String,
}

impl Detail {
    pub fn of<'a>(nodes: impl IntoIterator<Item = &'a NodeImage>, now: Timestamp) -> Self {
        Self { items: nodes.into_iter().flat_map(|node| rows(node, now)).collect() }
    }
}

impl show::Report for Detail {
    fn text(&self, look: Look) -> String {
        table(&COLUMNS, self.items.iter().map(Row::cells), look)
    }

    fn names(&self) -> Vec<String> {
        self.items.iter().map(|row| row.image.clone()).collect()
    }
}

fn rows(node: &NodeImage, now: Timestamp) -> Vec<Row> {
    let reported = node.status.as_ref().and_then(|status| status.image_statuses.as_ref());
    let mut rows = Vec::new();
    for (name, image) in &node.spec.images {
        for tag in &image.tags {
            let statuses = reported.and_then(|reported| reported.get(name)).map(|image| &image.tags);
            let status = statuses.and_then(|tags| tags.iter().find(|status| status.tag == tag.tag));
            rows.push(Row::of(node, name, tag, status, now));
        }
    }
    rows
}

impl Row {
    fn of(
        node: &NodeImage,
        name: &str,
        tag: &ImageTagSpec,
        status: Option<&ImageTagStatus>,
        now: Timestamp,
    ) -> Self {
        let asked = tag.created_at.as_ref();
        let since = status.and_then(|status| status.completion_time.as_ref().or(status.start_time.as_ref()));
        let since = since.or(asked).map(|Time(time)| *time);
        let owners = tag.owner_references.iter().flatten();
        let job = |namespace: &Option<String>, name: &Option<String>| {
            format!("{}/{}", namespace.as_deref().unwrap_or_default(), name.as_deref().unwrap_or_default())
        };
        let message = status.and_then(|status| status.message.clone());
        Self {
            node: node.metadata.name.clone().unwrap_or_default(),
            image: ImageRef::from_parts(name, &tag.tag)
                .map_or(format!("{name}:{}", tag.tag), |image| image.full()),
            phase: status.map(|status| status.phase).unwrap_or_default(),
            bytes_done: status.and_then(|status| status.bytes_done),
            bytes_total: status.and_then(|status| status.bytes_total),
            since,
            jobs: owners.map(|owner| job(&owner.namespace, &owner.name)).collect(),
            message: message.unwrap_or_else(|| {
                if status.is_none() { "the agent has not answered yet".to_owned() } else { String::new() }
            }),
            age: since.map_or("-".to_owned(), |since| ago(since, now)),
        }
    }

    fn cells(&self) -> Vec<Cell> {
        let tone = match self.phase {
            PullPhase::Waiting => Tone::Plain,
            PullPhase::Pulling => Tone::Busy,
            PullPhase::Succeeded => Tone::Good,
            PullPhase::Failed => Tone::Bad,
        };
        let amount = match (self.bytes_done, self.bytes_total) {
            (Some(done), Some(total)) if done < total => {
                format!("{} of {}", bytes(Some(done)), bytes(Some(total)))
            }
            (_, total) => bytes(total),
        };
        vec![
            self.node.clone().into(),
            self.image.clone().into(),
            Cell::toned(format!("{:?}", self.phase), tone),
            amount.into(),
            self.age.clone().into(),
            self.jobs.join(", ").into(),
            self.message.clone().into(),
        ]
    }
}
