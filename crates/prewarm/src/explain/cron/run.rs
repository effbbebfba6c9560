//! A run of a cron job, whatever its kind.

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use prewarm_api::kruise::{ADVANCED_CRON_JOB, BroadcastJob, ImageListPullJob, TemplateKind};
use prewarm_api::names::SCHEDULED_AT_ANNOTATION;
use prewarm_api::names::condition::{COMPLETE, FAILED};
use serde::Serialize;

use crate::show::{Tone, ago, counted, names};

/// So many images are named that are not everywhere; the run itself has all.
const MOST_IMAGES: usize = 3;

/// One run.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// Its kind.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// The time that it was scheduled for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduled: Option<Timestamp>,
    /// When it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    started: Option<Timestamp>,
    /// When it ended, if it tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<Timestamp>,
    /// How it is.
    pub state: State,
    /// How far it came, or why it failed.
    pub why: String,
    /// How long it took or takes.
    #[serde(skip)]
    pub took: Option<String>,
}

/// A run in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum State {
    /// Nobody has looked at it.
    New,
    /// It goes on.
    Running,
    /// It ended well.
    Done,
    /// It failed.
    Failed,
    /// It is being deleted.
    Deleting,
}

impl State {
    /// Its colour.
    pub fn tone(self) -> Tone {
        match self {
            Self::Done => Tone::Good,
            Self::Running => Tone::Busy,
            Self::Failed => Tone::Bad,
            Self::New | Self::Deleting => Tone::Plain,
        }
    }
}

/// What the kinds tell of a run, each in its own way.
struct Told<'a> {
    state: State,
    start: Option<&'a Time>,
    end: Option<&'a Time>,
    why: String,
}

impl Run {
    /// A list of images, if the cron job with this UID has made it.
    pub fn of_list(list: &ImageListPullJob, owner: &str, now: Timestamp) -> Option<Self> {
        let told = list.status.as_ref().map(|status| {
            let far = format!("{} of {} images are on every node", status.succeeded, status.desired);
            let missing = status.failed_image_statuses.iter().flatten();
            let missing: Vec<String> = missing.filter_map(|image| image.name.clone()).collect();
            let state = match status.completion_time {
                None => State::Running,
                Some(_) if status.succeeded == status.desired => State::Done,
                Some(_) => State::Failed,
            };
            let why =
                if missing.is_empty() { far } else { format!("{far}; not {}", names(&missing, MOST_IMAGES)) };
            let (start, end) = (status.start_time.as_ref(), status.completion_time.as_ref());
            Told { state, start, end, why }
        });
        Self::read(TemplateKind::ImageListPullJob, &list.metadata, told, owner, now)
    }

    /// A BroadcastJob, if the cron job with this UID has made it.
    pub fn of_broadcast(job: &BroadcastJob, owner: &str, now: Timestamp) -> Option<Self> {
        let told = job.status.as_ref().map(|status| {
            let far = format!("{} of {} pods have ended well", status.succeeded, status.desired);
            let far = if status.failed > 0 { format!("{far}, {} failed", status.failed) } else { far };
            let conditions = status.conditions.iter().flatten();
            let conditions = conditions.map(|one| (&*one.type_, &*one.status, one.message.as_deref()));
            let (state, message) = by_conditions(conditions);
            let why = message.map_or(far.clone(), |message| format!("{far}; {message}"));
            let (start, end) = (status.start_time.as_ref(), status.completion_time.as_ref());
            Told { state, start, end, why }
        });
        Self::read(TemplateKind::BroadcastJob, &job.metadata, told, owner, now)
    }

    /// A Job, if the cron job with this UID has made it.
    pub fn of_job(job: &Job, owner: &str, now: Timestamp) -> Option<Self> {
        let told = job.status.as_ref().filter(|status| status.start_time.is_some()).map(|status| {
            let count = |pods: Option<i32>| usize::try_from(pods.unwrap_or_default()).unwrap_or_default();
            let far = format!("{} ended well", counted(count(status.succeeded), "pod"));
            let far = match count(status.failed) {
                0 => far,
                failed => format!("{far}, {failed} failed"),
            };
            let conditions = status.conditions.iter().flatten();
            let conditions = conditions.map(|one| (&*one.type_, &*one.status, one.message.as_deref()));
            let (state, message) = by_conditions(conditions);
            let why = message.map_or(far.clone(), |message| format!("{far}; {message}"));
            let (start, end) = (status.start_time.as_ref(), status.completion_time.as_ref());
            Told { state, start, end, why }
        });
        Self::read(TemplateKind::Job, &job.metadata, told, owner, now)
    }

