//! One attempt to have one image on the node: look, unless that was just done, gather credentials, ask the runtime,
//! look again. What is asked of the registry is in [`registry`], what is asked of mirrors in [`mirrors`].
//!
//! A worker owns its attempt and sends messages to the loop. Dropping it cancels the call in the runtime.

mod brought;
mod mirrors;
mod refusal;
mod registry;
mod turns;

pub use mirrors::MirrorOnly;

use std::sync::Arc;
use std::time::Duration;

use prewarm_api::kruise::FailureClass;
use prewarm_credentials::CredentialSource;
use prewarm_plan::agent::disk::DiskRoom;
use prewarm_plan::agent::runtime::Absence;
use prewarm_plan::agent::source::Source;
use prewarm_plan::agent::stall::{self, Watch};
use prewarm_plan::agent::state::Bytes;
use prewarm_plan::agent::task::Task;
use prewarm_plan::agent::worklist::{Failure, Outcome, Start};
use prewarm_runtime::{CallError, Runtime, Sample, advice};
use tokio::time::{Instant, interval_at, timeout};

use crate::look::held;
use crate::room::RoomGuard;

/// How often a running pull looks at the free room. A small layer can unpack to gigabytes within seconds.
const ROOM_INTERVAL: Duration = Duration::from_millis(250);
/// How often a running pull asks how far it is; pulls that are shorter cost no such question.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(2);

/// What every attempt needs.
pub struct Tools {
    /// Pulls.
    pub runtime: Runtime,
    /// Finds credentials.
    pub credentials: Arc<dyn CredentialSource>,
    /// Watches the disk.
    pub room: Option<RoomGuard>,
    /// Keeps `MirrorOnly`.
    pub mirrors: Arc<MirrorOnly>,
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
        shortage = crossed(tools.room.as_ref()) => Outcome::NoRoom(out_of_room(task, &shortage)),
        () = follow(task, tools, &send) => Outcome::Failed(stalled(task)),
    }
}

async fn have(start: &Start, tools: &Tools, send: &impl Fn(Update)) -> Outcome {
    let task = &start.task;
    if !task.is_always && !start.is_known_absent {
        match tools.runtime.image(&task.reference).await {
            Ok(Some(image)) => {
                let image = held(&task.key, &task.reference, &image, &tools.runtime).await;
                if task.sources.is_met_by(image.digest.as_deref()) {
                    return Outcome::Succeeded { image, was_present: true, results: None };
                }
            }
            Ok(None) => {}
            Err(error) => return registry::not_looked(task, &error),
        }
    }
    match &start.source {
        Source::Registry => registry::fetch(start, tools, send).await,
        Source::Mirrors { digest } => mirrors::fetch(start, digest.as_deref(), tools, send).await,
    }
}

/// How the runtime went away in a call that was not a pull, if it did.
pub fn absence(error: &CallError) -> Option<Absence> {
    let absence = if error.is_unavailable() { Absence::Unavailable } else { Absence::Unreachable };
    error.is_runtime_away().then_some(absence)
}

fn stalled(task: &Task) -> Failure {
    let registry = task.reference.registry();
    Failure {
        class: FailureClass::TimedOut,
        text: stall::sentence(),
        problems: Vec::new(),
        advice: format!("check how fast {registry} is from this node"),
        is_registry_overloaded: false,
        is_final: false,
        fingerprint: None,
    }
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
    let mut ticks = interval_at(Instant::now() + ROOM_INTERVAL, ROOM_INTERVAL);
    loop {
        ticks.tick().await;
        if let Some(shortage) = room.read().filter(DiskRoom::is_low) {
            return shortage;
        }
    }
}

/// Sends how far the pull is, while the runtime reports it. Returns when it brings too little.
async fn follow(task: &Task, tools: &Tools, send: &impl Fn(Update)) {
    let began = Instant::now();
    let mut watch = Watch::new(Duration::ZERO);
    let mut ticks = interval_at(began + PROGRESS_INTERVAL, PROGRESS_INTERVAL);
    loop {
        ticks.tick().await;
        let Ok(sample) = tools.runtime.sample(&task.reference).await else { continue };
        if let Sample::Some(now) = sample {
            send(Update::Progress(Bytes { done: now.done, total: now.total }));
        }
        let Some(progress) = progress(sample) else { continue };
        if watch.has_stalled(progress, began.elapsed()) {
            return;
        }
    }
}

/// What a sample says about whether a pull gets on; nothing if the runtime does not tell.
fn progress(sample: Sample) -> Option<stall::Progress> {
    match sample {
        Sample::Unknown => None,
        Sample::Nothing => Some(stall::Progress::Arrived(0)),
        Sample::Some(now) if now.is_unpacking => Some(stall::Progress::Unpacking),
        Sample::Some(now) => Some(stall::Progress::Arrived(now.done)),
    }
}
