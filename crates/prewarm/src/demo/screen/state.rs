//! All that the live view knows, gathered from what is said, watched and seen. It only remembers; what is shown of it is
//! decided in `view`. Times are those since the beginning.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use kube::ResourceExt as _;
use prewarm_agent::disk::Room;
use prewarm_api::kruise::{ImagePullJob, NodeImage};
use prewarm_demo::store::Pulling;
use prewarm_demo::story::{Counts, Word};

use super::report::Report;
use super::speed::Speed;

/// More events than this fit on no screen.
const EVENTS_KEPT: usize = 200;

/// What is known.
#[derive(Default)]
pub struct State {
    pub scene: Scene,
    pub jobs: BTreeMap<JobName, Job>,
    pub nodes: BTreeMap<String, Node>,
    pub events: VecDeque<Event>,
    /// What a scene is about and how it ended, for whoever looks afterwards.
    pub summary: Vec<(Duration, Word)>,
    /// Jobs that a listing has not named yet.
    unnamed: BTreeSet<JobName>,
}

/// A job's namespace and name.
pub type JobName = (String, String);

/// The scene that is played.
#[derive(Default)]
pub struct Scene {
    pub title: String,
    pub said: Option<Word>,
}

/// A job as it was last heard of.
pub struct Job {
    pub image: String,
    pub counts: Counts,
    pub begun: Duration,
    pub over: Option<Duration>,
}

/// A node as it was last seen.
#[derive(Default)]
pub struct Node {
    pub zone: String,
    pub pulls: Vec<Pulling>,
    pub speed: Speed,
    pub free: u64,
    pub report: Report,
}

/// Something that happened.
pub struct Event {
    pub at: Duration,
    pub what: What,
}

/// What happened.
pub enum What {
    Said(Word),
    JobOver {
        name: String,
        counts: Counts,
    },
    /// A node has given an image up, and so many others after it.
    Failed {
        node: String,
        failure: String,
        others: usize,
    },
}

/// What is heard from the API.
pub enum News {
    /// All jobs will be named.
    JobsBegin,
    Job(Box<ImagePullJob>),
    /// All jobs have been named.
    JobsEnd,
    JobGone(JobName),
    Node(Box<NodeImage>),
}

/// A node as it is seen at one moment.
pub struct Sight {
    pub name: String,
    pub zone: String,
    pub pulls: Vec<Pulling>,
    pub received: u64,
    pub room: Room,
}

impl State {
    /// Hears what the story says.
    pub fn hear_word(&mut self, word: Word, now: Duration) {
        match &word {
            Word::Title(title) => self.scene = Scene { title: title.clone(), said: None },
            Word::Said(_) | Word::Ended(_) => self.scene.said = Some(word.clone()),
        }
        if !matches!(word, Word::Said(_)) {
            self.summary.push((now, word.clone()));
        }
        self.note(What::Said(word), now);
    }

    /// Hears that the story is over and the cluster stays.
    pub fn stay(&mut self, kubeconfig: &str) {
        let said = format!("kubectl --kubeconfig {kubeconfig} apply -f job.yaml");
        let title = "The cluster stays until q or Ctrl-C. Try a job of your own:".to_owned();
        self.scene = Scene { title, said: Some(Word::Said(said)) };
    }

    /// Hears from the API.
    pub fn hear(&mut self, news: News, now: Duration) {
        match news {
            News::JobsBegin => self.unnamed = self.jobs.keys().cloned().collect(),
            News::Job(job) => self.hear_job(&job, now),
            News::JobsEnd => {
                for gone in std::mem::take(&mut self.unnamed) {
                    self.jobs.remove(&gone);
                }
            }
            News::JobGone(name) => drop(self.jobs.remove(&name)),
            News::Node(node) => self.hear_node(&node, now),
        }
    }

    fn hear_job(&mut self, job: &ImagePullJob, now: Duration) {
        let name = job_name(job);
        self.unnamed.remove(&name);
        let is_over = job.status.as_ref().is_some_and(|status| status.completion_time.is_some());
        let counts = Counts::of(job);
        let fresh = Job { image: job.spec.image.clone(), counts, begun: now, over: None };
        let known = self.jobs.entry(name).or_insert(fresh);
        known.counts = counts;
        match (is_over, known.over) {
            (true, None) => known.over = Some(now),
            (true, Some(_)) => return,
            (false, _) => return known.over = None,
        }
        self.note(What::JobOver { name: job.name_any(), counts }, now);
    }

    fn hear_node(&mut self, object: &NodeImage, now: Duration) {
        let name = object.name_any();
        let report = Report::of(object);
        let node = self.nodes.entry(name.clone()).or_default();
        let failures: Vec<String> = report.failures.difference(&node.report.failures).cloned().collect();
        node.report = report;
        for failure in failures {
            self.note_failure(&name, failure, now);
        }
    }

    /// Nodes that fail alike are one event: a wrong tag would drive everything else off the screen.
    fn note_failure(&mut self, name: &str, text: String, now: Duration) {
        for event in self.events.iter_mut().rev() {
            match &mut event.what {
                What::Failed { failure, others, .. } if *failure == text => return *others += 1,
                What::Said(Word::Title(_)) => break,
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

    /// Takes in what the nodes look like. Returns whether anything has moved.
    pub fn see(&mut self, sights: Vec<Sight>, now: Duration) -> bool {
        let mut has_moved = false;
        for sight in sights {
            let node = self.nodes.entry(sight.name).or_default();
            let is_same =
                node.zone == sight.zone && node.pulls == sight.pulls && node.free == sight.room.free;
            has_moved |= !is_same | node.speed.hear(sight.received, now);
            node.zone = sight.zone;
            node.pulls = sight.pulls;
            node.free = sight.room.free;
        }
        has_moved
    }
}

/// What a job is called.
pub fn job_name(job: &ImagePullJob) -> JobName {
    (job.namespace().unwrap_or_default(), job.name_any())
}
