//! A run of a cron job, as far as the cron job needs it: whatever its kind, it goes on, is complete, or has failed.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use prewarm_api::kruise::{
    ADVANCED_CRON_JOB, BroadcastJob, GROUP, ImageListPullJob, ImageListPullJobStatus, TemplateKind,
};
use prewarm_api::names::SCHEDULED_AT_ANNOTATION;
use prewarm_api::names::condition::{COMPLETE, FAILED};
use prewarm_api::reference_object::ObjectReference;

use crate::object::Uid;

/// One run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Child {
    /// What it is.
    pub kind: TemplateKind,
    /// Its name.
    pub name: Arc<str>,
    /// Its UID.
    pub uid: Uid,
    /// The UID of the cron job that controls it.
    pub owner: Uid,
    /// Its version.
    pub resource_version: String,
    /// The time that it was scheduled for.
    pub scheduled_at: Option<Timestamp>,
    /// When it began, or was made.
    pub began_at: Option<Timestamp>,
    /// How it is.
    pub state: State,
    /// Whether it is being deleted.
    pub is_terminating: bool,
}

/// How a run is (kruise R95).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It goes on.
    Active,
    /// It ended well.
    Complete,
    /// It failed.
    Failed(Failure),
}

/// How a run failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// In a sentence.
    pub message: String,
    /// The images that are not on every node, of an ImageListPullJob.
    pub images: Vec<String>,
}

impl Child {
    /// A run of the kind Job; `None` if no cron job controls it. Its conditions are type, status and message.
    pub fn of_job<'a>(
        metadata: &ObjectMeta,
        start_time: Option<&Time>,
        conditions: impl Iterator<Item = (&'a str, &'a str, &'a str)>,
    ) -> Option<Self> {
        Self::read(TemplateKind::Job, metadata, start_time, by_conditions(conditions))
    }

    /// A run of the kind BroadcastJob; `None` if no cron job controls it.
    pub fn of_broadcast(job: &BroadcastJob) -> Option<Self> {
        let status = job.status.as_ref();
        let conditions = status.iter().flat_map(|status| &status.conditions).flatten();
        let conditions = conditions.map(|condition| {
            (&*condition.type_, &*condition.status, condition.message.as_deref().unwrap_or_default())
        });
        let start_time = status.and_then(|status| status.start_time.as_ref());
        Self::read(TemplateKind::BroadcastJob, &job.metadata, start_time, by_conditions(conditions))
    }

    /// A run of the kind ImageListPullJob; `None` if no cron job controls it.
    pub fn of_list(list: &ImageListPullJob) -> Option<Self> {
        let status = list.status.as_ref();
        let start_time = status.and_then(|status| status.start_time.as_ref());
        let state = status.map_or(State::Active, by_completion);
        Self::read(TemplateKind::ImageListPullJob, &list.metadata, start_time, state)
    }

    fn read(
        kind: TemplateKind,
        metadata: &ObjectMeta,
        start_time: Option<&Time>,
        state: State,
    ) -> Option<Self> {
        let annotation = metadata.annotations.as_ref().and_then(|all| all.get(SCHEDULED_AT_ANNOTATION));
        Some(Self {
            kind,
            name: metadata.name.as_deref()?.into(),
            uid: metadata.uid.as_deref()?.into(),
            owner: controller(metadata)?.into(),
            resource_version: metadata.resource_version.clone().unwrap_or_default(),
            scheduled_at: annotation.and_then(|text| text.parse().ok()),
            began_at: start_time.or(metadata.creation_timestamp.as_ref()).map(|Time(at)| *at),
            state,
            is_terminating: metadata.deletion_timestamp.is_some(),
        })
    }

    /// Whether it is over.
    pub fn is_over(&self) -> bool {
        self.state != State::Active
    }

    /// How the cron job's status names it.
    pub fn reference(&self, namespace: Option<&str>) -> ObjectReference {
        ObjectReference {
            api_version: Some(self.kind.api_version().to_owned()),
            kind: Some(self.kind.as_str().to_owned()),
            namespace: namespace.map(str::to_owned),
            name: Some(self.name.to_string()),
            uid: Some(self.uid.to_string()),
            ..ObjectReference::default()
        }
    }
}

/// The UID of the cron job that controls an object, in whichever version that is named (kruise R94).
fn controller(metadata: &ObjectMeta) -> Option<&str> {
    let mut owners = metadata.owner_references.iter().flatten();
    let controller = owners.find(|owner| owner.controller == Some(true))?;
    let is_cron =
        controller.kind == ADVANCED_CRON_JOB && controller.api_version.split('/').next() == Some(GROUP);
    is_cron.then_some(&controller.uid)
}

