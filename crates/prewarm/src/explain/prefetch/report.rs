//! One row for each image on each node, with whom the node asks for it.

use std::sync::Arc;

use jiff::Timestamp;
use prewarm_api::kruise::{ImageTagStatus, NodeImage};
use prewarm_api::reference::ImageRef;
use prewarm_plan::cluster::image_prefetch::explain::{Asks, OnNode, OnNodes, Unselected, Why};
use serde::Serialize;

use super::words::{sentence, unselected};
use crate::answer::Exit;
use crate::explain::report::KUBELET;
use crate::explain::words::State;
use crate::jobs::status_of;
use crate::show::{self, Cell, Column, Look, table};

const COLUMNS: [Column; 4] =
    [Column::new("NODE"), Column::new("ASKS"), Column::new("STATE"), Column::new("WHY")];

/// The explanation of an ImagePrefetch or of a NodeImageSet.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    items: Vec<Row>,
    /// What a person has to know about the whole.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Whether it names Secrets.
    #[serde(skip)]
    pub has_private: bool,
}

/// One node and one image.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    node: String,
    image: String,
    /// `registry` or `mirrors`; absent while that is not settled.
    #[serde(skip_serializing_if = "Option::is_none")]
    asks: Option<&'static str>,
    state: State,
    why: String,
}

impl Report {
    /// Adds the rows of nodes, with what their NodeImages report.
    pub fn add(&mut self, nodes: OnNodes, images: &[Arc<NodeImage>], now: Timestamp) {
        for (node, parts) in nodes {
            let image = images.iter().find(|image| image.metadata.name.as_deref() == Some(&*node));
            for part in parts {
                let status = image.and_then(|image| reported(image, &part));
                let (state, why) = sentence(&part, status.as_ref(), now);
                let asks = part.asks.map(|asks| match asks {
                    Asks::Registry => "registry",
                    Asks::Mirrors => "mirrors",
                });
                self.items.push(Row { node: node.to_string(), image: part.image, asks, state, why });
            }
        }
    }

    /// Adds the rows of a node that is not taken.
    pub fn add_outsider(&mut self, node: &str, images: &[String], why: Option<Unselected>) {
        let (state, why) = unselected(why);
        let row = |image: &String| Row {
            node: node.to_owned(),
            image: image.clone(),
            asks: None,
            state,
            why: why.to_owned(),
        };
        self.items.extend(images.iter().map(row));
    }

    pub fn has(&self, node: &str) -> bool {
        self.items.iter().any(|row| row.node == node)
    }

    /// By node; the images of a node stay in their order.
    pub fn sort(&mut self) {
        self.items.sort_by(|one, other| one.node.cmp(&other.node));
    }

    fn has_images(&self) -> bool {
        self.items.iter().any(|row| row.image != self.items[0].image)
    }
}

/// What a node reports about an image, as it is for this object.
fn reported(image: &NodeImage, part: &OnNode) -> Option<ImageTagStatus> {
    if part.why == Why::NoImage {
        return None;
    }
    status_of(image, &ImageRef::parse(&part.image).ok()?, Some(&part.demand))
}

impl show::Report for Report {
    fn text(&self, look: Look) -> String {
        let mut columns = COLUMNS.to_vec();
        if self.has_images() {
            columns.insert(1, Column::new("IMAGE"));
        }
        let rows = self.items.iter().map(|row| {
            let mut cells: Vec<Cell> = vec![row.node.clone().into()];
            if self.has_images() {
                cells.push(row.image.clone().into());
            }
            cells.extend([
                row.asks.unwrap_or("-").into(),
                Cell::toned(format!("{:?}", row.state), row.state.tone()),
                row.why.clone().into(),
            ]);
            cells
        });
        let table = table(&columns, rows, look);
        let gap = if table.is_empty() || self.notes.is_empty() { "" } else { "\n" };
        let notes: String = self.notes.iter().flat_map(|note| [note.as_str(), "\n"]).collect();
        [&table, gap, &notes].concat()
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.items.iter().map(|row| format!("node/{}", row.node)).collect();
        names.dedup();
        names
    }

    fn remark(&self) -> String {
        let is_present = self.items.iter().any(|row| row.state == State::Present);
        match () {
            () if self.items.is_empty() && self.notes.is_empty() => {
                "No node is taken; check nodeSelector.\n".to_owned()
            }
            () if self.has_private && is_present => KUBELET.to_owned(),
            () => String::new(),
        }
    }

    fn exit(&self) -> Exit {
        Exit::found(self.items.iter().any(|row| matches!(row.state, State::Failed | State::Unknown)))
    }
}
