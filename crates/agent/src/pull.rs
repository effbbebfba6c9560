//! One attempt to have one image on the node: look, unless that was just done, gather credentials, ask the runtime,
//! look again.
//!
//! A worker owns its attempt and sends messages to the loop. Dropping it cancels the call in the runtime.

use std::sync::Arc;
use std::time::Duration;

use prewarm_api::kruise::FailureClass;
use prewarm_credentials::scrub::scrub;
use prewarm_credentials::{Credential, CredentialSource, Found};
use prewarm_plan::agent::disk::DiskRoom;
use prewarm_plan::agent::source::Source;
use prewarm_plan::agent::state::Bytes;
use prewarm_plan::agent::task::Task;
use prewarm_plan::agent::worklist::{Failure, Outcome, Start};
use prewarm_runtime::{CallError, PullRequest, Runtime, advice};
use tokio::time::{interval_at, timeout};

use crate::look::id;
use crate::room::RoomGuard;
use crate::secrets;

/// How often a running pull looks at the free room. A small layer can unpack to gigabytes within seconds.
const ROOM_INTERVAL: Duration = Duration::from_millis(250);
/// How often a running pull asks how far it is; pulls that are shorter cost no such question.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(2);
/// How often an attempt that somebody else's cancellation ended is repeated at once: on CRI-O, callers share a pull.
const MAX_INTERRUPTIONS: u32 = 3;
/// At most this many Secrets are named that have nothing for an image.
const MAX_UNMATCHED: usize = 3;

/// What every attempt needs.
pub struct Tools {
    /// Pulls.
    pub runtime: Runtime,
    /// Finds credentials.
    pub credentials: Arc<dyn CredentialSource>,
    /// Watches the disk.
    pub room: Option<RoomGuard>,
}

/// What a worker sends before it has ended.
pub enum Update {
    /// How much has arrived.
    Progress(Bytes),
    /// The runtime has pulled; only the look is left.
    Pulled,
}

/// Carries out one attempt. `send` takes how far it is.
pub async fn attempt(start: &Start, tools: &Tools, send: impl Fn(Update)) -> Outcome {
    let task = &start.task;
    tokio::select! {
        outcome = timeout(start.timeout, have(start, tools, &send)) => {
            outcome.unwrap_or_else(|_| Outcome::Failed(timed_out(start)))
        }
        shortage = crossed(tools.room.as_ref()) => Outcome::Failed(out_of_room(task, &shortage)),
        () = follow(task, tools, &send) => unreachable!("following ends with the attempt"),
    }
}

async fn have(start: &Start, tools: &Tools, send: &impl Fn(Update)) -> Outcome {
    let task = &start.task;
    if !task.is_always && !start.is_known_absent {
        match tools.runtime.image(&task.reference).await {
            Ok(Some(image)) => {
                return Outcome::Succeeded { image_id: id(&task.key, &image), was_present: true };
            }
            Ok(None) => {}
            Err(error) => return failed(task, &error, &Found::default()),
        }
    }
    match start.source {
        Source::Registry => fetch_from_registry(task, tools, send).await,
    }
}

/// The runtime asks the registry, with the credentials that the node finds.
async fn fetch_from_registry(task: &Task, tools: &Tools, send: &impl Fn(Update)) -> Outcome {
    let found = tools.credentials.credentials(&secrets::request(task)).await;
    match pull(task, tools, &found).await {
        Ok(()) => {
            send(Update::Pulled);
            confirm(task, tools, &found).await
        }
        Err(error) => failed(task, &error, &found),
    }
}

/// Tries one credential after the other, and none at all last: a stale Secret must not keep a public image away (kruise W32).
async fn pull(task: &Task, tools: &Tools, found: &Found) -> Result<(), CallError> {
    let mut refusal = None;
    for credential in found.credentials.iter().map(Some).chain([None]) {
        match pull_as(task, tools, credential).await {
            Ok(()) => return Ok(()),
            // Some registries hide what one may not see, so "not found" may mean "not with this credential".
            Err(error) if matches!(error.class(), FailureClass::Unauthorized | FailureClass::NotFound) => {
                refusal.get_or_insert(error);
            }
            Err(error) => return Err(error),
        }
    }
    Err(refusal.expect("the loop runs at least once, and ends early unless it was refused"))
}

