//! Writes AdvancedCronJobs and their runs.

use std::sync::Arc;

use kube::Api;
use prewarm_api::kruise::{AdvancedCronJob, BroadcastJob, ImageListPullJob, TemplateKind};
use prewarm_plan::advanced_cron_job::child::Child;
use prewarm_plan::ledger::cron::RunKey;
use prewarm_plan::ledger::{Outcome, Write};
use prewarm_plan::secret::JobKey;
use serde_json::Value;

use super::image_pull_job::JobKind;
use super::{Hands, Settled};
use crate::metrics::Written;
use crate::watch::SlimJob;

/// What a run is to its cron job, if it has one.
type See<K> = fn(&K) -> Option<Child>;

impl Hands {
    pub(super) async fn cron(&self, uid: Arc<str>, key: JobKey, write: Write) -> Settled {
        let counted = [Written::AdvancedCronJobStatus; 2];
        let outcome = self.write::<AdvancedCronJob>(&uid, &key, write, counted).await;
        Box::new(move |ledger, now, jitter| ledger.crons.cron_outcome(&key, &uid, outcome, now, jitter))
    }

    pub(super) async fn create_run(&self, cron: Arc<str>, run: RunKey, object: Value) -> Settled {
        let key = &run.key;
        let outcome = match run.kind {
            TemplateKind::Job => self.make(key, &object, SlimJob::child).await,
            TemplateKind::BroadcastJob => {
                self.make(key, &object, Child::of_broadcast as See<BroadcastJob>).await
            }
            TemplateKind::ImageListPullJob => {
                self.make(key, &object, Child::of_list as See<ImageListPullJob>).await
            }
        };
        Box::new(move |ledger, now, jitter| ledger.crons.run_created(&cron, &run, outcome, now, jitter))
    }

    async fn make<K: JobKind>(&self, key: &JobKey, object: &Value, see: See<K>) -> Outcome<Option<Child>> {
        let api: Api<K> = Api::namespaced(self.client.clone(), &key.namespace);
        let answer = self.send(self.post::<K>(&key.namespace, object)).await;
        self.count(Written::Run, answer.as_ref());
        self.created(&api, key, answer).await.map(|object| see(&object))
    }

    pub(super) async fn delete_run(&self, cron: Arc<str>, run: RunKey, uid: Arc<str>) -> Settled {
        let key = &run.key;
        let outcome = match run.kind {
            TemplateKind::Job => self.unmake(key, &uid, SlimJob::child).await,
            TemplateKind::BroadcastJob => {
                self.unmake(key, &uid, Child::of_broadcast as See<BroadcastJob>).await
            }
            TemplateKind::ImageListPullJob => {
                self.unmake(key, &uid, Child::of_list as See<ImageListPullJob>).await
            }
        };
        Box::new(move |ledger, now, jitter| {
            ledger.crons.run_deleted(&cron, &run, &uid, outcome, now, jitter);
        })
    }

    async fn unmake<K: JobKind>(&self, key: &JobKey, uid: &str, see: See<K>) -> Outcome<Option<Child>> {
        let api: Api<K> = Api::namespaced(self.client.clone(), &key.namespace);
        self.remove(&api, uid, key, Written::Run).await.map(|object| see(&object))
    }
}
