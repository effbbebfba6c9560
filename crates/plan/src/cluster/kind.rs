//! The two tables of the kernel: which kinds of objects are watched, and what a cycle looks at. A kind has one row in each; what the
//! kernel asks of it besides stands in its folder (`interface`).

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use prewarm_api::kruise::{AdvancedCronJob, BroadcastJob, ImageListPullJob, ImagePullJob, NodeImage};
use prewarm_api::ofen::{ImagePrefetch, NodeImageSet};

use super::advanced_cron_job::{Crons, child::Child};
use super::broadcast_job::{Broadcasts, pod::Pod};
use super::command::{Command, Settled};
use super::demands::pod::PodFacts;
use super::image_list_pull_job::Lists;
use super::image_prefetch::Prefetches;
use super::image_pull_job::Jobs;
use super::interface::{About, Observe, Pass};
use super::kernel::Kernel;
use super::node_image::Nodes;
use super::node_image_set::Sets;
use super::quarantine::{MayBeUnreadable as _, Quarantine};
use super::secret::{Copy, Secrets};
#[cfg(test)]
use super::wish::{Wish, Wishes};
use crate::object::version::has_ended;
use crate::object::{NodeName, ObjectKey, SourceKey, Uid};

/// Makes `Kind` and `Object` of rows: kind, what of it is observed, a short fixed word for metrics and logs.
macro_rules! kinds {
    ($($(#[doc = $about:literal])* $(#[cfg($when:meta)])? $kind:ident($object:ty) = $word:literal,)*) => {
        /// A kind that is watched.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind {
            $($(#[doc = $about])* $(#[cfg($when)])? $kind,)*
        }

        /// An object, as far as decisions need it.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Object {
            $($(#[doc = $about])* $(#[cfg($when)])? $kind(Box<$object>),)*
        }

        impl Kind {
            /// All of them.
            pub const ALL: [Self; [$($(#[cfg($when)])? $word),*].len()] = [$($(#[cfg($when)])? Self::$kind),*];

            /// A short fixed word for metrics and logs.
            pub const fn as_str(self) -> &'static str {
                match self { $($(#[cfg($when)])? Self::$kind => $word,)* }
            }

            /// The same for its status.
            pub const fn status_word(self) -> &'static str {
                match self { $($(#[cfg($when)])? Self::$kind => concat!($word, "_status"),)* }
            }

            /// What does not depend on any object of it.
            pub const fn about(self) -> About {
                match self { $($(#[cfg($when)])? Self::$kind => <$object as Observe>::ABOUT,)* }
            }

            pub(super) fn forget(self, kernel: &mut Kernel, key: &ObjectKey, uid: Option<&str>) {
                match self { $($(#[cfg($when)])? Self::$kind => <$object>::forget(kernel, key, uid),)* }
            }

            pub(super) fn held(self, kernel: &Kernel) -> Vec<(ObjectKey, Uid)> {
                match self { $($(#[cfg($when)])? Self::$kind => <$object>::held(kernel),)* }
            }

            pub(super) fn listed(self, kernel: &mut Kernel, namespace: &str) {
                match self { $($(#[cfg($when)])? Self::$kind => <$object>::listed(kernel, namespace),)* }
            }

            pub(super) fn unwatched(self, kernel: &mut Kernel, namespace: &str) {
                match self { $($(#[cfg($when)])? Self::$kind => <$object>::unwatched(kernel, namespace),)* }
            }

            pub(super) fn namespaces(self, kernel: &Kernel) -> BTreeSet<String> {
                match self { $($(#[cfg($when)])? Self::$kind => <$object>::namespaces(kernel),)* }
            }

            pub(super) fn released(self, kernel: &mut Kernel, key: &ObjectKey, uid: Uid) {
                match self { $($(#[cfg($when)])? Self::$kind => <$object>::released(kernel, key, uid),)* }
            }

            pub(super) fn visits(self, kernel: &Kernel, key: &ObjectKey) -> Option<u64> {
                match self { $($(#[cfg($when)])? Self::$kind => <$object>::visits(kernel, key),)* }
            }
        }

        impl Object {
            /// Its kind.
            pub const fn kind(&self) -> Kind {
                match self { $($(#[cfg($when)])? Self::$kind(_) => Kind::$kind,)* }
            }

            /// Its namespace and name; copies of Secrets are in the config namespace.
            pub fn key(&self, config_namespace: &str) -> ObjectKey {
                match self { $($(#[cfg($when)])? Self::$kind(object) => object.key(config_namespace),)* }
            }

            /// Whether it is being deleted and has nothing left to wait for.
            pub fn has_ended(&self) -> bool {
                match self { $($(#[cfg($when)])? Self::$kind(object) => object.metadata().is_some_and(has_ended),)* }
            }

            pub(super) fn observe(self, kernel: &mut Kernel, now: Timestamp) {
                match self { $($(#[cfg($when)])? Self::$kind(object) => object.observe(kernel, now),)* }
            }
        }

        $($(#[cfg($when)])? impl From<$object> for Object {
            fn from(object: $object) -> Self {
                Self::$kind(Box::new(object))
            }
        })*
    };
}

kinds! {
    /// Node.
    Node(Node) = "node",
    /// NodeImage.
    NodeImage(NodeImage) = "node_image",
    /// ImagePullJob.
    ImagePullJob(ImagePullJob) = "image_pull_job",
    /// ImageListPullJob.
    ImageListPullJob(ImageListPullJob) = "image_list_pull_job",
    /// Secret, in the config namespace, without what it holds.
    Secret(Copy) = "secret",
    /// Pod, in namespaces with a job that selects by pods.
    Pod((ObjectKey, PodFacts)) = "pod",
    /// BroadcastJob.
    BroadcastJob(BroadcastJob) = "broadcast_job",
    /// Pod that may be one of a BroadcastJob's.
    BroadcastPod((ObjectKey, Pod)) = "broadcast_pod",
    /// AdvancedCronJob.
    AdvancedCronJob(AdvancedCronJob) = "advanced_cron_job",
    /// Job, in namespaces with a cron job that makes some, and the run that it is, if a cron job controls it.
    Job((ObjectKey, Option<Child>)) = "job",
    /// ImagePrefetch.
    ImagePrefetch(ImagePrefetch) = "image_prefetch",
    /// NodeImageSet.
    NodeImageSet(NodeImageSet) = "node_image_set",
    /// The ConfigMap that says which images each namespace may have.
    ConfigMap(ConfigMap) = "config_map",
    /// What only tests have.
    #[cfg(test)]
    Wish(Wish) = "wish",
}

impl Kind {
    /// The kinds that have to be known before anything is decided.
    pub fn needed() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|kind| kind.about().is_needed)
    }
}

/// Makes `Target` and `Subject` of rows: what is looked at, by what it is known and in whose pass, a short fixed word for metrics.
macro_rules! targets {
    ($($(#[doc = $about:literal])* $(#[cfg($when:meta)])? $target:ident($id:ty) in $pass:ty = $word:literal,)*) => {
        /// What a pass looks at, and what writes are asked for by. The order is that of a cycle: each may change what the later
        /// ones see.
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Target {
            $($(#[doc = $about])* $(#[cfg($when)])? $target($id),)*
        }

        /// By what passes are counted.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Subject {
            $($(#[doc = $about])* $(#[cfg($when)])? $target,)*
        }

        impl Subject {
            /// All of them, in the order of a cycle.
            pub const ALL: [Self; [$($(#[cfg($when)])? $word),*].len()] = [$($(#[cfg($when)])? Self::$target),*];

            /// A short fixed word for metrics.
            pub const fn as_str(self) -> &'static str {
                match self { $($(#[cfg($when)])? Self::$target => $word,)* }
            }
        }

        impl Target {
            pub(super) fn pass(&self, kernel: &mut Kernel, now: Timestamp, commands: &mut Vec<Command>) {
                match self { $($(#[cfg($when)])? Self::$target(id) => <$pass>::pass(kernel, id, now, commands),)* }
            }

            pub(super) fn settle(kernel: &mut Kernel, settled: Settled) {
                match &settled.ticket.asker.clone() {
                    $($(#[cfg($when)])? Self::$target(id) => <$pass>::settle(kernel, id, settled),)*
                }
            }

            /// Whether a pass would write to what cannot be read.
            pub(super) fn is_in(&self, quarantine: &Quarantine) -> bool {
                match self { $($(#[cfg($when)])? Self::$target(id) => id.is_in(quarantine),)* }
            }
        }
    };
}

targets! {
    /// A Secret that jobs name.
    Source(SourceKey) in Secrets = "source",
    /// An ImagePullJob.
    Job(Uid) in Jobs = "image_pull_job",
    /// An ImageListPullJob.
    List(Uid) in Lists = "image_list_pull_job",
    /// An ImagePrefetch.
    Prefetch(Uid) in Prefetches = "image_prefetch",
    /// What only tests have.
    #[cfg(test)]
    Wish(Uid) in Wishes = "wish",
    /// A node and its NodeImage.
    Node(NodeName) in Nodes = "node_image",
    /// A NodeImageSet.
    NodeImageSet(Uid) in Sets = "node_image_set",
    /// A BroadcastJob.
    Broadcast(Uid) in Broadcasts = "broadcast_job",
    /// An AdvancedCronJob.
    Cron(Uid) in Crons = "advanced_cron_job",
}
