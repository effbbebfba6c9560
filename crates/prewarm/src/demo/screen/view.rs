//! What is shown at one moment: a plain value made from the state and the time. It is all that `draw` needs.

use std::cmp::Reverse;
use std::time::Duration;

use prewarm_demo::story::{Counts, Message};
use prewarm_plan::cluster::image_pull_job::estimate::Progress;

use super::name;
use super::state::{self, State, What};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    pub elapsed: Duration,
    pub kubeconfig: String,
    pub scene: Scene,
    /// Jobs with work to do, then jobs that wait for new nodes, then finished ones, latest first.
    pub jobs: Vec<Job>,
    /// By name, `node-9` before `node-10`.
    pub nodes: Vec<Node>,
    /// Oldest first.
    pub events: Vec<Event>,
}

/// The scene that is being played.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scene {
    pub title: String,
    pub said: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    pub name: String,
    pub image: String,
    pub counts: Counts,
    pub time: Time,
}

/// The time of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    Took(Duration),
    Left(Duration),
    /// No node has finished yet, or the job has nothing left to do and stays.
    Unknown,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub name: String,
    pub zone: String,
    pub activity: Activity,
    /// Bytes per second.
    pub speed: u64,
    pub free: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Activity {
    Pulling { image: String, percent: u64, others: usize },
    Waiting { image: String, why: String },
    Idle { present: i32, failed: i32 },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub at: Duration,
    pub text: String,
    pub mood: Mood,
}

/// Whether it is good or bad, for its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    Title,
    Plain,
    Good,
    Bad,
}

/// Makes the view of this moment.
pub fn view(state: &State, kubeconfig: &str, now: Duration) -> View {
    let mut jobs: Vec<_> = state.jobs.iter().collect();
    jobs.sort_by_key(|(_, job)| (job.over.is_some(), !has_work(job.counts), Reverse(job.over), job.begun));
    View {
        elapsed: now,
        kubeconfig: kubeconfig.to_owned(),
        scene: Scene {
            title: state.scene.title.clone(),
            said: state.scene.said.as_ref().map(said).unwrap_or_default(),
        },
        jobs: jobs.into_iter().map(|((_, _, name), job)| show_job(name, job, now)).collect(),
        nodes: show_nodes(state),
        events: state.events.iter().map(show_event).collect(),
    }
}

fn show_job(name: &str, job: &state::Job, now: Duration) -> Job {
    let time = match job.over {
        Some(over) => Time::Took(over.saturating_sub(job.begun)),
        None => time_left(job.counts, now.saturating_sub(job.begun)),
    };
    Job { name: name.to_owned(), image: name::short(&job.image).to_owned(), counts: job.counts, time }
}

/// Whether some nodes have not finished.
fn has_work(counts: Counts) -> bool {
    counts.succeeded + counts.failed < counts.desired
}

/// Assumes that each remaining node takes as long as the finished ones did.
fn time_left(counts: Counts, elapsed: Duration) -> Time {
    let number = |count: i32| u32::try_from(count).unwrap_or(0);
    let done = number(counts.succeeded + counts.failed);
    let progress = Progress { desired: number(counts.desired), done, elapsed, ..Progress::default() };
    progress.left().map_or(Time::Unknown, Time::Left)
}

fn show_nodes(state: &State) -> Vec<Node> {
    // A NodeImage may be observed before its node.
    let seen = state.nodes.iter().filter(|(_, node)| !node.zone.is_empty());
    let mut nodes: Vec<Node> = seen.map(show_node).collect();
    nodes.sort_by_key(|node| node.name.len());
    nodes
}

fn show_node((name, node): (&String, &state::Node)) -> Node {
    let (name, zone, free) = (name.clone(), node.zone.clone(), node.free);
    Node { name, zone, activity: activity(node), speed: node.speed.per_second(), free }
}

fn activity(node: &state::Node) -> Activity {
    if let Some(pull) = node.pulls.first() {
        return Activity::Pulling {
            image: name::tagged(pull.reference.name(), pull.reference.tag()),
            percent: (pull.done * 100).checked_div(pull.total).unwrap_or(0).min(100),
            others: node.pulls.len() - 1,
        };
    }
    match &node.report.waiting {
        Some((image, why)) => Activity::Waiting { image: image.clone(), why: why.clone() },
        None => Activity::Idle { present: node.report.present, failed: node.report.failed },
    }
}

fn show_event(event: &state::Event) -> Event {
    let (text, mood) = match &event.what {
        What::Said(word @ Message::Title(_)) => (said(word), Mood::Title),
        What::Said(word @ Message::Said(_)) => (said(word), Mood::Plain),
        What::Said(word @ Message::Ended(_)) => (said(word), Mood::Good),
        What::JobOver { name, counts } => {
            let mood = if counts.failed > 0 { Mood::Bad } else { Mood::Good };
            (format!("the job {name} is over: {counts}"), mood)
        }
        What::Failed { node, failure, others } => {
            let others = if *others == 0 { String::new() } else { format!(" and {others} more nodes") };
            (format!("{node}{others} could not pull {failure}"), Mood::Bad)
        }
    };
    Event { at: event.at, text, mood }
}

fn said(word: &Message) -> String {
    match word {
        Message::Title(text) | Message::Said(text) => text.clone(),
        Message::Ended(text) => format!("✓ {text}"),
    }
}

impl Node {
    /// How much there is to see on a node: if there is no room for all, the busiest come first.
    fn rank(&self) -> u8 {
        match self.activity {
            Activity::Pulling { .. } => 0,
            Activity::Waiting { .. } => 1,
            Activity::Idle { .. } => 2,
        }
    }
}

/// At most this many nodes, and how many are left out.
pub fn fitting(nodes: &[Node], places: usize) -> (Vec<&Node>, usize) {
    let mut shown: Vec<&Node> = nodes.iter().collect();
    if nodes.len() > places {
        shown.sort_by_key(|node| node.rank());
        shown.truncate(places);
    }
    let left_out = nodes.len() - shown.len();
    (shown, left_out)
}
