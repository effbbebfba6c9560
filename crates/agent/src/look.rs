//! Looks for the images of waiting tasks, one after the other, because the runtime pulls at the same time.

use std::collections::BTreeMap;

use prewarm_api::reference::ImageRef;
use prewarm_plan::agent::runtime::Absence;
use prewarm_plan::agent::worklist::{Found, Held, LookAhead};
use prewarm_plan::object::ImageKey;
use prewarm_runtime::{Image, Runtime};
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
        let found = match answer {
            Ok(Some(image)) => Found::Present(held(&key, &reference, &image, &runtime).await),
            Ok(None) => Found::Absent,
            Err(error) => {
                debug!(image = key.name, tag = key.tag, %error, "the runtime cannot say whether it has an image");
                Found::Unclear
            }
        };
        findings.found.insert(key, found);
    }
    findings
}

/// What the node has of an image.
pub async fn held(key: &ImageKey, reference: &ImageRef, image: &Image, runtime: &Runtime) -> Held {
    Held { id: id(key, image), digest: digest(reference, image, runtime).await }
}

/// kruise D24: name and id.
fn id(key: &ImageKey, image: &Image) -> String {
    format!("{}@{}", key.name, image.id)
}

/// The digest that the name stands for, as far as the runtime tells.
async fn digest(reference: &ImageRef, image: &Image, runtime: &Runtime) -> Option<String> {
    if reference.is_digest() {
        return Some(reference.tag().to_owned());
    }
    let names: Vec<ImageRef> = image.names().collect();
    let mut known = names.iter().filter(|name| name.is_digest() && name.name() == reference.name());
    let first = known.next()?.tag().to_owned();
    if known.next().is_none() {
        return Some(first);
    }
    // One image can have several manifests. Only containerd says which of them the tag stands for.
    let target = runtime.content_store()?.target(&reference.full()).await.ok()??;
    Some(target.digest)
}
