//! Every node of a job with its state and the reason.

use jiff::Timestamp;
use prewarm_api::kruise::{ImagePullJob, ImageTagStatus, PullPhase};
use prewarm_api::reference::ImageRef;
use prewarm_plan::cluster::image_pull_job::explain::Why;
use prewarm_plan::cluster::image_pull_job::is_finished;
use prewarm_plan::object::ObjectKey;
use serde::Serialize;

use super::gather::World;
use super::words::{State, over, sentence};
use crate::answer::Exit;
use crate::jobs::status_for;
use crate::show::{self, Cell, Column, Look, counted, table};

const COLUMNS: [Column; 3] = [Column::new("NODE"), Column::new("STATE"), Column::new("WHY")];

/// What a kubelet does with a private image is its own decision.
pub(super) const KUBELET: &str = "\
The job names a Secret. By default kubelets run its image for every pod; one with imagePullCredentialsVerificationPolicy
AlwaysVerify asks the registry again with the pod's own credentials, without fetching layers (docs/security.md).
";

/// The explanation of a job.
#[derive(Debug, Serialize)]
pub struct Report {
    items: Vec<Row>,
    #[serde(skip)]
    has_images: bool,
    /// How many finished pulls no NodeImage reports any more.
    #[serde(skip)]
    forgotten: usize,
    /// Whether nodes have an image that took a Secret.
    #[serde(skip)]
    has_private: bool,
}

/// One node and one image.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    node: String,
    image: String,
    state: State,
    why: String,
}

impl Report {
    /// Explains all nodes of the jobs, or only those with the given names.
    pub fn of(world: &World, only: &[String], now: Timestamp) -> Self {
        let rows = world.jobs.iter().flat_map(|job| Explained { world, job, now }.rows(only));
        let items: Vec<Row> = rows.collect();
        let ended = world.jobs.iter().filter(|job| only.is_empty() && is_finished(job));
        let ended = ended.filter_map(|job| job.status.as_ref());
        let pulls: usize = ended.map(|status| usize::try_from(status.desired).unwrap_or_default()).sum();
        let forgotten = pulls.saturating_sub(items.len());
        let has_private = world.jobs.iter().any(|job| {
            let is_present = |row: &Row| row.state == State::Present && row.image == job.spec.image;
            let has_secrets = job.spec.pull_secrets.as_ref().is_some_and(|names| !names.is_empty());
            has_secrets && items.iter().any(is_present)
        });
        Self { items, has_images: world.jobs.len() > 1, forgotten, has_private }
    }

    fn has_failed(&self) -> bool {
        self.items.iter().any(|row| matches!(row.state, State::Failed | State::Unknown))
    }
}

impl show::Report for Report {
    fn text(&self, look: Look) -> String {
        let mut columns = COLUMNS.to_vec();
        if self.has_images {
            columns.insert(1, Column::new("IMAGE"));
        }
        let rows = self.items.iter().map(|row| {
            let mut cells: Vec<Cell> = vec![row.node.clone().into()];
            if self.has_images {
                cells.push(row.image.clone().into());
            }
            cells.extend([Cell::toned(format!("{:?}", row.state), row.state.tone()), row.why.clone().into()]);
            cells
        });
        table(&columns, rows, look)
    }

    fn names(&self) -> Vec<String> {
        self.items.iter().map(|row| format!("node/{}", row.node)).collect()
    }

    fn remark(&self) -> String {
        let mut remark = match (self.forgotten, self.items.is_empty()) {
            (0, true) => "The job has no node; check its selector.\n".to_owned(),
            (0, false) => String::new(),
            (count, _) => {
                let pulls = counted(count, "more pull");
                format!("The job is over; the nodes no longer report {pulls}, which did not fail.\n")
            }
        };
        if self.has_private {
            remark += KUBELET;
        }
        remark
    }

    fn exit(&self) -> Exit {
        Exit::found(self.has_failed())
    }
}

/// One job that is being explained.
struct Explained<'a> {
    world: &'a World,
    job: &'a ImagePullJob,
    now: Timestamp,
}

impl Explained<'_> {
    fn rows(&self, only: &[String]) -> Vec<Row> {
        let mut rows = if is_finished(self.job) { self.finished() } else { self.unfinished() };
        rows.extend(self.unknown());
        if !only.is_empty() {
            rows.retain(|row| only.contains(&row.node));
            let missing = only.iter().filter(|name| !rows.iter().any(|row| row.node == **name));
            let missing: Vec<Row> = missing.map(|name| self.outsider(name)).collect();
            rows.extend(missing);
        }
        rows.sort_by(|one, other| one.node.cmp(&other.node));
        rows
    }

    fn unfinished(&self) -> Vec<Row> {
        let explained = self.world.explained.get(&ObjectKey::of(&self.job.metadata));
        explained.into_iter().flatten().map(|(node, why)| self.row(node, why)).collect()
    }

    fn row(&self, node: &str, why: &Why) -> Row {
        let (state, why) = sentence(why, self.reported(node).as_ref(), self.now);
        Row { node: node.to_owned(), image: self.job.spec.image.clone(), state, why }
    }

    /// A job that is over: the nodes that still report the image, and those that the job lists as failed.
    fn finished(&self) -> Vec<Row> {
        let status = self.job.status.clone().unwrap_or_default();
        let failed = status.failed_nodes.unwrap_or_default();
        let nodes = self.world.images.keys().filter(|node| {
            failed.contains(node)
                || self.reported(node).is_some_and(|status| status.phase == PullPhase::Succeeded)
        });
        let rows = nodes.map(|node| {
            let (state, why) = over(self.reported(node).as_ref(), failed.contains(node), self.now);
            Row { node: node.clone(), image: self.job.spec.image.clone(), state, why }
        });
        rows.collect()
    }

    /// Names in the selector that no node has.
    fn unknown(&self) -> Vec<Row> {
        let names = self.job.spec.selector.as_ref().and_then(|selector| selector.names.as_ref());
        let unknown = names.into_iter().flatten().filter(|name| !self.world.images.contains_key(*name));
        unknown.map(|name| self.outsider(name)).collect()
    }

    /// A node that the job does not select.
    fn outsider(&self, name: &str) -> Row {
        let is_node = self.world.nodes.iter().any(|node| node == name);
        let (state, why) = match (is_node, self.world.images.contains_key(name)) {
            (_, true) => (State::NotSelected, "the job does not select this node".to_owned()),
            (true, false) => (
                State::Unknown,
                "the node has no NodeImage yet; virtual nodes never get one, and others within seconds while the \
                 controller runs"
                    .to_owned(),
            ),
            (false, false) => {
                let known = counted(self.world.nodes.len(), "node");
                (State::Unknown, format!("there is no node of this name among {known}"))
            }
        };
        Row { node: name.to_owned(), image: self.job.spec.image.clone(), state, why }
    }

    fn reported(&self, node: &str) -> Option<ImageTagStatus> {
        let reference = ImageRef::parse(&self.job.spec.image).ok()?;
        status_for(self.world.images.get(node)?, &reference, self.job)
    }
}
