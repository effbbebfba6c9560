//! Looks after what is finished: are the images that were warmed still there, and did credentials change that a
//! refused entry waits for? This is asked when the runtime reports a removal, and once a minute. With nothing
//! to look for, the runtime is only asked whether it is there.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt as _, stream};
use prewarm_api::reference::ImageRef;
use prewarm_credentials::CredentialSource;
use prewarm_plan::agent::Moment;
use prewarm_plan::agent::inventory::Listing;
use prewarm_plan::agent::task::Task;
use prewarm_plan::agent::worklist::Worklist;
use prewarm_plan::object::ImageKey;
use prewarm_runtime::{CallError, Image, Runtime};
use tokio::sync::Notify;
use tokio::time::timeout;
use tracing::warn;

use crate::secrets;

/// How often the images are looked at without a removal.
pub const INTERVAL: Duration = Duration::from_mins(1);
/// The pause before the runtime's events are asked for again after they broke off.
const RESUBSCRIBE: Duration = Duration::from_secs(10);

/// How long the credentials of one task may take. Each of their sources has a shorter limit of its own; this one keeps a source
/// without one from ending all looks.
const CREDENTIALS_LIMIT: Duration = Duration::from_mins(1);
/// So many tasks' credentials are read at once, so that one slow source holds up few others.
const CREDENTIALS_AT_ONCE: usize = 4;

/// What is to be looked at.
pub struct Questions {
    began: Duration,
    images: BTreeSet<ImageRef>,
    refused: Vec<Task>,
}

pub struct Findings {
    /// What the node has; nothing if there was nothing to look for.
    pub listing: Option<Listing>,
    /// The fingerprints of the credentials of refused entries.
    pub credentials: Vec<(ImageKey, u64)>,
}

impl Questions {
    /// What this worklist would like to know.
    pub fn of(worklist: &Worklist, now: Moment) -> Self {
        Self { began: now.elapsed, images: worklist.warmed(), refused: worklist.refused().cloned().collect() }
    }
}

pub async fn look(
    questions: Questions,
    runtime: Runtime,
    credentials: Arc<dyn CredentialSource>,
) -> Result<Findings, CallError> {
    let listing = list_images(questions.began, questions.images, &runtime).await?;
    let fingerprints = stream::iter(questions.refused)
        .map(|task| read_credentials(task, credentials.clone()))
        .buffered(CREDENTIALS_AT_ONCE)
        .filter_map(std::future::ready);
    Ok(Findings { listing, credentials: fingerprints.collect().await })
}

/// The fingerprint of a task's credentials; nothing if their source does not answer, so that the next look asks again.
async fn read_credentials(task: Task, credentials: Arc<dyn CredentialSource>) -> Option<(ImageKey, u64)> {
    let request = secrets::request(&task);
    let Ok(found) = timeout(CREDENTIALS_LIMIT, credentials.credentials(&request)).await else {
        let limit = CREDENTIALS_LIMIT.as_secs();
        warn!(image = %task.reference, "the credentials could not be read within {limit} s; trying again");
        return None;
    };
    Some((task.key, found.fingerprint))
}

async fn list_images(
    began: Duration,
    wanted: BTreeSet<ImageRef>,
    runtime: &Runtime,
) -> Result<Option<Listing>, CallError> {
    if wanted.is_empty() {
        runtime.image_filesystem().await?;
        return Ok(None);
    }
    let mut present: BTreeSet<ImageRef> = runtime.images().await?.iter().flat_map(Image::names).collect();
    let mut absent = BTreeSet::new();
    for reference in wanted {
        // A listing may leave out what is there, so the runtime is asked for the one image before it counts as lost.
        if present.contains(&reference) {
            continue;
        }
        let is_there = runtime.image(&reference).await?.is_some();
        (if is_there { &mut present } else { &mut absent }).insert(reference);
    }
    Ok(Some(Listing { began, present, absent }))
}

/// Notifies whenever the runtime reports that an image was removed, and when its events were interrupted.
pub async fn follow_removals(runtime: Runtime, removed: Arc<Notify>) {
    loop {
        let mut removals = runtime.removals();
        while removals.next().await.is_some() {
            removed.notify_one();
        }
        tokio::time::sleep(RESUBSCRIBE).await;
        removed.notify_one();
    }
}
