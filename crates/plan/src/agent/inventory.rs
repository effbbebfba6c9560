//! What the node holds, as far as the agent has seen it: in looks ahead, after its own pulls, and in its checks.
//!
//! ```text
//! absent    saves an attempt its look, for a few seconds and until an attempt for the image begins
//! present   never ends a task; it is compared when a check looks for losses
//! ```
//!
//! Others use the runtime too, so what was seen may have changed since. A wrong "absent" costs at most a pull of what is
//! there, and it is only believed for [`ABSENCE_LASTS`]. A wrong "present" would leave a pod without its image, so a task
//! only ends well by an answer of the runtime to a question that was asked for it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use prewarm_api::reference::ImageRef;

/// How long an attempt trusts that an image is absent. After that a pod may have brought it, and the attempt looks again.
pub const ABSENCE_LASTS: Duration = Duration::from_secs(5);
/// At most this many images are remembered. Of more, those that were seen longest ago are forgotten.
pub const MAX_IMAGES: usize = 8192;

/// What the node holds.
#[derive(Clone, Debug, Default)]
pub struct Inventory {
    seen: BTreeMap<ImageRef, Sighting>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sighting {
    is_present: bool,
    at: Duration,
}

/// What a check of the whole node found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// When the check began: later sightings are newer than this.
    pub began: Duration,
    /// All images that the node has, under all their names.
    pub present: BTreeSet<ImageRef>,
    /// Images that were asked for one by one, and are not there.
    pub absent: BTreeSet<ImageRef>,
}

impl Inventory {
    /// Whether the node has an image, as far as is known.
    pub fn holds(&self, reference: &ImageRef) -> Option<bool> {
        self.seen.get(reference).map(|sighting| sighting.is_present)
    }

    /// The images that the node has, as far as is known.
    pub fn held(&self) -> impl Iterator<Item = &ImageRef> {
        self.seen.iter().filter(|(_, sighting)| sighting.is_present).map(|(reference, _)| reference)
    }

    /// Whether an image was absent a moment ago.
    pub(super) fn was_just_absent(&self, reference: &ImageRef, now: Duration) -> bool {
        self.seen.get(reference).is_some_and(|sighting| !sighting.is_present && is_fresh(*sighting, now))
    }

    /// Notes an answer of the runtime about one image.
    pub(super) fn saw(&mut self, reference: &ImageRef, is_present: bool, now: Duration) {
        self.seen.insert(reference.clone(), Sighting { is_present, at: now });
        self.forget_beyond_bound();
    }

    /// Forgets an image that an attempt is or was for: nobody knows how far a pull came that failed or was cancelled.
    pub(super) fn forget(&mut self, reference: &ImageRef) {
        self.seen.remove(reference);
    }

    /// Takes over what a check found, except of images that were seen since it began.
    pub(super) fn listed(&mut self, listing: &Listing) {
        let Listing { began, present, absent } = listing;
        // A listing may leave out what is there, so it confirms no absence, but it does not contradict one either.
        self.seen.retain(|reference, sighting| {
            let stays = !sighting.is_present && !present.contains(reference) && is_fresh(*sighting, *began);
            sighting.at > *began || stays
        });
        let found = present.iter().map(|reference| (reference, true));
        for (reference, is_present) in found.chain(absent.iter().map(|reference| (reference, false))) {
            let sighting = self.seen.entry(reference.clone()).or_insert(Sighting { is_present, at: *began });
            if sighting.at <= *began {
                *sighting = Sighting { is_present, at: *began };
            }
        }
        self.forget_beyond_bound();
    }

    fn forget_beyond_bound(&mut self) {
        while self.seen.len() > MAX_IMAGES {
            let oldest = self.seen.iter().min_by_key(|(_, sighting)| sighting.at);
            let Some(reference) = oldest.map(|(reference, _)| reference.clone()) else { return };
            self.seen.remove(&reference);
        }
    }
}

fn is_fresh(sighting: Sighting, now: Duration) -> bool {
    now.saturating_sub(sighting.at) <= ABSENCE_LASTS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(tag: &str) -> ImageRef {
        ImageRef::from_parts("reg.example/app", tag).unwrap()
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn listing(began: u64, present: &[&str], absent: &[&str]) -> Listing {
        let images = |tags: &[&str]| tags.iter().map(|tag| image(tag)).collect();
        Listing { began: seconds(began), present: images(present), absent: images(absent) }
    }

    #[test]
    fn an_absence_counts_for_a_few_seconds() {
        let mut inventory = Inventory::default();
        inventory.saw(&image("1"), false, seconds(10));
        assert!(inventory.was_just_absent(&image("1"), seconds(10) + ABSENCE_LASTS));
        assert!(!inventory.was_just_absent(&image("1"), seconds(11) + ABSENCE_LASTS));
        assert!(!inventory.was_just_absent(&image("2"), seconds(10)), "nobody looked for it");
        inventory.forget(&image("1"));
        assert!(!inventory.was_just_absent(&image("1"), seconds(10)), "an attempt may have brought it");
    }

    #[test]
    fn a_listing_replaces_what_was_seen_before_it_and_nothing_that_was_seen_since() {
        let mut inventory = Inventory::default();
        inventory.saw(&image("gone"), true, seconds(9));
        inventory.saw(&image("lost"), true, seconds(10));
        inventory.saw(&image("pulled"), true, seconds(11));
        inventory.listed(&listing(10, &["there"], &["lost", "pulled"]));
        assert_eq!(inventory.held().collect::<Vec<_>>(), [&image("pulled"), &image("there")]);
        assert_eq!((inventory.holds(&image("lost")), inventory.holds(&image("gone"))), (Some(false), None));
    }

    #[test]
    fn a_listing_without_an_absent_image_leaves_it_absent_and_one_with_it_does_not() {
        let mut inventory = Inventory::default();
        inventory.saw(&image("1"), false, seconds(9));
        inventory.saw(&image("2"), false, seconds(9));
        inventory.listed(&listing(10, &["2"], &[]));
        assert!(inventory.was_just_absent(&image("1"), seconds(11)));
        assert!(!inventory.was_just_absent(&image("2"), seconds(11)));
    }

    #[test]
    fn no_more_images_are_remembered_than_the_bound() {
        let mut inventory = Inventory::default();
        for number in 0..=MAX_IMAGES as u64 {
            inventory.saw(&image(&number.to_string()), true, seconds(number));
        }
        assert_eq!((inventory.held().count(), inventory.holds(&image("0"))), (MAX_IMAGES, None));
    }
}