fn by_conditions<'a>(conditions: impl Iterator<Item = (&'a str, &'a str, &'a str)>) -> State {
    let mut state = State::Active;
    for (type_, status, message) in conditions.filter(|(_, status, _)| *status == "True") {
        match (type_, status) {
            (COMPLETE, _) => return State::Complete,
            (FAILED, _) => state = State::Failed(Failure { message: message.to_owned(), images: Vec::new() }),
            _ => {}
        }
    }
    state
}

/// A list is complete only if every image is on every node: what is missing somewhere will be pulled there by a pod, and
/// people have to know.
pub fn by_completion(status: &ImageListPullJobStatus) -> State {
    if status.completion_time.is_none() {
        return State::Active;
    }
    if status.succeeded == status.desired {
        return State::Complete;
    }
    let failed = status.failed_image_statuses.iter().flatten();
    let images = failed.filter_map(|image| image.name.clone()).collect();
    let missing = status.desired.saturating_sub(status.succeeded);
    let message = format!("{missing} of {} images are not on every node", status.desired);
    State::Failed(Failure { message, images })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn metadata(owner: &Value) -> Value {
        json!({"name": "nightly-1", "namespace": "default", "uid": "run-1", "ownerReferences": [owner],
            "annotations": {"apps.kruise.io/scheduled-at": "2026-11-17T10:00:00+08:00"},
            "creationTimestamp": "2026-11-17T02:00:01Z"})
    }

    fn owner() -> Value {
        json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "AdvancedCronJob", "name": "nightly", "uid": "cron-1",
            "controller": true})
    }

    fn list(status: &Value) -> Child {
        let object = json!({"metadata": metadata(&owner()), "spec": {"images": ["a", "b"], "completionPolicy": {}},
            "status": status});
        Child::of_list(&serde_json::from_value(object).unwrap()).unwrap()
    }

    #[test]
    fn a_run_knows_its_cron_job_and_its_time() {
        let child = list(&json!(null));
        assert_eq!((&*child.owner, child.state), ("cron-1", State::Active));
        assert_eq!(child.scheduled_at, Some("2026-11-17T02:00:00Z".parse().unwrap()));
        assert_eq!(child.began_at, Some("2026-11-17T02:00:01Z".parse().unwrap()));
    }

    /// kruise R94: today's program names the cron job in either version.
    #[test]
    fn whatever_no_cron_job_controls_is_no_run() {
        let read = |owner: Value| {
            let metadata = serde_json::from_value(metadata(&owner)).unwrap();
            Child::of_job(&metadata, None, std::iter::empty()).map(|child| child.owner.to_string())
        };
        let mut other = owner();
        other["apiVersion"] = json!("apps.kruise.io/v1alpha1");
        assert_eq!(read(other.clone()), Some("cron-1".to_owned()));
        other["controller"] = json!(false);
        assert_eq!(read(other.clone()), None);
        other["controller"] = json!(true);
        other["apiVersion"] = json!("batch/v1");
        assert_eq!(read(other), None);
    }

    /// kruise R95.
    #[test]
    fn a_list_is_complete_when_every_image_is_everywhere() {
        let ended = |succeeded: i32, failed: Value| {
            list(&json!({"completionTime": "2026-11-17T02:10:00Z", "desired": 2, "completed": 2, "succeeded": succeeded,
                "failedImageStatuses": failed}))
            .state
        };
        assert_eq!(ended(2, json!(null)), State::Complete);
        let failure = Failure {
            message: "1 of 2 images are not on every node".to_owned(),
            images: vec!["b".to_owned()],
        };
        assert_eq!(ended(1, json!([{"name": "b"}])), State::Failed(failure));
        assert_eq!(list(&json!({"desired": 2, "completed": 2, "succeeded": 2})).state, State::Active);
    }

    #[test]
    fn jobs_and_broadcast_jobs_are_judged_by_their_conditions() {
        let state = |conditions: &[(&str, &str)]| {
            by_conditions(conditions.iter().map(|(type_, status)| (*type_, *status, "too slow")))
        };
        assert_eq!(state(&[]), State::Active);
        assert_eq!(state(&[("Complete", "False"), ("Suspended", "True")]), State::Active);
        assert_eq!(state(&[("SuccessCriteriaMet", "True"), ("Complete", "True")]), State::Complete);
        let failure = Failure { message: "too slow".to_owned(), images: Vec::new() };
        assert_eq!(state(&[("Failed", "True")]), State::Failed(failure));
    }
}
