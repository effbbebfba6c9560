//! Writes NodeImages.

use kube::Api;
use kube::api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams, Preconditions};
use prewarm_api::kruise::{NodeImage, NodeImageSpec};
use prewarm_plan::ledger::Outcome;
use prewarm_plan::node_image::silence::judged;
use prewarm_plan::node_image::{Action, Verdict, owner};
use prewarm_plan::object::NodeName;
use prewarm_plan::time::stamp;
use serde_json::{Value, json};

use super::answer::outcome;
use super::{FIELD_MANAGER, Hands, Settled};
use crate::metrics::Written;

impl Hands {
    pub(super) async fn node_image(&self, node: NodeName, action: Action) -> Settled {
        let api: Api<NodeImage> = Api::all(self.client.clone());
        let outcome = match action {
            Action::Create { labels, node_uid } => self.create(&api, &node, &labels, &node_uid).await,
            Action::Delete { uid } => self.delete(&api, &node, &uid).await,
            Action::Patch { operations, grants } => {
                let outcome = self.patch(&api, &node, operations).await;
                if matches!(outcome, Outcome::Written(_)) {
                    self.metrics.granted(grants);
                }
                outcome
            }
            Action::Judge { uid, verdicts } => self.judge(&api, &node, &uid, &verdicts).await,
        };
        Box::new(move |ledger, now, jitter| ledger.node_image_outcome(&node, outcome, now, jitter))
    }

    async fn create(
        &self,
        api: &Api<NodeImage>,
        node: &str,
        labels: &std::collections::BTreeMap<String, String>,
        node_uid: &str,
    ) -> Outcome<NodeImage> {
        let metadata = ObjectMeta {
            name: Some(node.to_owned()),
            labels: (!labels.is_empty()).then(|| labels.clone()),
            owner_references: serde_json::from_value(json!([owner(node, node_uid)])).ok(),
            ..ObjectMeta::default()
        };
        let object = NodeImage { metadata, spec: NodeImageSpec::default(), status: None };
        let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        let answer = self.send(api.create(&params, &object)).await;
        self.count(Written::NodeImage, answer.as_ref());
        self.node_image_outcome(api, node, answer).await
    }

    async fn delete(&self, api: &Api<NodeImage>, node: &str, uid: &str) -> Outcome<NodeImage> {
        let preconditions = Preconditions { uid: Some(uid.to_owned()), resource_version: None };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        let answer = self.send(api.delete(node, &params)).await;
        self.count(Written::NodeImage, answer.as_ref());
        // An object without finalizers is gone at once; one with them is on its way out.
        match answer.map(|answer| answer.map(|either| either.left().filter(is_on_its_way_out))) {
            Some(Ok(None)) => Outcome::Gone,
            Some(Ok(Some(object))) => Outcome::Written(object),
            Some(Err(error)) => self.node_image_outcome(api, node, Some(Err(error))).await,
            None => Outcome::Failed,
        }
    }

    async fn patch(&self, api: &Api<NodeImage>, node: &str, operations: Vec<Value>) -> Outcome<NodeImage> {
        let patch = json_patch(operations);
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let answer = self.send(api.patch(node, &params, &patch)).await;
        self.count(Written::NodeImage, answer.as_ref());
        self.node_image_outcome(api, node, answer).await
    }

    /// Verdicts are written on what is there at that moment, so that they never replace a report.
    async fn judge(
        &self,
        api: &Api<NodeImage>,
        node: &str,
        uid: &str,
        verdicts: &[Verdict],
    ) -> Outcome<NodeImage> {
        let object = match self.send(api.get_opt(node)).await {
            Some(Ok(Some(object))) => object,
            Some(Ok(None)) => return Outcome::Gone,
            answer => {
                self.count(Written::NodeImageStatus, answer.as_ref());
                return Outcome::Failed;
            }
        };
        let is_that = object.metadata.uid.as_deref() == Some(uid);
        let now = stamp(self.clock.now());
        let Some(status) = judged(&object, verdicts, now).filter(|_| is_that) else {
            return Outcome::Collided(Box::new(object));
        };
        let operations = vec![
            json!({"op": "test", "path": "/metadata/resourceVersion", "value": object.metadata.resource_version}),
            json!({"op": "add", "path": "/status", "value": status}),
        ];
        let patch = json_patch(operations);
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let answer = self.send(api.patch_status(node, &params, &patch)).await;
        self.count(Written::NodeImageStatus, answer.as_ref());
        self.node_image_outcome(api, node, answer).await
    }

    async fn node_image_outcome(
        &self,
        api: &Api<NodeImage>,
        node: &str,
        answer: Option<Result<NodeImage, kube::Error>>,
    ) -> Outcome<NodeImage> {
        outcome(&format!("NodeImage {node}"), answer, async || self.send(api.get_opt(node)).await).await
    }
}

/// Whether the object that a deletion answers with is still there: something has to end first.
pub(super) fn is_on_its_way_out(object: &impl kube::Resource) -> bool {
    object.meta().deletion_timestamp.is_some()
}

/// The operations as a patch.
pub(super) fn json_patch(operations: Vec<Value>) -> Patch<()> {
    let patch =
        serde_json::from_value(Value::Array(operations)).expect("the ledger makes well-formed operations");
    Patch::Json(patch)
}
