//! Makes and deletes whole objects, whatever their kind.

use kube::Api;
use kube::api::{DeleteParams, PostParams, Preconditions};
use prewarm_plan::cluster::Kind;
use prewarm_plan::cluster::command::{Outcome, Ticket};
use serde_json::Value;
use tracing::warn;

use super::{FIELD_MANAGER, Writable, Writer};
use crate::metrics::Written;

impl Writer {
    /// Deletes the one with this UID, and lets the garbage collector take what it owns.
    pub(super) async fn delete<K: Writable>(
        &self,
        api: &Api<K>,
        ticket: &Ticket,
        counted: Written,
    ) -> Outcome<K> {
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

    /// Makes an object. It goes as it is, with fields that this release does not know.
    pub(super) async fn post<K: Writable>(&self, ticket: &Ticket, object: &Value) -> Result<K, kube::Error> {
        let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        let body = serde_json::to_vec(object).map_err(kube::Error::SerdeError)?;
        let namespace = Some(ticket.key.namespace.as_str()).filter(|namespace| !namespace.is_empty());
        let url = K::url_path(&(), namespace);
        let mut request =
            kube::api::Request::new(url).create(&params, body).map_err(kube::Error::BuildRequest)?;
        request.extensions_mut().insert("create");
        self.client.request(request).await
    }

    pub(super) async fn created<K: Writable>(
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
