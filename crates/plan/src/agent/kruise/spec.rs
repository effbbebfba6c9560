//! Reads the spec of a NodeImage entry by entry: one that cannot be read never hides the others.

use std::time::Duration;

use prewarm_api::kruise::{
    FailureClass, ImagePullPolicy, ImageTagPullPolicy, ImageTagSpec, MAX_BACKOFF_LIMIT, MAX_TIMEOUT_SECONDS,
    SandboxConfig, SecretReference,
};
use prewarm_api::names::SECRET_MODE_BATCH;
use prewarm_api::ofen::RegistryPolicy;
use prewarm_api::reference::ImageRef;
use prewarm_api::text::plain;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::agent::attempt::Timeline;
use crate::agent::source::Allowed;
use crate::agent::task::{Asked, BadEntry, PullSecret, Task};
use crate::object::ImageKey;

/// How many entries of a NodeImage are read. The definition allows fewer; this bounds an object from elsewhere.
pub const MAX_ENTRIES: usize = 8192;
/// The time of one attempt if the policy gives none that could be meant.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(10);
/// The repetitions if the policy gives none that could be meant.
const DEFAULT_BACKOFF_LIMIT: u32 = 3;

/// Reads the spec of a NodeImage.
pub fn read(spec: &Value) -> Asked {
    let mut asked = Asked::default();
    let mut left = MAX_ENTRIES;
    for (name, image) in object(spec.get("images")) {
        let shared = Shared::of(image);
        for entry in array(image.get("tags")) {
            if left == 0 {
                return asked;
            }
            left -= 1;
            match task(name, entry, &shared) {
                Ok(task) => asked.add(task),
                Err(bad) => asked.bad.push(bad),
            }
        }
    }
    asked
}

/// What all tags of an image have in common.
struct Shared {
    secrets: Vec<PullSecret>,
    sandbox: SandboxConfig,
}

impl Shared {
    fn of(image: &Value) -> Self {
        let secrets = each::<SecretReference>(image.get("pullSecrets")).into_iter();
        Self {
            secrets: secrets
                .map(|secret| PullSecret {
                    namespace: secret.namespace,
                    name: secret.name,
                    is_shared: secret.mode.as_deref() == Some(SECRET_MODE_BATCH),
                })
                .collect(),
            sandbox: value(image.get("sandboxConfig")).unwrap_or_default(),
        }
    }
}

fn task(name: &str, entry: &Value, shared: &Shared) -> Result<Task, BadEntry> {
    let tag = entry.get("tag").and_then(Value::as_str).unwrap_or_default();
    let version = entry.get("version").and_then(Value::as_i64).unwrap_or_default();
    let key = ImageKey { name: name.to_owned(), tag: tag.to_owned() };
    let bad = |class, reason: String| BadEntry { key: key.clone(), version, class, reason: plain(&reason) };
    let spec: ImageTagSpec = serde_json::from_value(completed(entry)).map_err(|error| {
        bad(FailureClass::Unknown, format!("this entry of the spec cannot be read: {error}; correct it"))
    })?;
    let reference = ImageRef::from_parts(name, tag).map_err(|error| {
        bad(
            FailureClass::InvalidReference,
            format!("{name} with tag {tag} is no image reference: {error}; correct the entry"),
        )
    })?;
    Ok(Task {
        key: key.clone(),
        reference,
        version: spec.version,
        timeline: timeline(&spec.pull_policy),
        is_always: spec.image_pull_policy == ImagePullPolicy::Always,
        sources: sources(&spec),
        created_at: spec.created_at.map(|time| time.0),
        owners: spec.owner_references.unwrap_or_default(),
        is_manual: spec.manual,
        secrets: shared.secrets.clone(),
        labels: shared.sandbox.labels.clone().unwrap_or_default(),
        annotations: shared.sandbox.annotations.clone().unwrap_or_default(),
    })
}

