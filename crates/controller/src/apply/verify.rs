//! Looks at single objects that a list lacks.
//!
//! The ledger hears of an object by the answer to its own write, too. If that object goes while no watch runs, no watch
//! ever tells: it is missing from the next list, but so is an object that was made a moment after it.

use std::fmt::Debug;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Resource};
use prewarm_api::kruise::{AdvancedCronJob, BroadcastJob, ImageListPullJob, ImagePullJob, NodeImage};
use serde::de::DeserializeOwned;

use super::{Hands, Settled};
use crate::watch::{BroadcastPod, Held, Kind, SlimJob, Watched};

/// The pause after the API server could not be asked.
const PAUSE: Duration = Duration::from_secs(2);

impl Hands {
    /// Says what an object is like, or that it is gone. `None` for kinds that only watches tell of.
    pub(super) async fn verify(&self, kind: Kind, held: Held) -> Option<Settled> {
        let (client, namespace) = (self.client.clone(), held.namespace.clone());
        match kind {
            Kind::NodeImage => Some(self.look::<NodeImage>(Api::all(client), held).await),
            Kind::ImagePullJob => {
                Some(self.look::<ImagePullJob>(Api::namespaced(client, &namespace), held).await)
            }
            Kind::ImageListPullJob => {
                Some(self.look::<ImageListPullJob>(Api::namespaced(client, &namespace), held).await)
            }
            Kind::Secret => Some(self.look::<Secret>(Api::namespaced(client, &namespace), held).await),
            Kind::BroadcastJob => {
                Some(self.look::<BroadcastJob>(Api::namespaced(client, &namespace), held).await)
            }
            Kind::BroadcastPod => {
                Some(self.look::<BroadcastPod>(Api::namespaced(client, &namespace), held).await)
            }
            Kind::AdvancedCronJob => {
                Some(self.look::<AdvancedCronJob>(Api::namespaced(client, &namespace), held).await)
            }
            Kind::Job => Some(self.look::<SlimJob>(Api::namespaced(client, &namespace), held).await),
            Kind::Node | Kind::Pod => None,
        }
    }

    async fn look<K>(&self, api: Api<K>, held: Held) -> Settled
    where
        K: Watched + Resource + Clone + Debug + DeserializeOwned + Send + 'static,
    {
        loop {
            match self.send(api.get_opt(&held.name)).await {
                Some(Ok(Some(object))) => return Box::new(move |ledger, now, _| object.hear(ledger, now)),
                Some(Ok(None)) => {
                    return Box::new(move |ledger, _, _| {
                        K::lose(ledger, &held.namespace, &held.name, Some(&held.uid));
                    });
                }
                Some(Err(_)) | None => tokio::time::sleep(PAUSE).await,
            }
        }
    }
}
