//! Writes verdicts on silent nodes.

use kube::Api;
use kube::api::PatchParams;
use prewarm_api::kruise::NodeImage;
use prewarm_plan::cluster::command::{Outcome, Ticket};
use prewarm_plan::cluster::node_image::Verdict;
use prewarm_plan::cluster::node_image::silence::judged;
use prewarm_plan::cluster::{Kind, Object};
use prewarm_plan::time::stamp;
use serde_json::json;

use super::answer::in_words;
use super::{FIELD_MANAGER, Writer, json_patch};
use crate::metrics::Written;

impl Writer {
    /// Verdicts are written on what is there at that moment, so that they never replace a report.
    pub(super) async fn judge(&self, ticket: &Ticket, verdicts: &[Verdict]) -> Outcome<Object> {
        let api: Api<NodeImage> = Api::all(self.client.clone());
        let node = &ticket.key.name;
        let object = match self.send(api.get_opt(node)).await {
            Some(Ok(Some(object))) => object,
            Some(Ok(None)) => return Outcome::Gone,
            answer => {
                self.count(Written::Status(Kind::NodeImage), answer.as_ref());
                return Outcome::Failed(answer.and_then(Result::err).as_ref().and_then(in_words));
            }
        };
        let is_that = object.metadata.uid.as_deref() == ticket.uid.as_deref();
        let now = stamp(self.clock.now());
        let Some(status) = judged(&object, verdicts, now).filter(|_| is_that) else {
            return Outcome::Collided(object.into());
        };
        let operations = vec![
            json!({"op": "test", "path": "/metadata/resourceVersion", "value": object.metadata.resource_version}),
            json!({"op": "add", "path": "/status", "value": status}),
        ];
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let answer = self.send(api.patch_status(node, &params, &json_patch(operations))).await;
        self.count(Written::Status(Kind::NodeImage), answer.as_ref());
        self.outcome_of(&api, ticket, answer).await.map(Object::from)
    }
}
