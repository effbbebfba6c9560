//! Writes ImagePullJobs: their own objects, and as children of lists.

use std::fmt::Debug;

use k8s_openapi::NamespaceResourceScope;
use kube::api::{DeleteParams, PatchParams, PostParams, Preconditions};
use kube::{Api, Resource};
use prewarm_api::kruise::ImagePullJob;
use prewarm_plan::ledger::{Outcome, Write};
use prewarm_plan::object::{ObjectKey, Uid};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tracing::warn;

use super::answer::outcome;
use super::node_image::{is_on_its_way_out, json_patch};
use super::{FIELD_MANAGER, Hands, Settled};
use crate::metrics::Written;

/// The kinds of jobs, and pods, as far as writing them goes.
pub(super) trait JobKind:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned
{
}

impl<K> JobKind for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned
{
}

impl Hands {
    pub(super) async fn job(&self, uid: Uid, key: ObjectKey, write: Write) -> Settled {
        let counted = [Written::ImagePullJob, Written::ImagePullJobStatus];
        let outcome = self.write::<ImagePullJob>(&uid, &key, write, counted).await;
        Box::new(move |ledger, now, jitter| ledger.job_outcome(&key, &uid, outcome, now, jitter))
    }

    /// Carries out a write to a job of either kind.
    pub(super) async fn write<K: JobKind>(
        &self,
        uid: &str,
        key: &ObjectKey,
        write: Write,
        [object, status]: [Written; 2],
    ) -> Outcome<K> {
        let api: Api<K> = Api::namespaced(self.client.clone(), &key.namespace);
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let (answer, counted) = match write {
            Write::Patch(operations) => {
                let patch = json_patch(operations);
                (self.send(api.patch(&key.name, &params, &patch)).await, object)
            }
            Write::Status(operations) => {
                let patch = json_patch(operations);
                (self.send(api.patch_status(&key.name, &params, &patch)).await, status)
            }
            Write::Delete => return self.remove(&api, uid, key, object).await,
        };
        self.count(counted, answer.as_ref());
        self.job_answer(&api, key, answer).await
    }

    /// Deletes the one with this UID, and lets the garbage collector take what it owns.
    pub(super) async fn remove<K: JobKind>(
        &self,
        api: &Api<K>,
        uid: &str,
        key: &ObjectKey,
        counted: Written,
    ) -> Outcome<K> {
        let preconditions = Preconditions { uid: Some(uid.to_owned()), resource_version: None };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::background() };
        let answer = self.send(api.delete(&key.name, &params)).await;
        self.count(counted, answer.as_ref());
        match answer.map(|answer| answer.map(|either| either.left().filter(is_on_its_way_out))) {
            Some(Ok(None)) => Outcome::Gone,
            Some(Ok(Some(object))) => Outcome::Written(object),
            Some(Err(error)) => self.job_answer(api, key, Some(Err(error))).await,
            None => Outcome::Failed,
        }
    }

    pub(super) async fn job_answer<K: JobKind>(
        &self,
        api: &Api<K>,
        key: &ObjectKey,
        answer: Option<Result<K, kube::Error>>,
    ) -> Outcome<K> {
        let what = format!("{} {key}", K::kind(&()));
        outcome(&what, answer, async || self.send(api.get_opt(&key.name)).await).await
    }

    /// Makes an object. It goes as it is, with fields that this release does not know.
    pub(super) async fn post<K: JobKind>(&self, namespace: &str, object: &Value) -> Result<K, kube::Error> {
        let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        let body = serde_json::to_vec(object).map_err(kube::Error::SerdeError)?;
        let url = K::url_path(&(), Some(namespace));
        let mut request =
            kube::api::Request::new(url).create(&params, body).map_err(kube::Error::BuildRequest)?;
        request.extensions_mut().insert("create");
        self.client.request(request).await
    }

    /// What became of an object that a job makes.
    pub(super) async fn created<K: JobKind>(
        &self,
        api: &Api<K>,
        key: &ObjectKey,
        answer: Option<Result<K, kube::Error>>,
    ) -> Outcome<K> {
        match answer {
            // A quota or a policy is the user's own, and waiting does not help.
            Some(Err(kube::Error::Api(status))) if status.code == 403 => {
                warn!(kind = %K::kind(&()), object = %key, reason = %status.message, "the API server refuses it");
                Outcome::Refused(status.message.clone())
            }
            answer => self.job_answer(api, key, answer).await,
        }
    }

    pub(super) async fn create_child(&self, list: Uid, child: ImagePullJob) -> Settled {
        let key = ObjectKey::of(&child.metadata);
        let api: Api<ImagePullJob> = Api::namespaced(self.client.clone(), &key.namespace);
        let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        let answer = self.send(api.create(&params, &child)).await;
        self.count(Written::Child, answer.as_ref());
        let outcome = self.created(&api, &key, answer).await;
        Box::new(move |ledger, now, jitter| ledger.child_created(&list, &child, outcome, now, jitter))
    }

    pub(super) async fn delete_child(&self, list: Uid, key: ObjectKey, uid: String) -> Settled {
        let api: Api<ImagePullJob> = Api::namespaced(self.client.clone(), &key.namespace);
        let outcome = self.remove(&api, &uid, &key, Written::Child).await;
        Box::new(move |ledger, now, jitter| ledger.child_deleted(&list, &key, &uid, outcome, now, jitter))
    }
}
