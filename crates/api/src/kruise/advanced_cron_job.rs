//! AdvancedCronJob: creates a Job, BroadcastJob or ImageListPullJob on a schedule.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{API_VERSION, BROADCAST_JOB, BroadcastJobSpec, IMAGE_LIST_PULL_JOB, ImageListPullJobSpec};
use crate::condition::Condition;
use crate::reference_object::ObjectReference;
use crate::unknown::Unknown;

/// What is created, and when.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "apps.kruise.io",
    version = "v1beta1",
    kind = "AdvancedCronJob",
    plural = "advancedcronjobs",
    shortname = "acj",
    namespaced,
    status = "AdvancedCronJobStatus",
    derive = "PartialEq",
    doc = "AdvancedCronJob creates a Job, a BroadcastJob or an ImageListPullJob on a schedule.",
    printcolumn(
        name = "Schedule",
        type_ = "string",
        description = "When it runs.",
        json_path = ".spec.schedule"
    ),
    printcolumn(
        name = "Type",
        type_ = "string",
        description = "What it creates.",
        json_path = ".status.type"
    ),
    printcolumn(
        name = "LastScheduleTime",
        type_ = "date",
        description = "Time since the last run.",
        json_path = ".status.lastScheduleTime"
    ),
    printcolumn(
        name = "AGE",
        type_ = "date",
        description = "Time since the object was created.",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct AdvancedCronJobSpec {
    /// When to run, as five cron fields (minute, hour, day of month, month, day of week), for example
    /// `0 2 * * *` for every night at two, or as `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly` or
    /// `@every 90m`.
    #[schemars(length(min = 1, max = 512))]
    pub schedule: String,
    /// The time zone of the schedule by its IANA name, for example `Europe/Berlin`. No default: UTC. Cannot be
    /// combined with a `TZ=` or `CRON_TZ=` prefix of the schedule.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub time_zone: Option<String>,
    /// Seconds by which a run may start late; a run missed by more is skipped. No default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub starting_deadline_seconds: Option<i64>,
    /// What happens when the last run is still going on: `Allow` starts another, `Forbid` skips this run,
    /// `Replace` deletes the last one first. No value means `Replace` with an imageListPullJobTemplate (which
    /// may not use `Allow`), and `Allow` otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency_policy: Option<ConcurrencyPolicy>,
    /// `true` starts no further runs; those that run go on. Defaults to false.
    #[serde(default)]
    pub paused: bool,
    /// How many succeeded runs are kept; older ones are deleted. Defaults to 3.
    #[serde(default = "successful_history")]
    #[schemars(range(min = 0))]
    pub successful_jobs_history_limit: i32,
    /// How many failed runs are kept; older ones are deleted. Defaults to 1.
    #[serde(default = "failed_history")]
    #[schemars(range(min = 0))]
    pub failed_jobs_history_limit: i32,
    /// What is created: exactly one of jobTemplate, broadcastJobTemplate and imageListPullJobTemplate. Only an
    /// imageListPullJobTemplate may be changed later.
    pub template: CronTemplate,
}

/// What happens when the last run is still going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ConcurrencyPolicy {
    /// Another run starts beside it.
    Allow,
    /// This run is skipped.
    Forbid,
    /// The last run is deleted first.
    Replace,
}

/// What is created: exactly one of the three.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1, "maxProperties" = 1))]
pub struct CronTemplate {
    /// Creates a batch/v1 Job; its fields are those of a CronJob's jobTemplate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "anything")]
    pub job_template: Option<Value>,
    /// Creates a BroadcastJob.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broadcast_job_template: Option<BroadcastJobTemplate>,
    /// Creates an ImageListPullJob. Its completionPolicy is of type `Always` without ttlSecondsAfterFinished: the
    /// history limits decide how long runs are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_list_pull_job_template: Option<ImageListPullJobTemplate>,
}

/// The BroadcastJob to create.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BroadcastJobTemplate {
    /// Labels and annotations of the BroadcastJobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMetadata>,
    /// What the BroadcastJobs do.
    pub spec: BroadcastJobSpec,
}

