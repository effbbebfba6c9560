//! All agents of a cluster in one task: it watches all NodeImages, and answers for each node as its agent would, with
//! one write for all tags that have been pulled.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use futures::StreamExt as _;
use jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use kube::runtime::watcher::{Config, Event, watcher};
use kube::{Api, Client, ResourceExt as _};
use prewarm_api::kruise::{ImageTagStatus, NodeImage};
use prewarm_plan::agent::kruise::{self, Status};
use prewarm_plan::agent::report::Report;
use prewarm_plan::agent::state::{Phase, TaskState};
use prewarm_plan::object::ImageKey;
use prewarm_plan::time::stamp;
use serde_json::json;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinHandle;

/// How many of them write at once.
pub const WRITERS: usize = 32;

/// What all NodeImages hold together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub nodes: usize,
    pub tags: usize,
    /// The tags that a status reports.
    pub reported: usize,
}

pub struct Agents {
    task: JoinHandle<()>,
    totals: watch::Receiver<Totals>,
}

impl Agents {
    /// Agents whose pulls take this long.
    pub fn start(client: Client, pull: Duration) -> Self {
        let (sender, totals) = watch::channel(Totals::default());
        let loop_ = Loop {
            api: Api::all(client),
            pull,
            nodes: HashMap::new(),
            totals: Totals::default(),
            sender,
            places: Arc::new(Semaphore::new(WRITERS)),
        };
        Self { task: tokio::spawn(loop_.run()), totals }
    }

    /// Waits until the sum over all NodeImages meets the condition.
    pub async fn wait(&self, what: &str, is_wanted: impl Fn(&Totals) -> bool) -> anyhow::Result<()> {
        let mut totals = self.totals.clone();
        let reached = tokio::time::timeout(Duration::from_mins(5), totals.wait_for(is_wanted)).await;
        let seen = *self.totals.borrow();
        reached.map_err(|_| anyhow::anyhow!("{what} did not come: {seen:?}"))?.context("the agents ended")?;
        Ok(())
    }
}

impl Drop for Agents {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Loop {
    api: Api<NodeImage>,
    pull: Duration,
    nodes: HashMap<String, Node>,
    totals: Totals,
    sender: watch::Sender<Totals>,
    places: Arc<Semaphore>,
}

struct Node {
    object: NodeImage,
    /// Whether it pulls or writes.
    is_busy: bool,
}

impl Loop {
    async fn run(mut self) {
        let (done, mut written) = mpsc::unbounded_channel::<(String, Option<NodeImage>)>();
        let api = self.api.clone();
        let mut events = std::pin::pin!(watcher(api, Config::default()));
        loop {
            tokio::select! {
                Some(event) = events.next() => match event {
                    Ok(Event::Apply(object) | Event::InitApply(object)) => self.observe(object, &done),
                    Ok(Event::Delete(object)) => self.forget(&object.name_any()),
                    Ok(Event::Init | Event::InitDone) => {}
                    Err(error) => eprintln!("the agents' watch: {error}"),
                },
                Some((name, object)) = written.recv() => {
                    if let Some(node) = self.nodes.get_mut(&name) {
                        node.is_busy = false;
                        let object = object.unwrap_or_else(|| node.object.clone());
                        self.observe(object, &done);
                    }
                }
                else => return,
            }
            self.sender.send_if_modified(|seen| std::mem::replace(seen, self.totals) != self.totals);
        }
    }

