//! Takes away what nobody wants any more (kruise R11–R15). What a person wrote goes only when its TTL has passed.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use prewarm_api::kruise::SecretReference;
use prewarm_api::names::SECRET_MODE_BATCH;
use prewarm_api::reference_object::ObjectReference;

use super::{Demands, Observed, Wanted};
use crate::cluster::demands::makes_demands;
use crate::cluster::node_image::record::{ImageRecord, TagRecord};
use crate::time::earliest;
use crate::time::stamp;

/// The image without what is over, and when to look again. `None` if nothing is left of it.
pub fn image(observed: &Observed, old: &ImageRecord) -> (Option<ImageRecord>, Option<Timestamp>) {
    let mut wake_at = None;
    let mut tags = Vec::with_capacity(old.tags.len());
    for tag in &old.tags {
        let Some(tag) = owners(observed.demands, tag) else { continue };
        if !observed.node.crowded.is_empty() && is_spent(observed.demands, &tag) {
            continue;
        }
        match expiry(observed, &tag) {
            Expiry::Passed => continue,
            Expiry::At(at) => wake_at = earliest(wake_at, Some(at)),
            Expiry::Never => {}
        }
        // Without a beginning, neither silence nor age can be judged (kruise R11; stamped, not removed).
        tags.push(TagRecord { created_at: tag.created_at.or_else(|| Some(stamp(observed.now))), ..tag });
    }
    // An entry that a person left empty stays; one that became empty here goes.
    if tags.is_empty() && !old.tags.is_empty() {
        return (None, wake_at);
    }
    let image = ImageRecord { secrets: secrets(observed.demands, old), sandbox: old.sandbox.clone(), tags };
    (Some(image), wake_at)
}

/// The tag with its living owners. `None` if it had owners and all are gone (kruise R12).
fn owners(demands: &dyn Demands, tag: &TagRecord) -> Option<TagRecord> {
    let is_alive = |owner: &&ObjectReference| {
        let exists = |uid: &str| demands.demand(uid).is_some() || demands.is_unreadable(uid);
        !makes_demands(owner) || owner.uid.as_deref().is_some_and(exists) || !demands.knows(owner)
    };
    let alive = tag.owners.iter().filter(is_alive).count();
    if alive == tag.owners.len() {
        return Some(tag.clone());
    }
    let owners: Arc<[ObjectReference]> = tag.owners.iter().filter(is_alive).cloned().collect();
    (!owners.is_empty() || tag.manual).then(|| TagRecord { owners, ..tag.clone() })
}

/// Whether a result is there for nobody but its time to live: all its jobs are over. Where others wait for room it goes early.
fn is_spent(demands: &dyn Demands, tag: &TagRecord) -> bool {
    let is_over = |owner: &ObjectReference| {
        owner.uid.as_deref().and_then(|uid| demands.demand(uid)).is_some_and(|wanted| !wanted.is_unfinished)
    };
    tag.is_finished() && !tag.is_by_hand() && tag.owners.iter().all(is_over)
}

enum Expiry {
    Passed,
    At(Timestamp),
    Never,
}

/// A result expires when its time has passed and no job that ends still counts it (kruise R13, design 8).
fn expiry(observed: &Observed, tag: &TagRecord) -> Expiry {
    let Some(completed_at) = tag.current().and_then(|status| status.completed_at) else {
        return Expiry::Never;
    };
    let demands = observed.demands;
    let mut uids = tag.owners.iter().filter_map(|owner| owner.uid.as_deref());
    let holds = |uid| demands.demand(uid).is_some_and(|wanted| wanted.holds_results());
    if uids.any(|uid| holds(uid) || demands.is_unreadable(uid)) {
        // The end of the job wakes the node.
        return Expiry::Never;
    }
    let ttl = u64::try_from(tag.policy.ttl_seconds_after_finished).unwrap_or_default();
    match completed_at.checked_add(Duration::from_secs(ttl)) {
        Ok(at) if at <= observed.now => Expiry::Passed,
        Ok(at) => Expiry::At(at),
        Err(_) => Expiry::Never,
    }
}

/// Drops references to shared copies that are gone, or that serve none of the image's jobs. That alone is not worth a write
/// to every node on which a job has ended, so it goes along with others: the list grows only by such writes.
pub fn forget_copies(demands: &dyn Demands, image: &mut ImageRecord) {
    let owners = || image.tags.iter().flat_map(|tag| tag.owners.iter());
    let wanted: Vec<Wanted> = owners().filter_map(|owner| demands.demand(owner.uid.as_deref()?)).collect();
    let unfinished = wanted.iter().filter(|wanted| wanted.is_unfinished);
    // Owners of other kinds, and jobs whose Secrets are still being read, may need what nobody else does.
    let is_known = owners().all(makes_demands) && !unfinished.clone().any(|wanted| wanted.lacks_secret);
    let is_kept = |secret: &&SecretReference| {
        let is_shared = secret.mode.as_deref() == Some(SECRET_MODE_BATCH);
        let serves = || !is_known || unfinished.clone().any(|wanted| wanted.secrets.contains(secret));
        !is_shared || (demands.has_secret(secret) != Some(false) && serves())
    };
    if !image.secrets.iter().all(|secret| is_kept(&secret)) {
        let kept = image.secrets.iter().filter(is_kept).cloned().collect();
        image.secrets = kept;
    }
}

/// Secrets named one by one go when they do not exist; shared copies stay for now (kruise R14). Where a person wrote a
/// tag, the Secrets may be theirs.
fn secrets(demands: &dyn Demands, image: &ImageRecord) -> Arc<[SecretReference]> {
    let is_kept = |secret: &&SecretReference| {
        secret.mode.as_deref() == Some(SECRET_MODE_BATCH) || demands.has_secret(secret) != Some(false)
    };
    if image.tags.iter().any(TagRecord::is_by_hand) || image.secrets.iter().all(|secret| is_kept(&secret)) {
        return image.secrets.clone();
    }
    image.secrets.iter().filter(is_kept).cloned().collect()
}
