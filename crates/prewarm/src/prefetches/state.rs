//! The state of an ImagePrefetch in one word, and what a person has to know or do about it.

use prewarm_api::condition::Condition;
use prewarm_api::names::condition::{DIGESTS_AGREE, NODES_SELECTED, READY};
use prewarm_api::ofen::{ImagePrefetch, ImagePrefetchStatus};
use prewarm_plan::cluster::image_prefetch::explain::reported_hold;
use prewarm_plan::cluster::image_prefetch::record::Prefetch;

use crate::jobs::State;

/// Its state in the words of jobs. It never ends, and what fails is tried again.
pub fn state(prefetch: &ImagePrefetch) -> State {
    if prefetch.metadata.deletion_timestamp.is_some() {
        return State::Deleting;
    }
    let Some(status) = current(prefetch) else { return State::New };
    match () {
        () if is_ready(prefetch) => State::Settled,
        () if status.image_pulling_nodes > 0 => State::Running,
        () => State::Waiting,
    }
}

/// Whether every node that must hold the images does, as far as the object stands now.
pub fn is_ready(prefetch: &ImagePrefetch) -> bool {
    current(prefetch).is_some_and(|status| {
        status.conditions.iter().flatten().any(|one| one.type_ == READY && one.status == "True")
    })
}

/// How many nodes pull and do not fail. The status counts those that fail as pulling, too.
pub fn number(status: &ImagePrefetchStatus) -> i32 {
    status.image_pulling_nodes.saturating_sub(status.image_pull_failed_nodes).max(0)
}

/// The messages of bad conditions, and a note if no controller has looked at it.
pub fn notes(prefetch: &ImagePrefetch) -> Vec<String> {
    match state(prefetch) {
        State::New => {
            vec!["no controller has looked at the ImagePrefetch yet; check that `prewarm controller` is running".to_owned()]
        }
        State::Deleting => Vec::new(),
        _ => {
            let hold = reported_hold(&Prefetch::new(prefetch.clone()));
            let conditions = prefetch.status.iter().flat_map(|status| status.conditions.iter().flatten());
            let is_trouble = |one: &&Condition| {
                one.status == "False" && matches!(&*one.type_, NODES_SELECTED | DIGESTS_AGREE)
            };
            let mut notes: Vec<String> =
                conditions.filter(is_trouble).map(|condition| condition.message.clone()).collect();
            notes.extend(hold);
            notes
        }
    }
}

/// Its status, if that is about the object as it stands now.
fn current(prefetch: &ImagePrefetch) -> Option<&ImagePrefetchStatus> {
    let generation = prefetch.metadata.generation;
    prefetch.status.as_ref().filter(|status| status.observed_generation == generation)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn prefetch(status: &Value) -> ImagePrefetch {
        serde_json::from_value(json!({
            "apiVersion": "ofen.cybozu.io/v1", "kind": "ImagePrefetch",
            "metadata": {"name": "base", "generation": 2}, "spec": {"images": ["redis:8"], "replicas": 3}, "status": status,
        }))
        .unwrap()
    }

    fn condition(type_: &str, status: &str, message: &str) -> Value {
        json!({"type": type_, "status": status, "reason": "Some", "message": message, "lastTransitionTime": "2026-11-18T08:00:00Z"})
    }

    #[test]
    fn the_state_follows_from_counters_and_the_generation() {
        let of = |status: Value| state(&prefetch(&status));
        assert_eq!(of(json!(null)), State::New);
        assert_eq!(of(json!({"observedGeneration": 1, "desiredNodes": 3})), State::New);
        assert_eq!(of(json!({"observedGeneration": 2, "desiredNodes": 3})), State::Waiting);
        assert_eq!(of(json!({"observedGeneration": 2, "imagePullingNodes": 1})), State::Running);
        let ready = [condition("Ready", "True", "all images are on 3 of 3 nodes")];
        assert_eq!(of(json!({"observedGeneration": 2, "conditions": ready})), State::Settled);
        assert_eq!(
            of(json!({"observedGeneration": 1, "conditions": ready})),
            State::New,
            "that was another generation"
        );
    }

    #[test]
    fn notes_are_what_hinders_it_and_not_how_far_it_is() {
        let status = json!({"observedGeneration": 2, "desiredNodes": 3, "imagePulledNodes": 2, "conditions": [
            condition("Ready", "False", "all images are on 2 of 3 nodes"),
            condition("NodeImageSetsCreated", "False", "2 NodeImageSets for 3 nodes"),
            condition("NodesSelected", "False", "3 nodes are wanted and 2 can be used"),
        ]});
        assert_eq!(notes(&prefetch(&status)), ["3 nodes are wanted and 2 can be used"]);
        let held = json!({"observedGeneration": 2, "desiredNodes": 3, "conditions": [
            condition("Ready", "False", "these Secrets do not exist: regcred"),
        ]});
        assert_eq!(notes(&prefetch(&held)), ["these Secrets do not exist: regcred"]);
    }
}
