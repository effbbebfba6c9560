//! What the kernel asks of a kind; each kind's folder has the answers.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::command::{Command, Settled};
use super::kernel::Kernel;
use crate::object::{ObjectKey, Uid};

/// A status is written at most this often, the last one apart.
pub const STATUS_INTERVAL: Duration = Duration::from_secs(1);

/// How the kernel gets to know the objects of a kind.
pub trait Observe: Sized {
    /// What does not depend on any object.
    const ABOUT: About;

    /// Its metadata, if the kernel is shown all of them.
    fn metadata(&self) -> Option<&ObjectMeta> {
        None
    }
    /// Its namespace and name; what has no metadata says it itself.
    fn key(&self, _config_namespace: &str) -> ObjectKey {
        ObjectKey::of(self.metadata().expect("an object without metadata has a key of its own"))
    }
    /// It is like this.
    fn observe(self, kernel: &mut Kernel, now: Timestamp);
    /// It is gone. With a UID, only if it is still that one.
    fn forget(kernel: &mut Kernel, key: &ObjectKey, uid: Option<&str>);
    /// All that is also known by the answers to our own writes.
    fn held(_kernel: &Kernel) -> Vec<(ObjectKey, Uid)> {
        Vec::new()
    }
    /// All of them were listed, of a namespace if that is how they are watched.
    fn listed(_kernel: &mut Kernel, _namespace: &str) {}
    /// They are no longer watched in a namespace.
    fn unwatched(_kernel: &mut Kernel, _namespace: &str) {}
    /// The namespaces in which they have to be watched; none if they are watched everywhere.
    fn namespaces(_kernel: &Kernel) -> BTreeSet<String> {
        BTreeSet::new()
    }
    /// One that could not be read can be, or is gone: whoever kept something for its sake looks again.
    fn released(_kernel: &mut Kernel, _key: &ObjectKey, _uid: Uid) {}
    /// How often the passes over one have looked at a node.
    fn visits(_kernel: &Kernel, _key: &ObjectKey) -> Option<u64> {
        None
    }
}

/// A kind of which people ask why its nodes are where they are.
pub trait Explain {
    /// The answer.
    type Explanation;

    /// Why the nodes of an object are where they are. Nothing is decided: whoever asks may know what there is without having
    /// granted anything.
    fn explain(kernel: &mut Kernel, key: &ObjectKey, now: Timestamp) -> Option<Self::Explanation>;
}

/// What does not depend on any object of a kind.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// The `apiVersion` of references to it.
    pub api_version: &'static str,
    /// Its name in Kubernetes.
    pub name: &'static str,
    /// What is written of it.
    pub writes: Writes,
    /// Whether it has to be known before anything is decided: on a part of the cluster a job would look as if it had no node,
    /// and an owner as if it were gone.
    pub is_needed: bool,
    /// Whether everything else works without its definition.
    pub can_be_left_out: bool,
    /// What demands it makes.
    pub demands: Demands,
}

/// What demands the objects of a kind make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demands {
    /// None.
    None,
    /// For images as the runtime pulls them; entries name it as their owner.
    OfRegistries,
    /// The same, and for what mirrors have alone.
    OfMirrorsToo,
}

impl About {
    /// A kind that nothing else depends on.
    pub const fn new(api_version: &'static str, name: &'static str, writes: Writes) -> Self {
        Self { api_version, name, writes, is_needed: false, can_be_left_out: false, demands: Demands::None }
    }

    /// Whether it makes demands.
    pub fn makes_demands(&self) -> bool {
        self.demands != Demands::None
    }

    /// Whether its demands may be for what mirrors have alone.
    pub fn asks_mirrors(&self) -> bool {
        self.demands == Demands::OfMirrorsToo
    }
}

/// What the controller writes of a kind for that kind's own sake: what is made for another kind counts as that one's child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writes {
    /// Nothing.
    Nothing,
    /// The object.
    Object,
    /// Its status.
    Status,
    /// Both.
    Both,
}

/// What a cycle looks at.
pub trait Pass {
    /// By what one of them is known.
    type Id;

    /// Looks at one, and decides what to do.
    fn pass(kernel: &mut Kernel, id: &Self::Id, now: Timestamp, commands: &mut Vec<Command>);
    /// A write that one has asked for came to its end.
    fn settle(kernel: &mut Kernel, id: &Self::Id, settled: Settled);
}

/// The names and UIDs of what a store holds.
pub fn owned<'a>(held: impl Iterator<Item = (&'a ObjectKey, &'a Uid)>) -> Vec<(ObjectKey, Uid)> {
    held.map(|(key, uid)| (key.clone(), uid.clone())).collect()
}
