//! Writes into an image's entry what jobs want (kruise R53, R54), without disturbing the jobs that are there already
//! (kruise W3, W4).

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use prewarm_api::kruise::{ImagePullPolicy, PullPhase, SecretReference};
use prewarm_api::reference_object::ObjectReference;

use super::tidy::forget_copies;
use super::{Observed, Wanted};
use crate::cluster::node_image::entry::Share;
use crate::cluster::node_image::node::{Intent, Want};
use crate::cluster::node_image::record::{ImageRecord, TagRecord, TagStatus};
use crate::demand::pull_policy::{longest, tag_policy};
use crate::object::{ImageKey, Uid};
use crate::time::stamp;

/// What is to be written about one tag.
pub type Pending<'a> = (&'a str, &'a BTreeMap<Uid, Intent>);

/// The image with what jobs want of it. `None` if nothing is left.
pub fn image(
    observed: &Observed,
    name: &str,
    tidied: Option<ImageRecord>,
    wanted: &[Pending],
) -> Option<ImageRecord> {
    if wanted.is_empty() {
        return tidied;
    }
    let mut image =
        tidied.unwrap_or_else(|| ImageRecord { secrets: Arc::new([]), sandbox: None, tags: vec![] });
    for (tag, intents) in wanted {
        let key = ImageKey { name: name.to_owned(), tag: (*tag).to_owned() };
        let is_withdrawal = |(_, intent): &(_, &Intent)| intent.want == Want::Withdraw;
        let (withdrawals, others): (Vec<_>, Vec<_>) = intents.iter().partition(is_withdrawal);
        for (uid, intent) in others {
            if let Some(wanted) = observed.demands.demand(uid) {
                carry_out(observed, &mut image, &key, &wanted, intent);
            }
        }
        // Last, so that a tag goes from one job to another as it is.
        for (uid, _) in withdrawals {
            withdraw(&mut image, tag, uid);
        }
    }
    image.tags.sort_by(|one, other| one.tag.cmp(&other.tag));
    forget_copies(observed.demands, &mut image);
    (!image.tags.is_empty()).then_some(image)
}

fn carry_out(observed: &Observed, image: &mut ImageRecord, key: &ImageKey, wanted: &Wanted, intent: &Intent) {
    let want = intent.want;
    add_secrets(image, wanted.secrets);
    let uid = wanted.demand.owner.uid.clone().unwrap_or_default();
    let is_others =
        |tag: &TagRecord| tag.is_by_hand() || tag.owners.iter().any(|owner| owner.uid.as_ref() != Some(&uid));
    let others_use_it = image.tags.iter().any(is_others);
    if !others_use_it || image.sandbox.is_none() {
        image.sandbox = wanted.demand.sandbox.clone().map(Arc::new);
    }
    match image.tags.iter_mut().find(|tag| *tag.tag == *key.tag) {
        Some(tag) if tag.is_owned_by(&uid) => again(observed, tag, wanted, intent),
        Some(tag) if want == Want::Grant => join(observed, tag, wanted),
        None if want == Want::Grant => image.tags.push(begin(observed, key, wanted)),
        Some(_) | None => {}
    }
}

/// The job has the tag and wants it pulled once more. Whoever has done that already is not outdone.
fn again(observed: &Observed, tag: &mut TagRecord, wanted: &Wanted, intent: &Intent) {
    let want = intent.want;
    if want == Want::Grant && is_of_others(observed, tag, wanted) {
        return bump(observed, tag, wanted);
    }
    if want.is_pull() && want != Want::Grant && Some(tag.version) == intent.version {
        bump(observed, tag, wanted);
        tag.renewed_at = (want == Want::Renew).then(|| stamp(observed.now)).or(tag.renewed_at);
    }
}

/// Whether the tag was pulled with credentials of others before the job came, which is not enough for it.
fn is_of_others(observed: &Observed, tag: &TagRecord, wanted: &Wanted) -> bool {
    let uid = wanted.demand.owner.uid.as_deref().unwrap_or_default();
    let is_late =
        |status: &TagStatus| status.phase == PullPhase::Succeeded && status.share(uid) == Share::None;
    wanted.demand.asks_always(observed.name) && tag.current().is_some_and(is_late)
}

