//! The kinds that are watched, and how each of them reaches the ledger.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use prewarm_api::kruise::{AdvancedCronJob, BroadcastJob, ImageListPullJob, ImagePullJob, NodeImage};
use prewarm_plan::ledger::Ledger;
use prewarm_plan::object::ObjectKey;
use prewarm_plan::secret::Copy;

use super::slim::{SlimNode, SlimPod};
use crate::content;

/// A kind that is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Node.
    Node,
    /// NodeImage.
    NodeImage,
    /// ImagePullJob.
    ImagePullJob,
    /// ImageListPullJob.
    ImageListPullJob,
    /// Secret, in the config namespace.
    Secret,
    /// Pod, in namespaces with a job that selects by pods.
    Pod,
    /// BroadcastJob.
    BroadcastJob,
    /// Pod of a BroadcastJob.
    BroadcastPod,
    /// AdvancedCronJob.
    AdvancedCronJob,
    /// Job, in namespaces with a cron job that makes some.
    Job,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 10] = [
        Self::Node,
        Self::NodeImage,
        Self::ImagePullJob,
        Self::ImageListPullJob,
        Self::Secret,
        Self::Pod,
        Self::BroadcastJob,
        Self::BroadcastPod,
        Self::AdvancedCronJob,
        Self::Job,
    ];
    /// The kinds that have to be known before anything is decided.
    pub const NEEDED: [Self; 5] =
        [Self::Node, Self::NodeImage, Self::ImagePullJob, Self::ImageListPullJob, Self::Secret];
    /// The kinds that have to be known besides before anything is decided about BroadcastJobs. Whoever does not use them
    /// need not give the rights to them.
    pub const NEEDED_FOR_BROADCASTS: [Self; 2] = [Self::BroadcastJob, Self::BroadcastPod];

    /// Whether everything else works without its definition.
    pub fn can_be_left_out(self) -> bool {
        matches!(
            self,
            Self::ImagePullJob | Self::ImageListPullJob | Self::BroadcastJob | Self::AdvancedCronJob
        )
    }

    /// A short fixed word for metrics and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::NodeImage => "node_image",
            Self::ImagePullJob => "image_pull_job",
            Self::ImageListPullJob => "image_list_pull_job",
            Self::Secret => "secret",
            Self::Pod => "pod",
            Self::BroadcastJob => "broadcast_job",
            Self::BroadcastPod => "broadcast_pod",
            Self::AdvancedCronJob => "advanced_cron_job",
            Self::Job => "job",
        }
    }
}

/// An object that the ledger holds.
#[derive(Clone, Debug)]
pub struct Held {
    /// Its namespace; empty if it has none.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
}

impl Kind {
    /// What the ledger holds of a kind that it also hears of by the answers to its own writes. Such an object may come and
    /// go while no watch runs, so that only its absence from a list tells.
    pub fn held(self, ledger: &Ledger) -> Vec<Held> {
        let job = |(key, uid): (&ObjectKey, &str)| Held {
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            uid: uid.to_owned(),
        };
        let in_cluster = |(name, uid): (&str, &str)| Held {
            namespace: String::new(),
            name: name.to_owned(),
            uid: uid.to_owned(),
        };
        match self {
            Self::ImagePullJob => ledger.held_jobs().map(job).collect(),
            Self::ImageListPullJob => ledger.held_lists().map(job).collect(),
            Self::NodeImage => ledger.held_node_images().map(in_cluster).collect(),
            Self::Secret => {
                let in_config = |held: Held| Held { namespace: ledger.config_namespace().to_owned(), ..held };
                ledger.held_copies().map(in_cluster).map(in_config).collect()
            }
            Self::BroadcastJob => ledger.broadcasts.held_jobs().map(job).collect(),
            Self::BroadcastPod => ledger.broadcasts.held_pods().map(job).collect(),
            Self::AdvancedCronJob => ledger.crons.held_crons().map(job).collect(),
            Self::Job => ledger.crons.held_jobs().map(job).collect(),
            Self::Node | Self::Pod => Vec::new(),
        }
    }
}

/// How a kind reaches the ledger.
pub trait Watched: Sized {
    /// Which kind it is.
    const KIND: Kind;
    /// It is like this.
    fn hear(self, ledger: &mut Ledger, now: Timestamp);
    /// One is gone.
    fn lose(ledger: &mut Ledger, namespace: &str, name: &str, uid: Option<&str>);
}

impl Watched for SlimNode {
    const KIND: Kind = Kind::Node;

    fn hear(self, ledger: &mut Ledger, _: Timestamp) {
        ledger.hear_node(self.into());
    }

    fn lose(ledger: &mut Ledger, _: &str, name: &str, _: Option<&str>) {
        ledger.lose_node(name);
    }
}

impl Watched for NodeImage {
    const KIND: Kind = Kind::NodeImage;

    fn hear(self, ledger: &mut Ledger, now: Timestamp) {
        ledger.hear_node_image(self, now);
    }

    fn lose(ledger: &mut Ledger, _: &str, name: &str, uid: Option<&str>) {
        ledger.lose_node_image(name, uid);
    }
}

impl Watched for ImagePullJob {
    const KIND: Kind = Kind::ImagePullJob;

    fn hear(self, ledger: &mut Ledger, _: Timestamp) {
        ledger.hear_job(self);
    }

    fn lose(ledger: &mut Ledger, namespace: &str, name: &str, uid: Option<&str>) {
        ledger.lose_job(&key(namespace, name), uid);
    }
}

impl Watched for ImageListPullJob {
    const KIND: Kind = Kind::ImageListPullJob;

    fn hear(self, ledger: &mut Ledger, _: Timestamp) {
        ledger.hear_list(self);
    }

    fn lose(ledger: &mut Ledger, namespace: &str, name: &str, uid: Option<&str>) {
        ledger.lose_list(&key(namespace, name), uid);
    }
}

impl Watched for BroadcastJob {
    const KIND: Kind = Kind::BroadcastJob;

    fn hear(self, ledger: &mut Ledger, _: Timestamp) {
        ledger.hear_broadcast(self);
    }

    fn lose(ledger: &mut Ledger, namespace: &str, name: &str, uid: Option<&str>) {
        ledger.lose_broadcast(&key(namespace, name), uid);
    }
}

impl Watched for AdvancedCronJob {
    const KIND: Kind = Kind::AdvancedCronJob;

    fn hear(self, ledger: &mut Ledger, _: Timestamp) {
        ledger.crons.hear_cron(self);
    }

    fn lose(ledger: &mut Ledger, namespace: &str, name: &str, uid: Option<&str>) {
        ledger.crons.lose_cron(&key(namespace, name), uid);
    }
}

impl Watched for Secret {
    const KIND: Kind = Kind::Secret;

    fn hear(self, ledger: &mut Ledger, _: Timestamp) {
        ledger.hear_copy(Copy::read(&self.metadata, content::of(&self)));
    }

    fn lose(ledger: &mut Ledger, _: &str, name: &str, _: Option<&str>) {
        ledger.lose_copy(name);
    }
}

impl Watched for SlimPod {
    const KIND: Kind = Kind::Pod;

    fn hear(self, ledger: &mut Ledger, _: Timestamp) {
        let (namespace, name, facts) = self.into_facts();
        ledger.hear_pod(&namespace, &name, Some(facts));
    }

    fn lose(ledger: &mut Ledger, namespace: &str, name: &str, _: Option<&str>) {
        ledger.hear_pod(namespace, name, None);
    }
}

pub(super) fn key(namespace: &str, name: &str) -> ObjectKey {
    ObjectKey { namespace: namespace.to_owned(), name: name.to_owned() }
}
