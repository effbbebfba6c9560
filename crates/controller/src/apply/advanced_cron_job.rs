//! Writes AdvancedCronJobs and their runs.

use jiff::Timestamp;
use kube::Api;
use prewarm_api::kruise::{AdvancedCronJob, BroadcastJob, ImageListPullJob, TemplateKind};
use prewarm_plan::advanced_cron_job::child::Child;
use prewarm_plan::ledger::cron::RunKey;
use prewarm_plan::ledger::{Ledger, Outcome, Write};
use prewarm_plan::object::{ObjectKey, Uid};
use serde_json::Value;

use super::image_pull_job::JobKind;
use super::{Hands, Settled};
use crate::metrics::Written;
use crate::watch::{SlimJob, Watched};

/// What a run is to its cron job, if it has one.
type See<K> = fn(&K) -> Option<Child>;

impl Hands {
    pub(super) async fn cron(&self, uid: Uid, key: ObjectKey, write: Write) -> Settled {
        let counted = [Written::AdvancedCronJobStatus; 2];
        let outcome = self.write::<AdvancedCronJob>(&uid, &key, write, counted).await;
        Box::new(move |ledger, now, jitter| ledger.crons.cron_outcome(&key, &uid, outcome, now, jitter))
    }

    pub(super) async fn create_run(&self, cron: Uid, run: RunKey, object: Value) -> Settled {
        match run.kind {
            TemplateKind::Job => self.make(cron, run, object, SlimJob::child).await,
            TemplateKind::BroadcastJob => {
                self.make(cron, run, object, Child::of_broadcast as See<BroadcastJob>).await
            }
            TemplateKind::ImageListPullJob => {
                self.make(cron, run, object, Child::of_list as See<ImageListPullJob>).await
            }
        }
    }

    async fn make<K: RunKind>(&self, cron: Uid, run: RunKey, object: Value, see: See<K>) -> Settled {
        let api: Api<K> = Api::namespaced(self.client.clone(), &run.key.namespace);
        let answer = self.send(self.post::<K>(&run.key.namespace, &object)).await;
        self.count(Written::Run, answer.as_ref());
        let outcome = self.created(&api, &run.key, answer).await;
        Box::new(move |ledger, now, jitter| {
            observe(&outcome, ledger, now);
            ledger.crons.run_created(&cron, &run, outcome.map(|object| see(&object)), now, jitter);
        })
    }

    pub(super) async fn delete_run(&self, cron: Uid, run: RunKey, uid: Uid) -> Settled {
        match run.kind {
            TemplateKind::Job => self.unmake(cron, run, uid, SlimJob::child).await,
            TemplateKind::BroadcastJob => {
                self.unmake(cron, run, uid, Child::of_broadcast as See<BroadcastJob>).await
            }
            TemplateKind::ImageListPullJob => {
                self.unmake(cron, run, uid, Child::of_list as See<ImageListPullJob>).await
            }
        }
    }

    async fn unmake<K: RunKind>(&self, cron: Uid, run: RunKey, uid: Uid, see: See<K>) -> Settled {
        let api: Api<K> = Api::namespaced(self.client.clone(), &run.key.namespace);
        let outcome = self.remove(&api, &uid, &run.key, Written::Run).await;
        Box::new(move |ledger, now, jitter| {
            observe(&outcome, ledger, now);
            if matches!(outcome, Outcome::Gone) {
                K::lose(ledger, &run.key.namespace, &run.key.name, Some(&uid));
            }
            let outcome = outcome.map(|object| see(&object));
            ledger.crons.run_deleted(&cron, &run, &uid, outcome, now, jitter);
        })
    }
}

/// The kinds of runs: each is watched, too.
trait RunKind: JobKind + Watched + Send + 'static {}

impl<K: JobKind + Watched + Send + 'static> RunKind for K {}

/// The answer to a write reaches what is known of the run's own kind as its watch would tell it, only sooner: a list makes its
/// children without waiting for a watch that may be broken for a minute.
fn observe<K: RunKind>(outcome: &Outcome<K>, ledger: &mut Ledger, now: Timestamp) {
    match outcome {
        Outcome::Written(object) => object.clone().hear(ledger, now),
        Outcome::Collided(object) => K::clone(object).hear(ledger, now),
        Outcome::Gone | Outcome::Refused(_) | Outcome::Failed => {}
    }
}