/// A digest counts only for mirrors: the registry says by itself what a tag stands for.
fn sources(spec: &ImageTagSpec) -> Allowed {
    match spec.registry_policy {
        Some(RegistryPolicy::MirrorOnly) => Allowed::Mirrors { digest: spec.digest.clone() },
        Some(RegistryPolicy::Default) | None => Allowed::Registry,
    }
}

/// Reads a policy. No attempt could succeed in no time, so a timeout of 0 means the default, as do negative numbers,
/// which the schema refuses but an older one may have stored. Larger numbers than jobs may have count as the largest of those.
fn timeline(policy: &ImageTagPullPolicy) -> Timeline {
    let timeout = u64::try_from(policy.timeout_seconds.min(MAX_TIMEOUT_SECONDS)).ok();
    let timeout = timeout.filter(|seconds| *seconds > 0);
    let repetitions = u32::try_from(policy.backoff_limit.min(MAX_BACKOFF_LIMIT));
    let repetitions = repetitions.unwrap_or(DEFAULT_BACKOFF_LIMIT);
    let deadline = policy.active_deadline_seconds.and_then(|seconds| u64::try_from(seconds).ok());
    Timeline {
        timeout: timeout.map_or(DEFAULT_TIMEOUT, Duration::from_secs),
        attempts: repetitions.saturating_add(1),
        deadline: deadline.map(Duration::from_secs),
    }
}

/// Fills in what older definitions did not demand.
fn completed(entry: &Value) -> Value {
    let mut entry = entry.clone();
    if let Some(fields) = entry.as_object_mut() {
        let policy = fields.entry("pullPolicy").or_insert_with(|| json!({}));
        if let Some(policy) = policy.as_object_mut() {
            policy.entry("ttlSecondsAfterFinished").or_insert(json!(0));
        }
        if fields.get("imagePullPolicy").is_some_and(|policy| policy == "") {
            fields.remove("imagePullPolicy");
        }
    }
    entry
}

pub(super) fn object(value: Option<&Value>) -> impl Iterator<Item = (&String, &Value)> {
    value.and_then(Value::as_object).into_iter().flat_map(Map::iter)
}

pub(super) fn array(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    value.and_then(Value::as_array).into_iter().flatten()
}

pub(super) fn each<T: DeserializeOwned>(list: Option<&Value>) -> Vec<T> {
    array(list).filter_map(|item| value(Some(item))).collect()
}

