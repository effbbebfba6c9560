//! Reads single objects that a list lacks.
//!
//! The kernel knows of an object by the answer to its own write, too. If that object goes while no watch runs, no watch
//! ever tells: it is missing from the next list, but so is an object that was made a moment after it.

use std::fmt::Debug;
use std::time::Duration;

use kube::{Api, Resource};
use prewarm_plan::cluster::{Input, Kind};
use prewarm_plan::object::{ObjectKey, Uid};
use serde::de::DeserializeOwned;

use super::Writer;
use super::api::with_api;
use crate::watch::Watched;

/// The pause after the API server could not be asked.
const PAUSE: Duration = Duration::from_secs(2);

impl Writer {
    /// Says what an object is like, or that it is gone. `None` for kinds that only watches know.
    pub(super) async fn read_object(&self, kind: Kind, key: ObjectKey, uid: Uid) -> Option<Input> {
        let here = key.namespace.clone();
        with_api!(
            self.client.clone(), kind, &here,
            api => Some(self.look(api, key, uid).await),
            else None
        )
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