    fn read(
        kind: TemplateKind,
        metadata: &ObjectMeta,
        told: Option<Told<'_>>,
        owner: &str,
        now: Timestamp,
    ) -> Option<Self> {
        let mut owners = metadata.owner_references.iter().flatten();
        let controller = owners.find(|one| one.controller == Some(true))?;
        if controller.kind != ADVANCED_CRON_JOB || controller.uid != owner {
            return None;
        }
        let told = told.unwrap_or_else(|| Told {
            state: State::New,
            start: None,
            end: None,
            why: "no controller has looked at it yet".to_owned(),
        });
        let annotation = metadata.annotations.as_ref().and_then(|all| all.get(SCHEDULED_AT_ANNOTATION));
        let end = told.end.map_or(now, |Time(end)| *end);
        // A run that failed does not always tell when.
        let took = told.start.filter(|_| told.end.is_some() || told.state != State::Failed);
        Some(Self {
            kind: kind.as_str(),
            name: metadata.name.clone().unwrap_or_default(),
            scheduled: annotation.and_then(|text| text.parse().ok()),
            started: told.start.map(|Time(start)| *start),
            ended: told.end.map(|Time(end)| *end),
            state: if metadata.deletion_timestamp.is_some() { State::Deleting } else { told.state },
            why: told.why,
            took: took.map(|Time(start)| ago(*start, end)),
        })
    }
}

/// The state, and what is said about a failure.
fn by_conditions<'a>(
    conditions: impl Iterator<Item = (&'a str, &'a str, Option<&'a str>)>,
) -> (State, Option<&'a str>) {
    let mut found = (State::Running, None);
    for (type_, _, message) in conditions.filter(|(_, status, _)| *status == "True") {
        match type_ {
            COMPLETE => return (State::Done, None),
            FAILED => found = (State::Failed, message.filter(|message| !message.is_empty())),
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use super::*;

    fn object<K: DeserializeOwned>(spec: &Value, status: &Value) -> K {
        let owner = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "AdvancedCronJob", "name": "nightly",
            "uid": "cron-1", "controller": true});
        let metadata = json!({"name": "nightly-1", "ownerReferences": [owner],
            "annotations": {"apps.kruise.io/scheduled-at": "2026-11-17T10:00:00+08:00"}});
        serde_json::from_value(json!({"metadata": metadata, "spec": spec, "status": status})).unwrap()
    }

    fn shown(run: Option<Run>) -> String {
        let run = run.unwrap();
        assert_eq!(run.scheduled, Some("2026-11-17T02:00:00Z".parse().unwrap()));
        format!("{:?} {} {}", run.state, run.took.as_deref().unwrap_or("-"), run.why)
    }

    fn now() -> Timestamp {
        "2026-11-17T02:10:00Z".parse().unwrap()
    }

    #[test]
    fn a_list_tells_how_far_it_is_and_which_images_are_missing() {
        let list = |status: &Value| {
            let list = object(&json!({"images": ["a", "b"], "completionPolicy": {}}), status);
            shown(Run::of_list(&list, "cron-1", now()))
        };
        assert_eq!(list(&json!(null)), "New - no controller has looked at it yet");
        let start = json!({"startTime": "2026-11-17T02:00:00Z", "desired": 2, "succeeded": 1});
        assert_eq!(list(&start), "Running 10m 1 of 2 images are on every node");
        let mut ended = start;
        ended["completionTime"] = json!("2026-11-17T02:01:00Z");
        ended["failedImageStatuses"] = json!([{"name": "b"}]);
        assert_eq!(list(&ended), "Failed 60s 1 of 2 images are on every node; not b");
        ended["succeeded"] = json!(2);
        ended["failedImageStatuses"] = json!(null);
        assert_eq!(list(&ended), "Done 60s 2 of 2 images are on every node");
    }

    #[test]
    fn jobs_and_broadcast_jobs_tell_by_their_conditions() {
        let start = "2026-11-17T02:00:00Z";
        let failed = json!([{"type": "Failed", "status": "True", "message": "too slow"}]);
        let broadcast: BroadcastJob = object(
            &json!({"template": {}}),
            &json!({"startTime": start, "desired": 3, "succeeded": 1, "failed": 1, "conditions": failed}),
        );
        assert_eq!(
            shown(Run::of_broadcast(&broadcast, "cron-1", now())),
            "Failed - 1 of 3 pods have ended well, 1 failed; too slow"
        );
        let complete = json!([{"type": "Complete", "status": "True"}]);
        let ended = json!({"startTime": start, "completionTime": "2026-11-17T02:05:00Z", "succeeded": 1,
            "conditions": complete});
        let job: Job = object(&json!({"template": {}}), &ended);
        assert_eq!(shown(Run::of_job(&job, "cron-1", now())), "Done 5m 1 pod ended well");
    }

    #[test]
    fn what_another_cron_job_has_made_is_no_run_of_this_one() {
        let list: ImageListPullJob = object(&json!({"images": ["a"], "completionPolicy": {}}), &json!(null));
        assert_eq!(Run::of_list(&list, "cron-2", now()), None);
    }
}
