//! From where a tag may come: from mirrors alone while all who want it ask for that, from wherever the runtime is configured to as
//! soon as one does not.

use prewarm_api::kruise::ImagePullPolicy;
use prewarm_api::reference_object::ObjectReference;

use super::Observed;
use super::record::{ImageRecord, MirrorsOnly, TagRecord};
use crate::cluster::demands::kind_of;
use crate::demand::Origin;

/// Writes into the tags of an image from where each may come.
pub fn settle(observed: &Observed, image: &mut ImageRecord) {
    for tag in &mut image.tags {
        // What a person wrote stays as it is, also when others join.
        if tag.is_by_hand() || !(tag.mirrors.is_some() || tag.owners.iter().any(may_ask_mirrors)) {
            continue;
        }
        match origin(observed, tag) {
            Origin::AsBefore => {}
            Origin::Mirrors(digest) => {
                tag.mirrors = Some(MirrorsOnly { digest });
                tag.image_pull_policy = ImagePullPolicy::IfNotPresent;
            }
            Origin::Anywhere => {
                tag.mirrors = None;
                if asks_always(observed, tag) {
                    tag.image_pull_policy = ImagePullPolicy::Always;
                }
            }
        }
    }
}

/// What all owners together say: one that asks the registry decides, and mirrors are for those who are all known to ask for that.
/// One that is over says nothing any more, unless all are.
fn origin(observed: &Observed, tag: &TagRecord) -> Origin {
    let mut said = Origin::AsBefore;
    let mut is_open = false;
    for owner in tag.owners.iter() {
        let wanted = owner.uid.as_deref().and_then(|uid| observed.demands.demand(uid));
        let origin = match wanted {
            Some(wanted) if !wanted.is_unfinished => continue,
            Some(wanted) => wanted.demand.origin(observed.name),
            // An owner that is not observed yet may want mirrors; owners of all other kinds want the registry.
            None if kind_of(owner).is_some() => Origin::AsBefore,
            None => Origin::Anywhere,
        };
        match (origin, &said) {
            (Origin::Anywhere, _) => return Origin::Anywhere,
            (Origin::AsBefore, _) => is_open = true,
            // Of several digests the first counts.
            (Origin::Mirrors(_), Origin::Mirrors(Some(_))) => {}
            (mirrors, _) => said = mirrors,
        }
    }
    if is_open { Origin::AsBefore } else { said }
}

fn asks_always(observed: &Observed, tag: &TagRecord) -> bool {
    let wanted = tag.owners.iter().filter_map(|owner| observed.demands.demand(owner.uid.as_deref()?));
    wanted.filter(|wanted| wanted.is_unfinished).any(|wanted| wanted.demand.asks_always(observed.name))
}

/// Whether an owner is of a kind that can ask for mirrors: looking up thousands of jobs that cannot costs more than this.
fn may_ask_mirrors(owner: &ObjectReference) -> bool {
    kind_of(owner).is_some_and(|kind| kind.about().asks_mirrors())
}
