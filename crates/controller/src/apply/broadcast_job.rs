//! Writes BroadcastJobs and their pods.

use kube::Api;
use prewarm_api::kruise::BroadcastJob;
use prewarm_plan::broadcast_job::pod::Pod;
use prewarm_plan::ledger::Write;
use prewarm_plan::object::{NodeName, ObjectKey, Uid};
use serde_json::Value;

use super::{Hands, Settled};
use crate::metrics::Written;
use crate::watch::BroadcastPod;

impl Hands {
    pub(super) async fn broadcast(&self, uid: Uid, key: ObjectKey, write: Write) -> Settled {
        let counted = [Written::BroadcastJob, Written::BroadcastJobStatus];
        let outcome = self.write::<BroadcastJob>(&uid, &key, write, counted).await;
        Box::new(move |ledger, now, jitter| ledger.broadcasts.job_outcome(&key, &uid, outcome, now, jitter))
    }

    pub(super) async fn create_pod(&self, job: Uid, node: NodeName, pod: Value) -> Settled {
        let text =
            |pointer: &str| pod.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let key = ObjectKey { namespace: text("/metadata/namespace"), name: text("/metadata/name") };
        let api: Api<BroadcastPod> = Api::namespaced(self.client.clone(), &key.namespace);
        let answer = self.send(self.post::<BroadcastPod>(&key.namespace, &pod)).await;
        self.count(Written::Pod, answer.as_ref());
        let outcome = self.created(&api, &key, answer).await.map(into_pod);
        Box::new(move |ledger, now, jitter| {
            ledger.broadcasts.pod_created(&job, &node, &key.namespace, outcome, now, jitter);
        })
    }

    pub(super) async fn delete_pod(&self, job: Uid, key: ObjectKey, uid: Uid) -> Settled {
        let api: Api<BroadcastPod> = Api::namespaced(self.client.clone(), &key.namespace);
        let outcome = self.remove(&api, &uid, &key, Written::Pod).await.map(into_pod);
        Box::new(move |ledger, now, jitter| {
            ledger.broadcasts.pod_deleted(&job, &key, &uid, outcome, now, jitter);
        })
    }
}

fn into_pod(pod: BroadcastPod) -> Pod {
    pod.into_pod().1
}
