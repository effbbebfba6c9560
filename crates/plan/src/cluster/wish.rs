//! A kind that exists in tests only, to try what the next kind has to write (CONTRIBUTING.md, "Adding a kind"). A wish names an image
//! and nodes. It is read into a demand of its own; granting, joining, counting and the end of its entries are those of any demand.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use prewarm_api::kruise::ImagePullPolicy;
use prewarm_api::reference_object::ObjectReference;

use crate::cluster::command::{Command, Settled};
use crate::cluster::demands::{State, Statement, wants};
use crate::cluster::interface::{About, Demands, Observe, Pass, Writes, owned};
use crate::cluster::{Kernel, Subject, Target};
use crate::demand::selection::Selection;
use crate::demand::{Demand, Limits, Source, Until};
use crate::object::{ImageKey, ObjectKey, Uid};

/// An image that somebody wishes for on some nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Wish {
    pub metadata: ObjectMeta,
    pub image: ImageKey,
    pub nodes: Selection,
    pub at_once: usize,
}

/// All wishes.
#[derive(Debug, Default)]
pub struct Wishes(BTreeMap<ObjectKey, Uid>);

impl Observe for Wish {
    const ABOUT: About =
        About { demands: Demands::OfRegistries, ..About::new("wishes.test/v1", "Wish", Writes::Nothing) };

    fn metadata(&self) -> Option<&ObjectMeta> {
        Some(&self.metadata)
    }

    fn observe(self, kernel: &mut Kernel, _now: Timestamp) {
        let uid = Uid::from(self.metadata.uid.as_deref().unwrap_or_default());
        let key = ObjectKey::of(&self.metadata);
        let statement = Statement {
            target: Target::Wish(uid.clone()),
            key: key.clone(),
            made_at: None,
            demand: Some(self.demand()),
            state: State::Active,
            is_edited: kernel.wishes.0.insert(key, uid.clone()).is_some(),
        };
        kernel.place_demand(&uid, statement);
    }

    fn forget(kernel: &mut Kernel, key: &ObjectKey, _uid: Option<&str>) {
        if let Some(uid) = kernel.wishes.0.remove(key) {
            kernel.forget_demand(&uid);
            kernel.agenda.drop_target(Target::Wish(uid));
        }
    }

    fn held(kernel: &Kernel) -> Vec<(ObjectKey, Uid)> {
        owned(kernel.wishes.0.iter())
    }
}

impl Pass for Wishes {
    type Id = Uid;

    fn pass(kernel: &mut Kernel, uid: &Uid, now: Timestamp, _commands: &mut Vec<Command>) {
        kernel.passes.count(Subject::Wish);
        let Some(record) = kernel.demands.get_mut(uid) else { return };
        let Some(mut roll) = record.roll.take() else { return };
        let wants = wants(&record.demand, false, &mut roll, now);
        record.roll = Some(roll);
        kernel.note_wants(uid, wants.of_nodes, now);
        kernel.agenda.wake(Target::Wish(uid.clone()), wants.wake_at);
    }

    /// Nothing is written to it.
    fn settle(_kernel: &mut Kernel, _uid: &Uid, _settled: Settled) {}
}

impl Wish {
    /// What it wants of nodes.
    fn demand(&self) -> Demand {
        let ObjectMeta { namespace, name, uid, .. } = self.metadata.clone();
        Demand {
            owner: ObjectReference {
                api_version: Some(Self::ABOUT.api_version.to_owned()),
                kind: Some(Self::ABOUT.name.to_owned()),
                namespace,
                name,
                uid,
                ..ObjectReference::default()
            },
            image: Some(self.image.clone()),
            nodes: self.nodes.clone(),
            at_once: self.at_once,
            secrets: std::collections::BTreeSet::new(),
            pull_policy: ImagePullPolicy::IfNotPresent,
            limits: Limits { timeout_seconds: 600, backoff_limit: 3 },
            sandbox: None,
            source: Source::Anywhere,
            until: Until::Withdrawn,
        }
    }
}

mod tests;
