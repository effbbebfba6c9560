//! Looks for the images of waiting tasks, one after the other, because the runtime pulls at the same time.

use std::collections::BTreeMap;

use prewarm_plan::agent::runtime::Absence;
use prewarm_plan::agent::worklist::{Found, LookAhead};
use prewarm_plan::object::ImageKey;
use prewarm_runtime::{CallError, Image, Runtime};
use tracing::debug;

use crate::pull::absence;

pub struct Findings {
    pub number: u64,
    /// What is known of each image that the runtime was asked for.
    pub found: BTreeMap<ImageKey, Found>,
    /// How the runtime went away in the middle, if it did.
    pub absence: Option<Absence>,
}

/// Asks the runtime for each image until it goes away.
pub async fn look(ahead: LookAhead, runtime: Runtime) -> Findings {
    let mut findings = Findings { number: ahead.number, found: BTreeMap::new(), absence: None };
    for (key, reference) in ahead.images {
        let answer = runtime.image(&reference).await;
        findings.absence = answer.as_ref().err().and_then(absence);
        if findings.absence.is_some() {
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
