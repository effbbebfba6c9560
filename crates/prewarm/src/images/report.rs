//! One row for each image, and where the named ones are missing.

use std::collections::BTreeMap;
use std::sync::Arc;

use prewarm_api::kruise::{FailureClass, NodeImage, PullPhase};
use prewarm_api::reference::ImageRef;
use serde::Serialize;

use crate::answer::Exit;
use crate::jobs::{Failure, Group, grouped};
use crate::show::{self, Cell, Column, Look, bytes, names, table};

/// The most node names that are shown; JSON and YAML have all.
const MOST_NAMES: usize = 3;

const COLUMNS: [Column; 7] = [
    Column::new("IMAGE"),
    Column::new("WANTED"),
    Column::new("PRESENT"),
    Column::new("PULLING"),
    Column::new("FAILED"),
    Column::wide("SIZE"),
    Column::new("MISSING ON"),
];

#[derive(Debug, Serialize)]
pub struct Report {
    items: Vec<Row>,
    #[serde(skip)]
    is_detailed: bool,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    image: String,
    /// Nodes that are asked to have it.
    wanted: usize,
    present: usize,
    pulling: usize,
    waiting: usize,
    failed: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<i64>,
    /// Nodes that do not have it, by name.
    missing: Vec<String>,
    /// Those of them that could not pull it, by reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failures: Vec<Group>,
    #[serde(skip)]
    failed_nodes: Vec<Failure>,
}

impl Report {
    /// All images, or the named ones; a name without a tag means all of its tags.
    pub fn of(nodes: &[Arc<NodeImage>], named: &[String]) -> anyhow::Result<Self> {
        let mut rows: BTreeMap<(String, String), Row> = BTreeMap::new();
        for node in nodes {
            for (name, image) in &node.spec.images {
                for tag in &image.tags {
                    let row = rows.entry((name.clone(), tag.tag.clone())).or_default();
                    row.count(node, name, &tag.tag);
                }
            }
        }
        if !named.is_empty() {
            let wanted = named.iter().map(|text| Wanted::read(text)).collect::<anyhow::Result<Vec<_>>>()?;
            for one in &wanted {
                if !rows.keys().any(|key| one.means(key)) {
                    anyhow::bail!(
                        "no node is asked to have {}; `prewarm images` lists all, and `prewarm pull` asks for one",
                        one.text
                    );
                }
            }
            rows.retain(|key, _| wanted.iter().any(|one| one.means(key)));
        }
        let mut items: Vec<Row> = rows.into_values().collect();
        for row in &mut items {
            row.failures = grouped(&row.failed_nodes);
        }
        Ok(Self { items, is_detailed: !named.is_empty() })
    }

    fn is_missing_somewhere(&self) -> bool {
        self.items.iter().any(|row| !row.missing.is_empty())
    }
}

/// An image on the command line.
struct Wanted<'a> {
    text: &'a str,
    name: String,
    tag: Option<String>,
}

impl<'a> Wanted<'a> {
    fn read(text: &'a str) -> anyhow::Result<Self> {
        let reference = ImageRef::parse(text).map_err(|error| anyhow::anyhow!("{text}: {error}"))?;
        let last = text.rsplit('/').next().unwrap_or_default();
        let has_tag = last.contains(':') || last.contains('@');
        let tag = has_tag.then(|| reference.tag().to_owned());
        Ok(Self { text, name: reference.name().to_owned(), tag })
    }

    fn means(&self, (name, tag): &(String, String)) -> bool {
        self.name == *name && self.tag.as_ref().is_none_or(|wanted| wanted == tag)
    }
}

impl Row {
    fn count(&mut self, node: &NodeImage, name: &str, tag: &str) {
        let reference = ImageRef::from_parts(name, tag);
        self.image = reference.map_or(format!("{name}:{tag}"), |reference| reference.full());
        let node_name = node.metadata.name.clone().unwrap_or_default();
        let reported = node.status.as_ref().and_then(|status| status.image_statuses.as_ref()?.get(name));
        let status = reported.and_then(|reported| reported.tags.iter().find(|status| status.tag == tag));
        self.wanted += 1;
        self.bytes = self.bytes.max(status.and_then(|status| status.bytes_total));
        match status.map(|status| status.phase).unwrap_or_default() {
            PullPhase::Succeeded => return self.present += 1,
            PullPhase::Pulling => self.pulling += 1,
            PullPhase::Waiting => self.waiting += 1,
            PullPhase::Failed => {
                self.failed += 1;
                let class: Option<FailureClass> = status.and_then(|status| status.failure_class);
                let message = status.and_then(|status| status.message.clone()).unwrap_or_default();
                let image = self.image.clone();
                self.failed_nodes.push(Failure { node: node_name.clone(), image, class, message });
            }
        }
        self.missing.push(node_name);
    }

    fn cells(&self) -> Vec<Cell> {
        let missing = if self.missing.is_empty() { "-".to_owned() } else { names(&self.missing, MOST_NAMES) };
        vec![
            self.image.clone().into(),
            self.wanted.to_string().into(),
            self.present.to_string().into(),
            self.pulling.to_string().into(),
            Cell::bad_count(i64::try_from(self.failed).unwrap_or(i64::MAX)),
            bytes(self.bytes).into(),
            missing.into(),
        ]
    }

    /// The lines about it below the table.
    fn remarks(&self) -> String {
        self.failures.iter().map(|group| group.remark(&self.image)).collect()
    }
}

impl show::Report for Report {
    fn text(&self, look: Look) -> String {
        let remarks: String = self.items.iter().filter(|_| self.is_detailed).map(Row::remarks).collect();
        table(&COLUMNS, self.items.iter().map(Row::cells), look) + &remarks
    }

    fn names(&self) -> Vec<String> {
        self.items.iter().map(|row| row.image.clone()).collect()
    }

    fn remark(&self) -> String {
        if self.items.is_empty() { "No node is asked to have any image.\n".to_owned() } else { String::new() }
    }

    fn exit(&self) -> Exit {
        Exit::found(self.is_detailed && self.is_missing_somewhere())
    }
}