async fn pull_as(task: &Task, tools: &Tools, credential: Option<&Credential>) -> Result<(), CallError> {
    let request = PullRequest {
        reference: task.reference.clone(),
        credential: credential.cloned(),
        labels: task.labels.clone(),
        annotations: task.annotations.clone(),
    };
    let mut interruptions = 0;
    loop {
        match tools.runtime.pull(&request).await {
            Err(error) if error.is_interrupted() && interruptions < MAX_INTERRUPTIONS => interruptions += 1,
            answer => return answer,
        }
    }
}

/// A runtime's answer is not enough: the image has to be there under the name that pods will use.
async fn confirm(task: &Task, tools: &Tools, found: &Found) -> Outcome {
    match tools.runtime.image(&task.reference).await {
        Ok(Some(image)) => Outcome::Succeeded { image_id: id(&task.key, &image), was_present: false },
        Ok(None) => Outcome::Failed(Failure {
            class: FailureClass::Unknown,
            text: "the runtime says that it pulled the image, and then does not have it".to_owned(),
            problems: found.problems.clone(),
            advice: "look at the runtime's log, and whether something removes images on this node".to_owned(),
            is_registry_overloaded: false,
            is_final: false,
            fingerprint: Some(found.fingerprint),
        }),
        Err(error) => failed(task, &error, found),
    }
}

fn failed(task: &Task, error: &CallError, found: &Found) -> Outcome {
    if error.is_runtime_away() {
        return Outcome::Interrupted;
    }
    let class = error.class();
    let mut problems = found.problems.clone();
    if matches!(class, FailureClass::Unauthorized | FailureClass::NotFound) && found.credentials.is_empty() {
        let registry = task.reference.registry();
        let useless = found.unmatched.iter().take(MAX_UNMATCHED);
        problems.extend(useless.map(|secret| format!("secret {secret} has no entry for {registry}")));
    }
    Outcome::Failed(Failure {
        class,
        text: scrub(&error.to_string(), &found.credentials),
        problems,
        advice: advice(class, &task.reference),
        is_registry_overloaded: error.is_registry_overloaded(),
        is_final: class == FailureClass::InvalidReference,
        fingerprint: Some(found.fingerprint),
    })
}

fn timed_out(start: &Start) -> Failure {
    Failure {
        class: FailureClass::TimedOut,
        text: format!("the attempt took longer than {} s", start.timeout.as_secs()),
        problems: Vec::new(),
        advice: advice(FailureClass::TimedOut, &start.task.reference),
        is_registry_overloaded: false,
        is_final: false,
        fingerprint: None,
    }
}

fn out_of_room(task: &Task, shortage: &DiskRoom) -> Failure {
    Failure {
        class: FailureClass::NoSpace,
        text: shortage.stopped(),
        problems: Vec::new(),
        advice: advice(FailureClass::NoSpace, &task.reference),
        is_registry_overloaded: false,
        is_final: true,
        fingerprint: None,
    }
}

/// Returns when the free room has fallen below the floor.
async fn crossed(room: Option<&RoomGuard>) -> DiskRoom {
    let Some(room) = room else { return std::future::pending().await };
    let mut ticks = interval_at(tokio::time::Instant::now() + ROOM_INTERVAL, ROOM_INTERVAL);
    loop {
        ticks.tick().await;
        if let Some(shortage) = room.read().filter(DiskRoom::is_low) {
            return shortage;
        }
    }
}

/// Sends how far the pull is, while the runtime reports it. It never ends.
async fn follow(task: &Task, tools: &Tools, send: &impl Fn(Update)) {
    let mut ticks = interval_at(tokio::time::Instant::now() + PROGRESS_INTERVAL, PROGRESS_INTERVAL);
    loop {
        ticks.tick().await;
        if let Ok(Some(now)) = tools.runtime.progress(&task.reference).await {
            send(Update::Progress(Bytes { done: now.done, total: now.total }));
        }
    }
}
