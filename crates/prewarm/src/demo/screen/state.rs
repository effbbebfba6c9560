//! Everything that the live view has observed. It only remembers; `view` decides what is shown. Times count from
//! the start.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use kube::ResourceExt as _;
use prewarm_agent::disk::Room;
use prewarm_api::kruise::{ImagePullJob, NodeImage};
use prewarm_api::ofen::ImagePrefetch;
use prewarm_demo::store::Pulling;
use prewarm_demo::story::{Counts, Message};

use super::report::Report;
use super::speed::Speed;

/// No screen shows more events than this.
const EVENTS_KEPT: usize = 200;

#[derive(Default)]
pub struct State {
    pub scene: Scene,
    pub jobs: BTreeMap<JobName, Job>,
    pub nodes: BTreeMap<String, Node>,
    pub events: VecDeque<Event>,
    /// The title of each scene and how it ended, for the summary.
    pub summary: Vec<(Duration, Message)>,
    /// Jobs that the current listing has not contained yet.
    unnamed: BTreeSet<JobName>,
}

/// A job's kind, namespace and name.
pub type JobName = (Kind, String, String);

/// What is shown as a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    ImagePullJob,
    ImagePrefetch,
}

/// The scene that is being played.
#[derive(Default)]
pub struct Scene {
    pub title: String,
    pub said: Option<Message>,
}

/// The latest observation of a job.
pub struct Job {
    pub image: String,
    pub counts: Counts,
    pub begun: Duration,
    pub over: Option<Duration>,
}

/// The latest observation of a node.
#[derive(Default)]
pub struct Node {
    pub zone: String,
    pub pulls: Vec<Pulling>,
    pub speed: Speed,
    pub free: u64,
    pub report: Report,
}

pub struct Event {
    pub at: Duration,
    pub what: What,
}

pub enum What {
    Said(Message),
    JobOver {
        name: String,
        counts: Counts,
    },
    /// A node has given up on an image, and this many other nodes after it.
    Failed {
        node: String,
        failure: String,
        others: usize,
    },
}

/// What a watch of the API returns.
pub enum Change {
    /// A listing of all jobs of a kind begins.
    JobsBegin(Kind),
    Job(Observed),
    /// The listing is complete.
    JobsEnd(Kind),
    JobGone(JobName),
    Node(Box<NodeImage>),
}

/// A job at one moment.
pub struct Observed {
    pub name: JobName,
    pub image: String,
    pub counts: Counts,
    pub is_over: bool,
}

/// A node at one moment.
pub struct Snapshot {
    pub name: String,
    pub zone: String,
    pub pulls: Vec<Pulling>,
    pub received: u64,
    pub room: Room,
}

impl State {
    /// Takes in a word of the story.
    pub fn observe_message(&mut self, word: Message, now: Duration) {
        match &word {
            Message::Title(title) => self.scene = Scene { title: title.clone(), said: None },
            Message::Said(_) | Message::Ended(_) => self.scene.said = Some(word.clone()),
        }
        if !matches!(word, Message::Said(_)) {
            self.summary.push((now, word.clone()));
        }
        self.note(What::Said(word), now);
    }

    /// The story is over and the cluster stays.
    pub fn stay(&mut self, kubeconfig: &str) {
        let said = format!("kubectl --kubeconfig {kubeconfig} apply -f job.yaml");
        let title = "The cluster stays until q or Ctrl-C. Try a job of your own:".to_owned();
        self.scene = Scene { title, said: Some(Message::Said(said)) };
    }

    /// Takes in a change from the API.
    pub fn observe(&mut self, change: Change, now: Duration) {
        match change {
            Change::JobsBegin(kind) => {
                self.unnamed.extend(self.jobs.keys().filter(|name| name.0 == kind).cloned());
            }
            Change::Job(job) => self.observe_job(job, now),
            Change::JobsEnd(kind) => {
                for gone in self.unnamed.extract_if(.., |name| name.0 == kind) {
                    self.jobs.remove(&gone);
                }
            }
            Change::JobGone(name) => drop(self.jobs.remove(&name)),
            Change::Node(node) => self.observe_node(&node, now),
        }
    }

    fn observe_job(&mut self, job: Observed, now: Duration) {
        let Observed { name, image, counts, is_over } = job;
        self.unnamed.remove(&name);
        let shown = name.2.clone();
        let fresh = Job { image, counts, begun: now, over: None };
        let known = self.jobs.entry(name).or_insert(fresh);
        known.counts = counts;
        match (is_over, known.over) {
            (true, None) => known.over = Some(now),
            (true, Some(_)) => return,
            (false, _) => return known.over = None,
        }
        self.note(What::JobOver { name: shown, counts }, now);
    }

    fn observe_node(&mut self, object: &NodeImage, now: Duration) {
        let name = object.name_any();
        let report = Report::of(object);
        let node = self.nodes.entry(name.clone()).or_default();
        let failures: Vec<String> = report.failures.difference(&node.report.failures).cloned().collect();
        node.report = report;
        for failure in failures {
            self.note_failure(&name, failure, now);
        }
    }

    /// Nodes that fail for the same reason are one event; otherwise a wrong tag would push everything else off the
    /// screen.
    fn note_failure(&mut self, name: &str, text: String, now: Duration) {
        for event in self.events.iter_mut().rev() {
            match &mut event.what {
                What::Failed { failure, others, .. } if *failure == text => return *others += 1,
                What::Said(Message::Title(_)) => break,
                _ => {}
            }
        }
        self.note(What::Failed { node: name.to_owned(), failure: text, others: 0 }, now);
    }

    fn note(&mut self, what: What, now: Duration) {
        self.events.push_back(Event { at: now, what });
        if self.events.len() > EVENTS_KEPT {
            self.events.pop_front();
        }
    }

    /// Takes in the state of the nodes. Returns whether anything has changed.
    pub fn observe_nodes(&mut self, snapshots: Vec<Snapshot>, now: Duration) -> bool {
        let mut has_moved = false;
        for snapshot in snapshots {
            let node = self.nodes.entry(snapshot.name).or_default();
            let is_same =
                node.zone == snapshot.zone && node.pulls == snapshot.pulls && node.free == snapshot.room.free;
            has_moved |= !is_same | node.speed.record(snapshot.received, now);
            node.zone = snapshot.zone;
            node.pulls = snapshot.pulls;
            node.free = snapshot.room.free;
        }
        has_moved
    }
}

impl From<&ImagePullJob> for Observed {
    fn from(job: &ImagePullJob) -> Self {
        Self {
            name: name_of(Kind::ImagePullJob, job),
            image: job.spec.image.clone(),
            counts: Counts::of(job),
            is_over: job.status.as_ref().is_some_and(|status| status.completion_time.is_some()),
        }
    }
}

impl From<&ImagePrefetch> for Observed {
    /// It holds its images as long as it is there, so it is never over.
    fn from(prefetch: &ImagePrefetch) -> Self {
        let images = &prefetch.spec.images;
        let image = images.first().cloned().unwrap_or_default();
        Self {
            name: name_of(Kind::ImagePrefetch, prefetch),
            image: if images.len() > 1 { format!("{image} and {} more", images.len() - 1) } else { image },
            counts: Counts::of_prefetch(prefetch),
            is_over: false,
        }
    }
}

fn name_of(kind: Kind, object: &impl kube::Resource) -> JobName {
    (kind, object.namespace().unwrap_or_default(), object.name_any())
}
