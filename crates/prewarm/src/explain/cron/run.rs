//! A run of a cron job, of any kind.

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use prewarm_api::kruise::{BroadcastJob, ImageListPullJob};
use prewarm_plan::cluster::advanced_cron_job::child::{self, Child, Failure};
use serde::Serialize;

use crate::show::{Tone, ago, counted, names};

/// The most failed images that are named; the run itself has all.
const MOST_IMAGES: usize = 3;

#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    pub kind: &'static str,
    pub name: String,
    /// The time of the schedule for which it was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduled: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started: Option<Timestamp>,
    /// When it ended, if its status says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<Timestamp>,
    pub state: State,
    /// Its progress, or why it failed.
    pub why: String,
    /// How long it has taken so far.
    #[serde(skip)]
    pub took: Option<String>,
}

/// The state of a run in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum State {
    /// No controller has looked at it yet.
    New,
    /// It goes on.
    Running,
    /// It succeeded.
    Done,
    /// It failed.
    Failed,
    /// It is being deleted.
    Deleting,
}

impl State {
    pub fn tone(self) -> Tone {
        match self {
            Self::Done => Tone::Good,
            Self::Running => Tone::Busy,
            Self::Failed => Tone::Bad,
            Self::New | Self::Deleting => Tone::Plain,
        }
    }
}

/// What the status of a run says, whatever its kind.
struct Progress<'a> {
    start: Option<&'a Time>,
    end: Option<&'a Time>,
    far: String,
}

impl Run {
    /// An ImageListPullJob, if it was made by the cron job with this UID.
    pub fn of_list(list: &ImageListPullJob, owner: &str, now: Timestamp) -> Option<Self> {
        let progress = list.status.as_ref().map(|status| {
            let far = format!("{} of {} images are on every node", status.succeeded, status.desired);
            let missing = status.failed_image_statuses.iter().flatten();
            let missing: Vec<String> = missing.filter_map(|image| image.name.clone()).collect();
            let far =
                if missing.is_empty() { far } else { format!("{far}; not {}", names(&missing, MOST_IMAGES)) };
            Progress { start: status.start_time.as_ref(), end: status.completion_time.as_ref(), far }
        });
        // For a failed list, `far` says the same as its message.
        Self::read(Child::of_list(list)?, progress, owner, now, |_| None)
    }

    /// A BroadcastJob, if it was made by the cron job with this UID.
    pub fn of_broadcast(job: &BroadcastJob, owner: &str, now: Timestamp) -> Option<Self> {
        let progress = job.status.as_ref().map(|status| {
            let far = format!("{} of {} pods succeeded", status.succeeded, status.desired);
            let far = if status.failed > 0 { format!("{far}, {} failed", status.failed) } else { far };
            Progress { start: status.start_time.as_ref(), end: status.completion_time.as_ref(), far }
        });
        Self::read(Child::of_broadcast(job)?, progress, owner, now, |failure| Some(failure.message))
    }

    /// A Job, if it was made by the cron job with this UID.
    pub fn of_job(job: &Job, owner: &str, now: Timestamp) -> Option<Self> {
        let status = job.status.as_ref();
        let progress = status.filter(|status| status.start_time.is_some()).map(|status| {
            let count = |pods: Option<i32>| usize::try_from(pods.unwrap_or_default()).unwrap_or_default();
            let far = format!("{} succeeded", counted(count(status.succeeded), "pod"));
            let far = match count(status.failed) {
                0 => far,
                failed => format!("{far}, {failed} failed"),
            };
            Progress { start: status.start_time.as_ref(), end: status.completion_time.as_ref(), far }
        });
        let conditions = status.iter().flat_map(|status| &status.conditions).flatten();
        let conditions =
            conditions.map(|one| (&*one.type_, &*one.status, one.message.as_deref().unwrap_or_default()));
        let child =
            Child::of_job(&job.metadata, progress.as_ref().and_then(|progress| progress.start), conditions)?;
        Self::read(child, progress, owner, now, |failure| Some(failure.message))
    }

    fn read(
        child: Child,
        progress: Option<Progress<'_>>,
        owner: &str,
        now: Timestamp,
        say: impl FnOnce(Failure) -> Option<String>,
    ) -> Option<Self> {
        if *child.owner != *owner {
            return None;
        }
        let is_new = progress.is_none();
        let progress = progress.unwrap_or_else(|| Progress {
            start: None,
            end: None,
            far: "no controller has looked at it yet".to_owned(),
        });
        let (state, message) = match child.state {
            _ if is_new => (State::New, None),
            child::State::Active => (State::Running, None),
            child::State::Complete => (State::Done, None),
            child::State::Failed(failure) => (State::Failed, say(failure).filter(|words| !words.is_empty())),
        };
        let end = progress.end.map_or(now, |Time(end)| *end);
        // The status of a failed run does not always say when it ended.
        let took = progress.start.filter(|_| progress.end.is_some() || state != State::Failed);
        Some(Self {
            kind: child.kind.as_str(),
            name: child.name.to_string(),
            scheduled: child.scheduled_at,
            started: progress.start.map(|Time(start)| *start),
            ended: progress.end.map(|Time(end)| *end),
            state: if child.is_terminating { State::Deleting } else { state },
            why: message.map_or(progress.far.clone(), |message| format!("{}; {message}", progress.far)),
            took: took.map(|Time(start)| ago(*start, end)),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use super::*;

    fn object<K: DeserializeOwned>(spec: &Value, status: &Value) -> K {
        let owner = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "AdvancedCronJob", "name": "nightly",
            "uid": "cron-1", "controller": true});
        let metadata = json!({"name": "nightly-1", "uid": "run-1", "ownerReferences": [owner],
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
    fn a_list_shows_its_progress_and_missing_images() {
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
    fn the_conditions_of_jobs_and_broadcast_jobs_decide_their_state() {
        let start = "2026-11-17T02:00:00Z";
        let failed = json!([{"type": "Failed", "status": "True", "message": "too slow"}]);
        let broadcast: BroadcastJob = object(
            &json!({"template": {}}),
            &json!({"startTime": start, "desired": 3, "succeeded": 1, "failed": 1, "conditions": failed}),
        );
        assert_eq!(
            shown(Run::of_broadcast(&broadcast, "cron-1", now())),
            "Failed - 1 of 3 pods succeeded, 1 failed; too slow"
        );
        let complete = json!([{"type": "Complete", "status": "True"}]);
        let ended = json!({"startTime": start, "completionTime": "2026-11-17T02:05:00Z", "succeeded": 1,
            "conditions": complete});
        let job: Job = object(&json!({"template": {}}), &ended);
        assert_eq!(shown(Run::of_job(&job, "cron-1", now())), "Done 5m 1 pod succeeded");
    }

    #[test]
    fn runs_of_another_cron_job_are_left_out() {
        let list: ImageListPullJob = object(&json!({"images": ["a"], "completionPolicy": {}}), &json!(null));
        assert_eq!(Run::of_list(&list, "cron-2", now()), None);
    }
}
