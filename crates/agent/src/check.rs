//! Looks after what is finished: are the images that were warmed still there, and did credentials change that a
//! refused entry waits for? Asked on the runtime's word and once a minute. With nothing to ask about, the runtime is only
//! asked whether it is there.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use prewarm_api::reference::ImageRef;
use prewarm_credentials::CredentialSource;
use prewarm_plan::agent::task::Task;
use prewarm_plan::agent::worklist::Worklist;
use prewarm_plan::object::ImageKey;
use prewarm_runtime::{CallError, Image, Runtime};
use tokio::sync::Notify;

use crate::secrets;

/// How often the images are looked at without any word from the runtime.
pub const INTERVAL: Duration = Duration::from_mins(1);
/// The pause before the runtime's events are asked for again after they broke off.
const RESUBSCRIBE: Duration = Duration::from_secs(10);

/// What is to be looked at.
pub struct Questions {
    images: Vec<(ImageKey, ImageRef)>,
    refused: Vec<Task>,
}

/// What was found.
pub struct Findings {
    /// Whether each warmed image is there.
    pub images: Vec<(ImageKey, bool)>,
    /// The fingerprints of the credentials of refused entries.
    pub credentials: Vec<(ImageKey, u64)>,
}

impl Questions {
    /// What this worklist would like to know.
    pub fn of(worklist: &Worklist) -> Self {
        Self {
            images: worklist.warmed().map(|(key, reference)| (key.clone(), reference.clone())).collect(),
            refused: worklist.refused().cloned().collect(),
        }
    }
}

/// Finds the answers.
pub async fn look(
    questions: Questions,
    runtime: Runtime,
    credentials: Arc<dyn CredentialSource>,
) -> Result<Findings, CallError> {
    let images = look_for_images(questions.images, &runtime).await?;
    let mut fingerprints = Vec::new();
    for task in questions.refused {
        let request = secrets::request(&task);
        fingerprints.push((task.key, credentials.credentials(&request).await.fingerprint));
    }
    Ok(Findings { images, credentials: fingerprints })
}

async fn look_for_images(
    wanted: Vec<(ImageKey, ImageRef)>,
    runtime: &Runtime,
) -> Result<Vec<(ImageKey, bool)>, CallError> {
    if wanted.is_empty() {
        runtime.image_filesystem().await?;
        return Ok(Vec::new());
    }
    let listed: BTreeSet<ImageRef> = runtime.images().await?.iter().flat_map(Image::names).collect();
    let mut found = Vec::with_capacity(wanted.len());
    for (key, reference) in wanted {
        // A listing may leave out what is there, so the runtime is asked for the one image before it counts as lost.
        let is_present = listed.contains(&reference) || runtime.image(&reference).await?.is_some();
        found.push((key, is_present));
    }
    Ok(found)
}

/// Notifies whenever the runtime says that an image was removed, and when its word was interrupted.
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
