//! The kinds that are watched, and what of each is observed.

use k8s_openapi::api::core::v1::{Node, Secret};
use prewarm_api::kruise::{AdvancedCronJob, BroadcastJob, ImageListPullJob, ImagePullJob, NodeImage};
use prewarm_plan::cluster::secret::Copy;
use prewarm_plan::cluster::{Kind, Object};
use prewarm_process::slim::{SlimNode, SlimPod};

use crate::content::{self, Held};

/// A kind that is watched.
pub trait Watched: Sized {
    /// Which kind it is.
    const KIND: Kind;
    /// What is observed of it.
    fn into_object(self) -> Object;
}

macro_rules! whole {
    ($($kind:ident),*) => {
        $(impl Watched for $kind {
            const KIND: Kind = Kind::$kind;

            fn into_object(self) -> Object {
                self.into()
            }
        })*
    };
}

whole!(NodeImage, ImagePullJob, ImageListPullJob, BroadcastJob, AdvancedCronJob);

impl Watched for SlimNode {
    const KIND: Kind = Kind::Node;

    fn into_object(self) -> Object {
        Node::from(self).into()
    }
}

impl Watched for Secret {
    const KIND: Kind = Kind::Secret;

    fn into_object(self) -> Object {
        let held = Held(self);
        Copy::read(&held.0.metadata, content::of(&held)).into()
    }
}

impl Watched for SlimPod {
    const KIND: Kind = Kind::Pod;

    fn into_object(self) -> Object {
        self.into_facts().into()
    }
}
