//! Writes ImageListPullJobs.

use prewarm_api::kruise::ImageListPullJob;
use prewarm_plan::ledger::Write;
use prewarm_plan::object::{ObjectKey, Uid};

use super::{Hands, Settled};
use crate::metrics::Written;

impl Hands {
    pub(super) async fn list(&self, uid: Uid, key: ObjectKey, write: Write) -> Settled {
        let counted = [Written::ImageListPullJob, Written::ImageListPullJobStatus];
        let outcome = self.write::<ImageListPullJob>(&uid, &key, write, counted).await;
        Box::new(move |ledger, now, jitter| ledger.list_outcome(&key, &uid, outcome, now, jitter))
    }
}