pub(super) fn value<T: DeserializeOwned>(value: Option<&Value>) -> Option<T> {
    T::deserialize(value?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str, tag: &str) -> ImageKey {
        ImageKey { name: name.to_owned(), tag: tag.to_owned() }
    }

    fn policy(timeout: i32, backoff: i32, deadline: Option<i64>) -> ImageTagPullPolicy {
        ImageTagPullPolicy {
            timeout_seconds: timeout,
            backoff_limit: backoff,
            active_deadline_seconds: deadline,
            ..ImageTagPullPolicy::default()
        }
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_policy_gives_one_attempt_more_than_repetitions() {
        let timeline = timeline(&policy(30, 2, Some(90)));
        assert_eq!(timeline, Timeline { timeout: seconds(30), attempts: 3, deadline: Some(seconds(90)) });
    }

    #[test]
    fn numbers_that_cannot_be_meant_give_the_defaults() {
        let usual = Timeline { timeout: seconds(600), attempts: 4, deadline: None };
        assert_eq!(timeline(&policy(0, 3, None)), usual);
        assert_eq!(timeline(&policy(-1, -1, Some(-1))), usual);
        assert_eq!(timeline(&policy(i32::MIN, i32::MIN, Some(i64::MIN))), usual);
    }

    #[test]
    fn the_largest_numbers_of_a_policy_overflow_nothing() {
        let largest = timeline(&policy(i32::MAX, i32::MAX, Some(i64::MAX)));
        let deadline = Some(Duration::from_secs(9_223_372_036_854_775_807));
        assert_eq!(largest, Timeline { timeout: seconds(86_400), attempts: 1_001, deadline });
    }

    #[test]
    fn a_bad_entry_does_not_hide_the_others() {
        let asked = read(&json!({ "images": {
            "Bad/NAME": { "tags": [{ "tag": "1" }] },
            "app": { "tags": [{ "tag": "1", "version": "x" }, { "tag": "2" }, { "tag": "!" }, 5] },
        }}));
        assert_eq!(asked.tasks.keys().collect::<Vec<_>>(), [&key("app", "2")]);
        let bad: Vec<_> = asked.bad.iter().map(|bad| (&bad.key, bad.class)).collect();
        assert_eq!(
            bad,
            [
                (&key("Bad/NAME", "1"), FailureClass::InvalidReference),
                (&key("app", "1"), FailureClass::Unknown),
                (&key("app", "!"), FailureClass::InvalidReference),
                (&key("app", ""), FailureClass::Unknown),
            ]
        );
    }

    #[test]
    fn a_reason_repeats_no_control_characters() {
        let asked = read(&json!({ "images": { "a\u{1b}[31m\n": { "tags": [{ "tag": "v1" }] } } }));
        assert!(!asked.bad[0].reason.contains(char::is_control), "{:?}", asked.bad[0].reason);
    }

    #[test]
    fn of_twins_the_higher_version_is_pulled_and_the_other_is_named() {
        let asked = read(&json!({ "images": { "app": { "tags": [
            { "tag": "1", "version": 3 }, { "tag": "1", "version": 7 }, { "tag": "1", "version": 5 }
        ]}}}));
        assert_eq!(asked.tasks[&key("app", "1")].version, 7);
        assert_eq!(asked.bad.iter().map(|bad| bad.version).collect::<Vec<_>>(), [3, 5]);
    }

    #[test]
    fn what_older_definitions_left_out_has_its_default() {
        let asked =
            read(&json!({ "images": { "app": { "tags": [{ "tag": "1", "imagePullPolicy": "" }] } } }));
        let task = &asked.tasks[&key("app", "1")];
        let usual = Timeline { timeout: seconds(600), attempts: 4, deadline: None };
        assert_eq!((task.timeline, task.is_always), (usual, false));
        assert!(task.is_by_hand());
    }

    #[test]
    fn an_entry_says_whether_the_image_comes_from_mirrors_alone_and_with_which_digest() {
        let asked = read(&json!({ "images": { "app": { "tags": [
            { "tag": "1", "registryPolicy": "MirrorOnly", "digest": "sha256:1" },
            { "tag": "2", "registryPolicy": "MirrorOnly" },
            { "tag": "3", "registryPolicy": "Default", "digest": "sha256:1" },
            { "tag": "4" },
        ]}}}));
        let sources: Vec<_> = asked.tasks.values().map(|task| task.sources.clone()).collect();
        let certain = Allowed::Mirrors { digest: Some("sha256:1".into()) };
        let any = Allowed::Mirrors { digest: None };
        assert_eq!(sources, [certain, any, Allowed::Registry, Allowed::Registry]);
    }

    #[test]
    fn a_digest_in_the_place_of_the_tag_is_asked_as_a_digest() {
        let digest = format!("sha256:{}", "a".repeat(64));
        let asked = read(&json!({ "images": { "app": { "tags": [{ "tag": digest }] } } }));
        assert_eq!(
            asked.tasks[&key("app", &digest)].reference.full(),
            format!("docker.io/library/app@{digest}")
        );
    }

    #[test]
    fn a_spec_of_any_shape_is_read_without_harm() {
        for spec in [json!(null), json!(5), json!({ "images": [] }), json!({ "images": { "a": 1 } })] {
            assert_eq!(read(&spec), Asked::default());
        }
    }

    #[test]
    fn no_more_entries_are_read_than_the_bound() {
        let tags: Vec<Value> = (0..MAX_ENTRIES + 5).map(|tag| json!({ "tag": tag.to_string() })).collect();
        assert_eq!(read(&json!({ "images": { "app": { "tags": tags } } })).tasks.len(), MAX_ENTRIES);
    }
}