/// The ImageListPullJob to create.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageListPullJobTemplate {
    /// Labels and annotations of the ImageListPullJobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMetadata>,
    /// What the ImageListPullJobs pull, and where.
    pub spec: ImageListPullJobSpec,
}

/// Metadata of the created objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TemplateMetadata {
    /// Not used: a run is named after the cron job and its time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub name: Option<String>,
    /// Not used: a run is created in the namespace of the cron job.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub namespace: Option<String>,
    /// Labels of the created objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::bounds::label_map")]
    pub labels: Option<BTreeMap<String, String>>,
    /// Annotations of the created objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::bounds::free_text_map")]
    pub annotations: Option<BTreeMap<String, String>>,
    /// Finalizers; not used.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), inner(length(max = 317)))]
    pub finalizers: Option<Vec<String>>,
}

/// The state of the schedule.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AdvancedCronJobStatus {
    /// What is created: `Job`, `BroadcastJob` or `ImageListPullJob`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<TemplateKind>,
    /// The runs that have not ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 10000))]
    pub active: Option<Vec<ObjectReference>>,
    /// The time of the last run, as scheduled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_schedule_time: Option<Time>,
    /// The image that failed last in a run of an imageListPullJobTemplate. It stays when later runs succeed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub last_failed_image: Option<String>,
    /// Runs that were due but did not happen, counted by reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub skipped_runs: Option<Vec<SkippedRuns>>,
    /// What is known about the cron job: `Scheduling` (runs start when they are due, or why they do not) and
    /// `LastRunSucceeded` (how the run that ended last has ended).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub conditions: Option<Vec<Condition>>,
    /// What a newer version has written besides.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: Unknown,
}

/// Runs that were due but did not happen for one reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkippedRuns {
    /// Why they did not happen.
    pub reason: SkipReason,
    /// How many there have been. After a long outage, a thousand stands for more.
    #[schemars(range(min = 0))]
    pub count: i64,
    /// The time for which the last of them was scheduled.
    pub last_time: Time,
}

/// Why a run did not happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum SkipReason {
    /// The cron job was paused.
    Paused,
    /// The run before was still going on, and concurrencyPolicy is `Forbid`.
    Forbidden,
    /// The API server refused it.
    Refused,
    /// A hundred runs of the cron job had not ended.
    TooMany,
    /// It could not start within startingDeadlineSeconds.
    TooLate,
    /// No controller was running when it was due, and a later run was due when one started.
    Missed,
}

/// What a cron job creates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum TemplateKind {
    /// A batch/v1 Job.
    Job,
    /// A BroadcastJob.
    BroadcastJob,
    /// An ImageListPullJob.
    ImageListPullJob,
}

impl TemplateKind {
    /// The kind on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Job => "Job",
            Self::BroadcastJob => BROADCAST_JOB,
            Self::ImageListPullJob => IMAGE_LIST_PULL_JOB,
        }
    }

    /// API group and version of the created objects.
    pub fn api_version(self) -> &'static str {
        match self {
            Self::Job => "batch/v1",
            Self::BroadcastJob | Self::ImageListPullJob => API_VERSION,
        }
    }
}

impl CronTemplate {
    /// What it creates, if anything (kruise R92).
    pub fn kind(&self) -> Option<TemplateKind> {
        if self.job_template.is_some() {
            Some(TemplateKind::Job)
        } else if self.image_list_pull_job_template.is_some() {
            Some(TemplateKind::ImageListPullJob)
        } else {
            self.broadcast_job_template.is_some().then_some(TemplateKind::BroadcastJob)
        }
    }
}

/// No schema at all: with one, CEL's `==` would take two templates as equal that have one unknown key
/// exchanged for another, and the rule that the template cannot be changed would let that pass.
fn anything(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "description": "Creates a batch/v1 Job; its fields are those of a CronJob's jobTemplate.",
        "x-kubernetes-preserve-unknown-fields": true,
    })
}

fn successful_history() -> i32 {
    3
}

fn failed_history() -> i32 {
    1
}
