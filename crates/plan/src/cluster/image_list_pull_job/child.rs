//! One child: how it is made, what it is called, and whether it is still what the list wants.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use prewarm_api::kruise::{
    API_VERSION, CompletionPolicy, IMAGE_LIST_PULL_JOB, ImageListPullJob, ImageListPullJobSpec, ImagePullJob,
    ImagePullJobSpec, SandboxConfig,
};
use prewarm_api::names::{DELETION_PROTECTION_FINALIZER, REVISION_HASH_LABEL};

use crate::demand::selection::{Selection, parallelism};
use crate::hash::fnv1a;

/// The characters of generated names: no vowels and nothing that looks like one, so that no words come out.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
/// How many of them end a generated name.
const SUFFIX_LENGTH: usize = 5;
/// A generated name keeps so much of what it begins with, as Kubernetes does it; it then fits into a label.
const LONGEST_STEM: usize = 58;
/// How many names are tried for a child. The first is free unless two images of one list meet.
const MOST_NAMES: u32 = 64;

/// Whether a list controls this job.
pub(super) fn is_controlled(job: &ImagePullJob, list: &ImageListPullJob) -> bool {
    let owners = job.metadata.owner_references.iter().flatten();
    let mut controllers = owners.filter(|owner| owner.controller == Some(true));
    controllers.any(|owner| Some(&owner.uid) == list.metadata.uid.as_ref())
}

/// The hash that a list or a child carries.
pub(super) fn revision_of(metadata: &ObjectMeta) -> Option<&str> {
    metadata.labels.as_ref()?.get(REVISION_HASH_LABEL).map(String::as_str)
}

/// Whether a child was made from this template. What means the same counts as the same, because other programs leave
/// out what is empty; how long the child outlives its end is none of the template (kruise W9).
pub(super) fn has_template(child: &ImagePullJobSpec, list: &ImageListPullJobSpec) -> bool {
    // Both are taken apart whole, so that a field that is added cannot be forgotten here.
    let ImagePullJobSpec {
        image: _,
        pull_secrets,
        selector,
        pod_selector,
        parallelism: parallel,
        pull_policy,
        completion_policy,
        sandbox_config,
        image_pull_policy,
    } = child;
    let CompletionPolicy { type_, active_deadline_seconds, ttl_seconds_after_finished: _ } =
        completion_policy;
    let selects_the_same = || {
        (selector, pod_selector) == (&list.selector, &list.pod_selector)
            || Selection::of(selector.as_ref(), pod_selector.as_ref())
                == Selection::of(list.selector.as_ref(), list.pod_selector.as_ref())
    };
    *type_ == list.completion_policy.type_
        && *active_deadline_seconds == list.completion_policy.active_deadline_seconds
        && pull_policy.bounded() == list.pull_policy.bounded()
        && *image_pull_policy == list.image_pull_policy
        && parallelism(parallel.as_ref()) == parallelism(list.parallelism.as_ref())
        && pull_secrets.as_deref().unwrap_or_default() == list.pull_secrets.as_deref().unwrap_or_default()
        && metadata_of(sandbox_config.as_ref()) == metadata_of(list.sandbox_config.as_ref())
        && selects_the_same()
}

/// The labels and annotations of a sandbox, as far as there are any.
fn metadata_of(sandbox: Option<&SandboxConfig>) -> [Option<&BTreeMap<String, String>>; 2] {
    let labels = sandbox.and_then(|sandbox| sandbox.labels.as_ref());
    let annotations = sandbox.and_then(|sandbox| sandbox.annotations.as_ref());
    [labels, annotations].map(|map| map.filter(|map| !map.is_empty()))
}

/// The hash of a list's template, as its label has it (kruise R71).
pub(super) fn template_hash(list: &ImageListPullJobSpec) -> String {
    let template = serde_json::to_string(&spec(list, "")).expect("a spec is JSON");
    let digits = fnv1a(&template).to_string();
    digits.bytes().map(|digit| char::from(ALPHABET[usize::from(digit) % ALPHABET.len()])).collect()
}

/// The names that a child may have, best first. They look generated, but the same list, image and template always lead
/// to the same ones.
pub(super) fn candidate_names(
    list: &ImageListPullJob,
    image: &str,
    hash: &str,
) -> impl Iterator<Item = String> + use<> {
    let name = list.metadata.name.as_deref().unwrap_or_default();
    let stem: String = name.chars().chain(['-']).take(LONGEST_STEM).collect();
    let uid = list.metadata.uid.as_deref().unwrap_or_default();
    let child = format!("{uid}\n{image}\n{hash}");
    (0..MOST_NAMES).map(move |attempt| format!("{stem}{}", suffix(fnv1a(&format!("{child}\n{attempt}")))))
}

fn suffix(mut hash: u32) -> String {
    let base = u32::try_from(ALPHABET.len()).expect("the alphabet is short");
    let letter = |_| {
        let letter = ALPHABET[(hash % base) as usize];
        hash /= base;
        char::from(letter)
    };
    (0..SUFFIX_LENGTH).map(letter).collect()
}

/// A child of the list for one image (kruise R76).
pub(super) fn make(list: &ImageListPullJob, image: &str, name: String, revision: &str) -> ImagePullJob {
    let owner = OwnerReference {
        api_version: API_VERSION.to_owned(),
        kind: IMAGE_LIST_PULL_JOB.to_owned(),
        name: list.metadata.name.clone().unwrap_or_default(),
        uid: list.metadata.uid.clone().unwrap_or_default(),
        controller: Some(true),
        // Blocking would need the right to set the list's finalizers on clusters that enforce owners' permissions, and
        // would gain nothing but the order in which a foreground deletion removes list and children.
        block_owner_deletion: None,
    };
    let names_secrets = list.spec.pull_secrets.as_ref().is_some_and(|names| !names.is_empty());
    let metadata = ObjectMeta {
        name: Some(name),
        namespace: list.metadata.namespace.clone(),
        labels: Some([(REVISION_HASH_LABEL.to_owned(), revision.to_owned())].into()),
        owner_references: Some(vec![owner]),
        // Set from the start where copies of Secrets have to go before the child, which saves a write for each.
        finalizers: names_secrets.then(|| vec![DELETION_PROTECTION_FINALIZER.to_owned()]),
        ..ObjectMeta::default()
    };
    ImagePullJob { metadata, spec: spec(&list.spec, image), status: None }
}

/// The list's template for one image. The child has no end of its own: one that went before the list would be made
/// again (kruise W9).
fn spec(list: &ImageListPullJobSpec, image: &str) -> ImagePullJobSpec {
    ImagePullJobSpec {
        image: image.to_owned(),
        pull_secrets: list.pull_secrets.clone(),
        selector: list.selector.clone(),
        pod_selector: list.pod_selector.clone(),
        parallelism: list.parallelism.clone(),
        pull_policy: list.pull_policy.bounded(),
        completion_policy: CompletionPolicy {
            ttl_seconds_after_finished: None,
            ..list.completion_policy.clone()
        },
        sandbox_config: list.sandbox_config.clone(),
        image_pull_policy: list.image_pull_policy,
    }
}
