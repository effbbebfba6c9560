//! Reads single objects that a list lacks.
//!
//! The kernel knows of an object by the answer to its own write, too. If that object goes while no watch runs, no watch
//! ever tells: it is missing from the next list, but so is an object that was made a moment after it.

use std::fmt::Debug;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Resource};
use prewarm_api::kruise::{AdvancedCronJob, BroadcastJob, ImageListPullJob, ImagePullJob, NodeImage};
use prewarm_plan::cluster::{Input, Kind};
use prewarm_plan::object::{ObjectKey, Uid};
use serde::de::DeserializeOwned;

use super::Writer;
use crate::watch::{BroadcastPod, SlimJob, Watched};

/// The pause after the API server could not be asked.
const PAUSE: Duration = Duration::from_secs(2);

impl Writer {
    /// Says what an object is like, or that it is gone. `None` for kinds that only watches know.
    pub(super) async fn read_object(&self, kind: Kind, key: ObjectKey, uid: Uid) -> Option<Input> {
        let client = self.client.clone();
        let here = key.namespace.clone();
        Some(match kind {
            Kind::NodeImage => self.look::<NodeImage>(Api::all(client), key, uid).await,
            Kind::ImagePullJob => self.look::<ImagePullJob>(Api::namespaced(client, &here), key, uid).await,
            Kind::ImageListPullJob => {
                self.look::<ImageListPullJob>(Api::namespaced(client, &here), key, uid).await
            }
            Kind::Secret => self.look::<Secret>(Api::namespaced(client, &here), key, uid).await,
            Kind::BroadcastJob => self.look::<BroadcastJob>(Api::namespaced(client, &here), key, uid).await,
            Kind::BroadcastPod => self.look::<BroadcastPod>(Api::namespaced(client, &here), key, uid).await,
            Kind::AdvancedCronJob => {
                self.look::<AdvancedCronJob>(Api::namespaced(client, &here), key, uid).await
            }
            Kind::Job => self.look::<SlimJob>(Api::namespaced(client, &here), key, uid).await,
            Kind::Node | Kind::Pod => return None,
        })
    }

    async fn look<K>(&self, api: Api<K>, key: ObjectKey, uid: Uid) -> Input
    where
        K: Watched + Resource + Clone + Debug + DeserializeOwned,
    {
        loop {
            match self.send(api.get_opt(&key.name)).await {
                Some(Ok(Some(object))) => return Input::Seen(object.into_object()),
                Some(Ok(None)) => return Input::Gone { kind: K::KIND, key, uid: Some(uid) },
                Some(Err(_)) | None => tokio::time::sleep(PAUSE).await,
            }
        }
    }
}
