//! The controller's view of the cluster: one watch for each kind, which says what is there, what is gone, and when all
//! of it has been heard once.

use std::collections::BTreeSet;
use std::fmt::Debug;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Secret};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Resource, ResourceExt as _};
use prewarm_api::kruise::{AdvancedCronJob, BroadcastJob, ImageListPullJob, ImagePullJob, NodeImage};
use prewarm_api::ofen::{ImagePrefetch, NodeImageSet};
use prewarm_plan::cluster::secret::Copy;
use prewarm_plan::cluster::{Input, Kind, Object};
use prewarm_plan::object::ObjectKey;
use prewarm_process::slim::{SlimNode, SlimPod};
use prewarm_process::watch::{Crowd, Obstacle, patiently};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tracing::{debug, info, warn};

use crate::content::{self, Held};
use crate::metrics::Metrics;

mod broadcast_pod;
mod choice;
mod lenient;
mod local;
mod obstacle;
mod slim_job;

pub use broadcast_pod::BroadcastPod;
pub use choice::{follow, follow_labelled, follow_named};
pub use lenient::Lenient;
pub use local::Local;
pub use slim_job::SlimJob;

/// A watch that ends with whoever holds this.
pub struct Watch(AbortHandle);

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Follows objects of a kind through outages, for ever.
fn follow_chosen<K>(
    api: Api<Lenient<K>>,
    config: watcher::Config,
    namespace: Option<String>,
    sender: mpsc::Sender<Input>,
    metrics: Metrics,
) -> Watch
where
    K: Watched + Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    let task = tokio::spawn(async move {
        let mut events = std::pin::pin!(patiently(Box::pin(watcher(api, config)), Crowd::Few));
        let mut known = Known::default();
        while let Some(event) = events.next().await {
            let inputs = match event {
                Ok(event) => known.observe(event, namespace.as_deref()),
                Err(error) => {
                    metrics.reconnected(K::KIND);
                    known.fail::<K>(&error, namespace.as_deref())
                }
            };
            for input in inputs {
                if sender.send(input).await.is_err() {
                    return;
                }
            }
        }
    });
    Watch(task.abort_handle())
}

/// The names that were observed, so that what is missing from a new list is known to be gone.
#[derive(Default)]
struct Known {
    names: BTreeSet<ObjectKey>,
    listing: BTreeSet<ObjectKey>,
    /// What keeps the kind from being watched at all.
    obstacle: Option<Obstacle>,
}

impl Known {
    fn observe<K: Watched + Resource<DynamicType = ()> + Send + 'static>(
        &mut self,
        event: Event<Lenient<K>>,
        namespace: Option<&str>,
    ) -> Vec<Input> {
        // A beginning comes before every attempt.
        if !matches!(event, Event::Init) && self.obstacle.take().is_some() {
            info!(kind = K::KIND.as_str(), "can be watched");
        }
        match event {
            Event::Init => {
                self.listing.clear();
                Vec::new()
            }
            Event::InitApply(object) => {
                self.listing.insert(key(&object));
                vec![seen(object)]
            }
            Event::InitDone => {
                let listed = std::mem::take(&mut self.listing);
                self.replace::<K>(listed, namespace)
            }
            Event::Apply(object) => {
                self.names.insert(key(&object));
                vec![seen(object)]
            }
            Event::Delete(object) => {
                self.names.remove(&key(&object));
                vec![gone::<K>(key(&object), object.uid())]
            }
        }
    }

    /// This is all that there is.
    fn replace<K: Watched>(&mut self, listed: BTreeSet<ObjectKey>, namespace: Option<&str>) -> Vec<Input> {
        let missing = std::mem::replace(&mut self.names, listed.clone());
        let missing: Vec<ObjectKey> = missing.into_iter().filter(|key| !listed.contains(key)).collect();
        let all = Input::Listed { kind: K::KIND, namespace: namespace.map(str::to_owned), names: listed };
        missing.into_iter().map(|key| gone::<K>(key, None)).chain([all]).collect()
    }
}

fn key<K: Resource<DynamicType = ()>>(object: &Lenient<K>) -> ObjectKey {
    ObjectKey { namespace: object.namespace().unwrap_or_default(), name: object.name_any() }
}

/// An object that cannot be read is left alone: it must not keep others from being served.
fn seen<K: Watched + Resource<DynamicType = ()>>(object: Lenient<K>) -> Input {
    let (key, uid) = (key(&object), object.uid().unwrap_or_default());
    match object.into_read() {
        Ok(object) => Input::Seen(object.into_object()),
        Err(reason) => {
            // The reason quotes what could not be read.
            let reason = if K::KIND == Kind::Secret { "its form is not known".to_owned() } else { reason };
            warn!(kind = K::KIND.as_str(), object = %key, %reason, "left alone: it cannot be read");
            Input::Unreadable { kind: K::KIND, key, uid: uid.as_str().into(), reason }
        }
    }
}

fn gone<K: Watched>(key: ObjectKey, uid: Option<String>) -> Input {
    debug!(kind = K::KIND.as_str(), object = %key, "gone");
    Input::Gone { kind: K::KIND, key, uid: uid.map(|uid| uid.as_str().into()) }
}

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

whole!(
    NodeImage,
    ImagePullJob,
    ImageListPullJob,
    BroadcastJob,
    AdvancedCronJob,
    ImagePrefetch,
    NodeImageSet,
    ConfigMap
);

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
