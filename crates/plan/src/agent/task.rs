//! What a NodeImage asks of its node, read entry by entry: one that cannot be read never hides the others.

use std::collections::BTreeMap;

use jiff::Timestamp;
use prewarm_api::kruise::{
    FailureClass, ImagePullPolicy, ImageTagPullPolicy, ImageTagSpec, ImageTagStatus, SandboxConfig,
    SecretReference,
};
use prewarm_api::reference::ImageRef;
use prewarm_api::reference_object::ObjectReference;
use prewarm_api::text::plain;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::object::ImageKey;

/// How many entries of a NodeImage are read. The definition allows fewer; this bounds an object from elsewhere.
pub const MAX_ENTRIES: usize = 8192;

/// One image to have on the node.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// Its entry.
    pub key: ImageKey,
    /// What the runtime is asked for.
    pub reference: ImageRef,
    /// The round: another version is another task.
    pub version: i64,
    /// Time limits and retries.
    pub policy: ImageTagPullPolicy,
    /// Whether the registry is asked even if the node has the image.
    pub is_always: bool,
    /// When it was asked for.
    pub created_at: Option<Timestamp>,
    /// The jobs that want it; none for an entry written by hand.
    pub owners: Vec<ObjectReference>,
    /// Whether a person wrote the entry before jobs joined it.
    pub is_manual: bool,
    /// Secrets with credentials.
    pub secrets: Vec<SecretReference>,
    /// Labels and annotations for the runtime.
    pub sandbox: SandboxConfig,
}

impl Task {
    /// Whether a person wrote the entry, so that nobody but the agent looks after it.
    pub fn is_by_hand(&self) -> bool {
        self.owners.is_empty()
    }

    /// In whose turn the task is pulled: its first job, or all entries by hand together.
    pub fn owner(&self) -> &str {
        self.owners.first().and_then(|owner| owner.uid.as_deref()).unwrap_or_default()
    }
}

/// An entry that cannot become a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadEntry {
    /// Its place, as far as it has one.
    pub key: ImageKey,
    /// Its version, so that whoever wrote it finds the answer.
    pub version: i64,
    /// What kind of mistake it is.
    pub class: FailureClass,
    /// What is wrong and what to do.
    pub reason: String,
}

/// What a spec asks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Asked {
    /// What can be pulled.
    pub tasks: BTreeMap<ImageKey, Task>,
    /// What cannot.
    pub bad: Vec<BadEntry>,
}

/// Reads the spec of a NodeImage.
pub fn read(spec: &Value) -> Asked {
    let mut asked = Asked::default();
    let mut left = MAX_ENTRIES;
    for (name, image) in object(spec.get("images")) {
        let secrets: Vec<SecretReference> = each(image.get("pullSecrets"));
        let sandbox: SandboxConfig = value(image.get("sandboxConfig")).unwrap_or_default();
        for entry in array(image.get("tags")) {
            if left == 0 {
                return asked;
            }
            left -= 1;
            match task(name, entry, &secrets, &sandbox) {
                Ok(task) => asked.add(task),
                Err(bad) => asked.bad.push(bad),
            }
        }
    }
    asked
}

impl Asked {
    /// Of two entries with one tag the one of the higher version counts.
    fn add(&mut self, task: Task) {
        let twin = match self.tasks.get(&task.key) {
            Some(held) if held.version >= task.version => task,
            Some(_) | None => match self.tasks.insert(task.key.clone(), task) {
                Some(twin) => twin,
                None => return,
            },
        };
        let reason = format!(
            "the tag {} stands twice in this image's entry; only the one with the highest version is pulled: remove \
             the other",
            twin.key.tag
        );
        let (key, version) = (twin.key, twin.version);
        self.bad.push(BadEntry { key, version, class: FailureClass::InvalidReference, reason });
    }
}

/// Reads the statuses that a NodeImage has; entries that make no sense are as good as absent.
pub fn reported(status: &Value) -> BTreeMap<ImageKey, ImageTagStatus> {
    let mut statuses = BTreeMap::new();
    for (name, image) in object(status.get("imageStatuses")) {
        for status in each::<ImageTagStatus>(image.get("tags")) {
            let key = ImageKey { name: name.clone(), tag: status.tag.clone() };
            // The first of two counts, as it does for clients that search the list.
            statuses.entry(key).or_insert(status);
        }
    }
    statuses
}

fn task(
    name: &str,
    entry: &Value,
    secrets: &[SecretReference],
    sandbox: &SandboxConfig,
) -> Result<Task, BadEntry> {
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
        policy: spec.pull_policy,
        is_always: spec.image_pull_policy == ImagePullPolicy::Always,
        created_at: spec.created_at.map(|time| time.0),
        owners: spec.owner_references.unwrap_or_default(),
        is_manual: spec.manual,
        secrets: secrets.to_vec(),
        sandbox: sandbox.clone(),
    })
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

fn object(value: Option<&Value>) -> impl Iterator<Item = (&String, &Value)> {
    value.and_then(Value::as_object).into_iter().flat_map(Map::iter)
}

fn array(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    value.and_then(Value::as_array).into_iter().flatten()
}

fn each<T: DeserializeOwned>(list: Option<&Value>) -> Vec<T> {
    array(list).filter_map(|item| value(Some(item))).collect()
}

fn value<T: DeserializeOwned>(value: Option<&Value>) -> Option<T> {
    T::deserialize(value?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str, tag: &str) -> ImageKey {
        ImageKey { name: name.to_owned(), tag: tag.to_owned() }
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
        assert_eq!((task.policy.timeout_seconds, task.policy.backoff_limit, task.is_always), (600, 3, false));
        assert!(task.is_by_hand());
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
        assert!(reported(&json!({ "imageStatuses": { "a": { "tags": [{ "tag": 1 }, "x"] } } })).is_empty());
    }

    #[test]
    fn no_more_entries_are_read_than_the_bound() {
        let tags: Vec<Value> = (0..MAX_ENTRIES + 5).map(|tag| json!({ "tag": tag.to_string() })).collect();
        assert_eq!(read(&json!({ "images": { "app": { "tags": tags } } })).tasks.len(), MAX_ENTRIES);
    }
}
