//! Writes verdicts on silent nodes.

use kube::Api;
use kube::api::{ApiResource, DynamicObject, PatchParams};
use prewarm_api::kruise::NodeImage;
use prewarm_plan::cluster::command::{Outcome, Ticket};
use prewarm_plan::cluster::node_image::Verdict;
use prewarm_plan::cluster::node_image::silence::judged;
use prewarm_plan::cluster::{Kind, Object};
use prewarm_plan::object::unknown::Unknown;
use prewarm_plan::time::stamp;
use prewarm_process::log::chain;
use serde_json::json;

use super::answer::in_words;
use super::{FIELD_MANAGER, Writer, json_patch};
use crate::metrics::Written;

impl Writer {
    /// Verdicts are written on what is there at that moment, so that they never replace a report.
    pub(super) async fn judge(&self, ticket: &Ticket, verdicts: &[Verdict]) -> Outcome<Object> {
        let api: Api<NodeImage> = Api::all(self.client.clone());
        let untyped: Api<DynamicObject> =
            Api::all_with(self.client.clone(), &ApiResource::erase::<NodeImage>(&()));
        let node = &ticket.key.name;
        let whole = match self.send(untyped.get_opt(node)).await {
            Some(Ok(Some(whole))) => whole,
            Some(Ok(None)) => return Outcome::Gone,
            answer => {
                self.count(Written::Status(Kind::NodeImage), answer.as_ref());
                return Outcome::Failed(answer.and_then(Result::err).as_ref().and_then(in_words));
            }
        };
        let stored = whole.data.get("status").cloned().unwrap_or_default();
        let object: NodeImage = match whole.try_parse() {
            Ok(object) => object,
            Err(error) => return Outcome::Failed(Some(chain(&error))),
        };
        let is_that = object.metadata.uid.as_deref() == ticket.uid.as_deref();
        let now = stamp(self.clock.now());
        let Some(status) = judged(&object, verdicts, now).filter(|_| is_that) else {
            return Outcome::Collided(object.into());
        };
        let mut wire = json!(status);
        if let Some(unknown) = Unknown::of(&stored, &json!(object.status)) {
            unknown.restore(&mut wire);
        }
        let operations = vec![
            json!({"op": "test", "path": "/metadata/resourceVersion", "value": object.metadata.resource_version}),
            json!({"op": "add", "path": "/status", "value": wire}),
        ];
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let answer = self.send(api.patch_status(node, &params, &json_patch(operations))).await;
        self.count(Written::Status(Kind::NodeImage), answer.as_ref());
        self.outcome_of(&api, ticket, answer).await.map(Object::from)
    }
}