/// Another job has the tag, or a person: it is joined, and pulled again only if what is there does not satisfy.
fn join(observed: &Observed, tag: &mut TagRecord, wanted: &Wanted) {
    tag.manual = tag.is_by_hand();
    tag.owners = tag.owners.iter().cloned().chain([wanted.demand.owner.clone()]).collect();
    tag.policy = longest(&tag.policy, &policy(observed, wanted));
    let asks_always = wanted.demand.asks_always(observed.name);
    if asks_always {
        tag.image_pull_policy = ImagePullPolicy::Always;
    }
    // A pull from mirrors, even one under way, does not count as the registry's answer.
    if asks_always && tag.mirrors.is_some() {
        bump(observed, tag, wanted);
    } else if tag.is_finished() && (asks_always || !is_present(tag)) {
        if !asks_always && !tag.manual && !owners_ask_always(observed, tag) {
            tag.image_pull_policy = ImagePullPolicy::IfNotPresent;
        }
        bump(observed, tag, wanted);
    } else {
        tag.secret_missing |= wanted.lacks_secret;
    }
}

fn is_present(tag: &TagRecord) -> bool {
    tag.current().is_some_and(|status| status.phase == PullPhase::Succeeded && status.lost_at.is_none())
}

fn owners_ask_always(observed: &Observed, tag: &TagRecord) -> bool {
    let wanted = tag.owners.iter().filter_map(|owner| observed.demands.demand(owner.uid.as_deref()?));
    let mut unfinished = wanted.filter(|wanted| wanted.is_unfinished);
    unfinished.any(|wanted| wanted.demand.asks_always(observed.name))
}

fn bump(observed: &Observed, tag: &mut TagRecord, wanted: &Wanted) {
    tag.version += 1;
    tag.secret_missing = wanted.lacks_secret;
    tag.created_at = Some(stamp(observed.now));
}

/// Nobody has the tag: it begins after the version that the node last reported for it (kruise R53).
fn begin(observed: &Observed, key: &ImageKey, wanted: &Wanted) -> TagRecord {
    let image = observed.node.image.as_ref();
    let in_spec = image
        .and_then(|image| image.tag(key))
        .map(|(_, tag)| tag.status.as_ref().map_or(tag.version, |status| status.version.max(tag.version)));
    let reported = in_spec.or_else(|| image.and_then(|image| image.leftover(key)));
    TagRecord {
        tag: key.tag.as_str().into(),
        created_at: Some(stamp(observed.now)),
        policy: policy(observed, wanted),
        owners: Arc::new([wanted.demand.owner.clone()]),
        version: reported.map_or(0, |version| version.saturating_add(1)),
        image_pull_policy: pull_policy(wanted.demand.asks_always(observed.name)),
        manual: false,
        renewed_at: None,
        secret_missing: wanted.lacks_secret,
        mirrors: None,
        status: None,
    }
}

fn pull_policy(asks_always: bool) -> ImagePullPolicy {
    if asks_always { ImagePullPolicy::Always } else { ImagePullPolicy::IfNotPresent }
}

fn policy(observed: &Observed, wanted: &Wanted) -> prewarm_api::kruise::ImageTagPullPolicy {
    tag_policy(wanted.demand, observed.always_ttl, jitter(wanted, observed))
}

/// A number from 0 to 1 that is the same for all nodes of a job that are granted in one minute (kruise R54).
fn jitter(wanted: &Wanted, observed: &Observed) -> f64 {
    let mut hasher = DefaultHasher::new();
    (&wanted.demand.owner.uid, observed.now.as_second() / 60).hash(&mut hasher);
    #[expect(clippy::cast_precision_loss, reason = "the fraction needs no more than the mantissa")]
    let fraction = (hasher.finish() >> 11) as f64 / (1_u64 << 53) as f64;
    fraction
}

fn add_secrets(image: &mut ImageRecord, secrets: &[SecretReference]) {
    let missing: Vec<SecretReference> =
        secrets.iter().filter(|secret| !image.secrets.contains(secret)).cloned().collect();
    if !missing.is_empty() {
        image.secrets = image.secrets.iter().cloned().chain(missing).collect();
    }
}

fn withdraw(image: &mut ImageRecord, tag: &str, uid: &str) {
    let is_other = |owner: &&ObjectReference| owner.uid.as_deref() != Some(uid);
    image.tags.retain_mut(|record| {
        if *record.tag != *tag || !record.is_owned_by(uid) {
            return true;
        }
        record.owners = record.owners.iter().filter(is_other).cloned().collect();
        !record.owners.is_empty() || record.manual
    });
}
