//! A kind that exists in tests only, to try what the next kind has to write (CONTRIBUTING.md, "Adding a kind"). A wish names an image
//! and nodes. It is read into a demand of its own; granting, joining, counting and the end of its entries are those of any demand.

use std::collections::BTreeMap;

use jiff::Timestamp;
use prewarm_api::kruise::ImagePullPolicy;
use prewarm_api::reference_object::ObjectReference;

use crate::cluster::demands::{State, Statement, wants};
use crate::cluster::{Kernel, Target};
use crate::demand::selection::Selection;
use crate::demand::{Demand, Limits, Source, Until};
use crate::object::{ImageKey, ObjectKey, Uid};

/// Group and kind, as entries name the owner.
pub const GROUP: &str = "wishes.test";
pub const KIND: &str = "Wish";

/// An image that somebody wishes for on some nodes.
#[derive(Clone, Debug)]
pub struct Wish {
    pub key: ObjectKey,
    pub image: ImageKey,
    pub nodes: Selection,
    pub at_once: usize,
}

/// All wishes.
#[derive(Debug, Default)]
pub struct Wishes(BTreeMap<Uid, Wish>);

impl Kernel {
    /// A wish is like this.
    pub(in crate::cluster) fn observe_wish(&mut self, uid: &Uid, wish: Wish) {
        let statement = Statement {
            target: Target::Wish(uid.clone()),
            key: wish.key.clone(),
            made_at: None,
            demand: Some(demand(uid, &wish)),
            state: State::Active,
            is_edited: self.wishes.0.insert(uid.clone(), wish).is_some(),
        };
        self.place_demand(uid, statement);
    }

    /// A wish is gone.
    pub(in crate::cluster) fn forget_wish(&mut self, uid: &Uid) {
        if self.wishes.0.remove(uid).is_some() {
            self.forget_demand(uid);
            self.agenda.drop_target(Target::Wish(uid.clone()));
        }
    }

    pub(in crate::cluster) fn wish_pass(&mut self, uid: &Uid, now: Timestamp) {
        let Some(record) = self.demands.get_mut(uid) else { return };
        let Some(mut roll) = record.roll.take() else { return };
        let wants = wants(&record.demand, false, &mut roll, now);
        record.roll = Some(roll);
        self.note_wants(uid, wants.of_nodes, now);
        self.agenda.wake(Target::Wish(uid.clone()), wants.wake_at);
    }
}

/// What a wish wants of nodes.
fn demand(uid: &Uid, wish: &Wish) -> Demand {
    Demand {
        owner: ObjectReference {
            api_version: Some(format!("{GROUP}/v1")),
            kind: Some(KIND.to_owned()),
            namespace: Some(wish.key.namespace.clone()),
            name: Some(wish.key.name.clone()),
            uid: Some(uid.to_string()),
            ..ObjectReference::default()
        },
        image: Some(wish.image.clone()),
        nodes: wish.nodes.clone(),
        at_once: wish.at_once,
        secrets: std::collections::BTreeSet::new(),
        pull_policy: ImagePullPolicy::IfNotPresent,
        limits: Limits { timeout_seconds: 600, backoff_limit: 3 },
        sandbox: None,
        source: Source::Anywhere,
        until: Until::Withdrawn,
    }
}

mod tests;
