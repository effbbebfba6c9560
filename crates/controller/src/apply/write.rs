//! Carries one write out, whatever the kind of its object.

use std::fmt::Debug;

use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Resource};
use prewarm_plan::cluster::command::{Outcome, Ticket, Verb, Write};
use prewarm_plan::cluster::{Kind, Object};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tracing::warn;

use super::answer::outcome;
use super::api::with_api;
use super::{FIELD_MANAGER, Writer};
use crate::metrics::Written;
use crate::watch::Watched;

/// What can be written like any other object.
pub(super) trait Writable:
    Watched + Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned
{
}

impl<K> Writable for K where K: Watched + Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned {}

impl Writer {
    /// Carries a write out.
    pub(super) async fn write(&self, write: Write) -> Outcome<Object> {
        let Write { ticket, verb } = write;
        let verb = match verb {
            Verb::Copy(excerpt, action) => {
                return self.write_copy(&excerpt, &ticket.key.name, action).await;
            }
            Verb::Judge(verdicts) => return self.judge(&ticket, &verdicts).await,
            verb => verb,
        };
        with_api!(
            self.client.clone(), ticket.kind, &ticket.key.namespace,
            api => self.send_to(&api, &ticket, verb).await,
            else unreachable!("nobody asks for a write to a {}", ticket.kind.as_str())
        )
    }

    async fn send_to<K: Writable>(&self, api: &Api<K>, ticket: &Ticket, verb: Verb) -> Outcome<Object> {
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let (name, counted) = (&ticket.key.name, Written::of(ticket, &verb));
        let (answer, grants) = match verb {
            Verb::Create(object) => {
                let answer = self.send(self.post::<K>(ticket, &object)).await;
                self.count(counted, answer.as_ref());
                return self.created(api, ticket, answer).await.map(K::into_object);
            }
            Verb::Patch(operations, grants) => {
                (self.send(api.patch(name, &params, &json_patch(operations))).await, grants)
            }
            Verb::PatchStatus(operations) => {
                (self.send(api.patch_status(name, &params, &json_patch(operations))).await, 0)
            }
            Verb::Delete => return self.delete(api, ticket, counted).await.map(K::into_object),
            Verb::Judge(_) | Verb::Copy(..) => unreachable!("they are carried out elsewhere"),
        };
        self.count(counted, answer.as_ref());
        if matches!(answer, Some(Ok(_))) {
            self.metrics.granted(grants);
        }
        self.outcome_of(api, ticket, answer).await.map(K::into_object)
    }

    /// Deletes the one with this UID, and lets the garbage collector take what it owns.
    async fn delete<K: Writable>(&self, api: &Api<K>, ticket: &Ticket, counted: Written) -> Outcome<K> {
        let uid = ticket.uid.as_deref().map(str::to_owned);
        let preconditions = Preconditions { uid, resource_version: None };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::background() };
        let answer = self.send(api.delete(&ticket.key.name, &params)).await;
        self.count(counted, answer.as_ref());
        // An object without finalizers is gone at once; one with them is on its way out.
        let is_terminating = |object: &K| object.meta().deletion_timestamp.is_some();
        match answer.map(|answer| answer.map(|either| either.left().filter(is_terminating))) {
            Some(Ok(None)) => Outcome::Gone,
            Some(Ok(Some(object))) => Outcome::Written(object),
            Some(Err(error)) => self.outcome_of(api, ticket, Some(Err(error))).await,
            None => Outcome::Failed(None),
        }
    }

    /// What became of a write, by the answer to it.
    pub(super) async fn outcome_of<K: Writable>(
        &self,
        api: &Api<K>,
        ticket: &Ticket,
        answer: Option<Result<K, kube::Error>>,
    ) -> Outcome<K> {
        let what = format!("{} {}", K::kind(&()), ticket.key);
        outcome(&what, answer, async || self.send(api.get_opt(&ticket.key.name)).await).await
    }

    /// Makes an object. It goes as it is, with fields that this release does not know.
    async fn post<K: Writable>(&self, ticket: &Ticket, object: &Value) -> Result<K, kube::Error> {
        let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        let body = serde_json::to_vec(object).map_err(kube::Error::SerdeError)?;
        let namespace = Some(ticket.key.namespace.as_str()).filter(|namespace| !namespace.is_empty());
        let url = K::url_path(&(), namespace);
        let mut request =
            kube::api::Request::new(url).create(&params, body).map_err(kube::Error::BuildRequest)?;
        request.extensions_mut().insert("create");
        self.client.request(request).await
    }

    async fn created<K: Writable>(
        &self,
        api: &Api<K>,
        ticket: &Ticket,
        answer: Option<Result<K, kube::Error>>,
    ) -> Outcome<K> {
        match answer {
            // A quota or a policy is the user's own, and waiting does not help. A NodeImage is ours alone.
            Some(Err(kube::Error::Api(status))) if status.code == 403 && ticket.kind != Kind::NodeImage => {
                let (kind, key) = (K::kind(&()), &ticket.key);
                warn!(%kind, object = %key, reason = %status.message, "the API server refuses it");
                Outcome::Refused(status.message.clone())
            }
            answer => self.outcome_of(api, ticket, answer).await,
        }
    }
}

/// The operations as a patch.
pub(super) fn json_patch(operations: Vec<Value>) -> Patch<()> {
    let patch =
        serde_json::from_value(Value::Array(operations)).expect("the kernel makes well-formed operations");
    Patch::Json(patch)
}