    fn observe(&mut self, object: NodeImage, done: &mpsc::UnboundedSender<(String, Option<NodeImage>)>) {
        let name = object.name_any();
        let is_old =
            |held: &Node| held.object.uid() == object.uid() && version(&held.object) > version(&object);
        let object = match self.nodes.get(&name) {
            Some(held) if is_old(held) => held.object.clone(),
            _ => object,
        };
        let is_busy = self.nodes.get(&name).is_some_and(|held| held.is_busy);
        self.forget(&name);
        self.count(&object, 1);
        let has_work = !is_busy && has_work(&object);
        if has_work {
            let (api, pull, places) = (self.api.clone(), self.pull, self.places.clone());
            let (object, done) = (object.clone(), done.clone());
            tokio::spawn(async move {
                let begin = Timestamp::now();
                if has_unfinished(&object) && !pull.is_zero() {
                    tokio::time::sleep(pull).await;
                }
                let Ok(_place) = places.acquire().await else { return };
                let answer = report(&api, &object, begin).await;
                if let Err(error) = &answer {
                    eprintln!("the agent of {}: {error}", object.name_any());
                }
                // At the end of the benchmark nobody receives it.
                let _ = done.send((object.name_any(), answer.ok()));
            });
        }
        self.nodes.insert(name, Node { object, is_busy: is_busy || has_work });
    }

    fn forget(&mut self, name: &str) {
        if let Some(node) = self.nodes.remove(name) {
            self.count(&node.object, -1);
        }
    }

    fn count(&mut self, object: &NodeImage, sign: isize) {
        let tags: usize = object.spec.images.values().map(|image| image.tags.len()).sum();
        let statuses = object.status.iter().flat_map(|status| status.image_statuses.iter().flatten());
        let reported: usize = statuses.map(|(_, image)| image.tags.len()).sum();
        let Totals { nodes, tags: all_tags, reported: all_reported } = &mut self.totals;
        for (total, count) in [(nodes, 1), (all_tags, tags), (all_reported, reported)] {
            *total = total.saturating_add_signed(sign * count.cast_signed());
        }
    }
}

fn version(object: &NodeImage) -> u64 {
    object.metadata.resource_version.as_deref().and_then(|version| version.parse().ok()).unwrap_or_default()
}

/// What the status says, by name and tag.
fn statuses(object: &NodeImage) -> BTreeMap<(&str, &str), &ImageTagStatus> {
    let images = object.status.iter().flat_map(|status| status.image_statuses.iter().flatten());
    images
        .flat_map(|(name, image)| image.tags.iter().map(|tag| ((name.as_str(), tag.tag.as_str()), tag)))
        .collect()
}

fn has_unfinished(object: &NodeImage) -> bool {
    let statuses = statuses(object);
    let mut tags =
        object.spec.images.iter().flat_map(|(name, image)| image.tags.iter().map(move |tag| (name, tag)));
    tags.any(|(name, tag)| {
        statuses.get(&(name.as_str(), tag.tag.as_str())).is_none_or(|status| status.version != tag.version)
    })
}

fn has_work(object: &NodeImage) -> bool {
    let tags: usize = object.spec.images.values().map(|image| image.tags.len()).sum();
    has_unfinished(object) || statuses(object).len() != tags
}

/// One report of the whole status, in the form of the real agent: every tag of the spec is present.
async fn report(api: &Api<NodeImage>, object: &NodeImage, begin: Timestamp) -> anyhow::Result<NodeImage> {
    let known = kruise::reported(&serde_json::to_value(&object.status)?);
    let tags =
        object.spec.images.iter().flat_map(|(name, image)| image.tags.iter().map(move |tag| (name, tag)));
    let tasks = tags.map(|(name, tag)| {
        let key = ImageKey { name: name.clone(), tag: tag.tag.clone() };
        let known = known.get(&key).filter(|known| known.version == tag.version).cloned();
        known.unwrap_or_else(|| TaskState {
            percent: 100,
            started_at: Some(stamp(begin)),
            completed_at: Some(stamp(Timestamp::now())),
            image_id: Some(format!("{name}@sha256:{:064x}", name.len())),
            ..TaskState::new(key, tag.version, Phase::Succeeded)
        })
    });
    let status = Status::of(Report::new(tasks.collect(), None, None));
    let patch = json!([
        { "op": "test", "path": "/metadata/uid", "value": object.metadata.uid },
        { "op": "add", "path": "/status", "value": status },
    ]);
    let patch = Patch::Json::<()>(serde_json::from_value(patch)?);
    Ok(api.patch_status(&object.name_any(), &PatchParams::default(), &patch).await?)
}
