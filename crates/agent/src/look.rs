//! Looks for the images of waiting tasks, one after the other, because the runtime pulls at the same time.

use std::collections::BTreeMap;

use prewarm_plan::agent::worklist::{Found, LookAhead};
use prewarm_plan::object::ImageKey;
use prewarm_runtime::{CallError, Image, Runtime};
use tracing::debug;

pub struct Findings {
    pub number: u64,
    /// What is known of each image that the runtime was asked for.
    pub found: BTreeMap<ImageKey, Found>,
    /// Whether the runtime went away in the middle.
    pub is_runtime_away: bool,
}

/// Asks the runtime for each image until it goes away.
pub async fn look(ahead: LookAhead, runtime: Runtime) -> Findings {
    let mut findings = Findings { number: ahead.number, found: BTreeMap::new(), is_runtime_away: false };
    for (key, reference) in ahead.images {
        let answer = runtime.image(&reference).await;
        if answer.as_ref().is_err_and(CallError::is_runtime_away) {
            findings.is_runtime_away = true;
            break;
        }
        let found = judge(&key, answer);
        findings.found.insert(key, found);
    }
    findings
}

fn judge(key: &ImageKey, answer: Result<Option<Image>, CallError>) -> Found {
    match answer {
        Ok(Some(image)) => Found::Present { image_id: id(key, &image) },
        Ok(None) => Found::Absent,
        Err(error) => {
            debug!(image = key.name, tag = key.tag, %error, "the runtime cannot say whether it has an image");
            Found::Unclear
        }
    }
}

/// kruise D24: name and id.
pub fn id(key: &ImageKey, image: &Image) -> String {
    format!("{}@{}", key.name, image.id)
}
