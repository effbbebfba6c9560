//! An ImagePullJob read into a demand.

use prewarm_api::kruise::{CompletionType, IMAGE_PULL_JOB, ImagePullJob};
use prewarm_api::reference::ImageRef;

use crate::cluster::reference;
use crate::demand::selection::{Selection, parallelism};
use crate::demand::{Demand, Limits, Source, Until};
use crate::object::ImageKey;

/// What a job wants of nodes.
pub fn demand(job: &ImagePullJob) -> Demand {
    let spec = &job.spec;
    let until = match spec.completion_policy.type_ {
        CompletionType::Never => Until::Withdrawn,
        CompletionType::Always => Until::Done {
            deadline_seconds: spec.completion_policy.active_deadline_seconds,
            ttl_seconds: spec.completion_policy.ttl_seconds_after_finished,
        },
    };
    Demand {
        owner: reference::object(IMAGE_PULL_JOB, &job.metadata),
        image: image(&spec.image),
        nodes: Selection::of(spec.selector.as_ref(), spec.pod_selector.as_ref()),
        at_once: parallelism(spec.parallelism.as_ref()),
        secrets: spec.pull_secrets.iter().flatten().cloned().collect(),
        pull_policy: spec.image_pull_policy,
        limits: Limits {
            timeout_seconds: spec.pull_policy.timeout_seconds,
            backoff_limit: spec.pull_policy.backoff_limit,
        },
        sandbox: spec.sandbox_config.clone(),
        source: Source::Anywhere,
        until,
    }
}

fn image(text: &str) -> Option<ImageKey> {
    let reference = ImageRef::parse(text).ok()?;
    Some(ImageKey { name: reference.name().to_owned(), tag: reference.tag().to_owned() })
}
