//! Jobs that cron jobs make, without what we do not need.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::ObjectMeta;
use prewarm_plan::cluster::advanced_cron_job::child::Child;
use prewarm_plan::cluster::{Kind, Object};
use prewarm_plan::object::ObjectKey;
use prewarm_process::stands_for;
use serde::Deserialize;

use super::Watched;

/// A Job, as far as its cron job needs it.
#[derive(Clone, Debug, Deserialize)]
pub struct SlimJob {
    #[serde(default)]
    metadata: ObjectMeta,
    #[serde(default)]
    status: Status,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    start_time: Option<Time>,
    conditions: Option<Vec<Condition>>,
}

#[derive(Clone, Debug, Deserialize)]
struct Condition {
    #[serde(rename = "type")]
    type_: String,
    status: String,
    message: Option<String>,
}

impl SlimJob {
    /// The run that it is, if a cron job controls it.
    fn child(&self) -> Option<Child> {
        let conditions = self.status.conditions.iter().flatten();
        let conditions = conditions.map(|condition| {
            (&*condition.type_, &*condition.status, condition.message.as_deref().unwrap_or_default())
        });
        Child::of_job(&self.metadata, self.status.start_time.as_ref(), conditions)
    }
}

impl Watched for SlimJob {
    const KIND: Kind = Kind::Job;

    fn into_object(self) -> Object {
        (ObjectKey::of(&self.metadata), self.child()).into()
    }
}

stands_for!(SlimJob, Job);
