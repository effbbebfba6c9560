//! Which pulls are under way, since when, and what is known about them. Entries live as long as their pull.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use prewarm_api::reference::ImageRef;

use crate::proto::content::Info;

use super::manifest::Layers;

/// The pulls under way.
#[derive(Default)]
pub struct Pulls(Mutex<BTreeMap<ImageRef, Pull>>);

struct Pull {
    since: SystemTime,
    /// How many callers pull this reference.
    callers: usize,
    layers: Option<Layers>,
}

/// Exists while a pull is under way.
pub struct UnderWay {
    pulls: Arc<Pulls>,
    reference: ImageRef,
}

impl Pulls {
    /// Records that a pull begins. It ends when the returned value is dropped.
    pub fn begin(self: &Arc<Self>, reference: &ImageRef) -> UnderWay {
        let begun = || Pull { since: SystemTime::now(), callers: 0, layers: None };
        self.entries().entry(reference.clone()).or_insert_with(begun).callers += 1;
        UnderWay { pulls: Arc::clone(self), reference: reference.clone() }
    }

    pub fn is_under_way(&self, reference: &ImageRef) -> bool {
        self.entries().contains_key(reference)
    }

    pub fn layers(&self, reference: &ImageRef) -> Option<Layers> {
        self.entries().get(reference).and_then(|pull| pull.layers.clone())
    }

    /// Keeps what a sample found, if the pull is still under way.
    pub fn remember(&self, reference: &ImageRef, layers: Layers) {
        if let Some(pull) = self.entries().get_mut(reference) {
            pull.layers = Some(layers);
        }
    }

    /// The first manifest that was touched since the pull began and does not belong to another pull. If several tags of
    /// one repository are pulled at the same time, each gets one.
    pub fn choose_manifest(&self, reference: &ImageRef, found: &[Info]) -> Option<Info> {
        let entries = self.entries();
        let since = entries.get(reference)?.since;
        let taken: Vec<&str> = entries
            .iter()
            .filter(|(other, _)| *other != reference)
            .filter_map(|(_, pull)| pull.layers.as_ref().map(|layers| layers.manifest.as_str()))
            .collect();
        if let Some(exact) = found.iter().find(|info| reference.is_digest() && info.digest == reference.tag())
        {
            return Some(exact.clone());
        }
        let touched = found.iter().filter_map(|info| Some((touched_at(info)?, info)));
        touched
            .filter(|(at, info)| *at >= since && !taken.contains(&info.digest.as_str()))
            .min_by_key(|(at, _)| *at)
            .map(|(_, info)| info.clone())
    }

    fn entries(&self) -> MutexGuard<'_, BTreeMap<ImageRef, Pull>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn touched_at(info: &Info) -> Option<SystemTime> {
    SystemTime::try_from(info.updated_at?).ok()
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut entries = self.pulls.entries();
        let Some(pull) = entries.get_mut(&self.reference) else { return };
        pull.callers -= 1;
        if pull.callers == 0 {
            entries.remove(&self.reference);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use super::*;

    fn info(digest: &str, at: SystemTime) -> Info {
        Info { digest: digest.into(), size: 1, updated_at: Some(at.into()), ..Info::default() }
    }

    fn layers(manifest: &str) -> Layers {
        Layers { manifest: manifest.into(), sizes: BTreeMap::new(), seen: BTreeSet::new() }
    }

    fn reference(text: &str) -> ImageRef {
        ImageRef::parse(text).unwrap()
    }

    #[test]
    fn a_manifest_of_an_earlier_pull_is_not_taken_for_this_one() {
        let pulls = Arc::new(Pulls::default());
        let _pull = pulls.begin(&reference("reg/a:1"));
        let old = info("old", SystemTime::now() - Duration::from_mins(1));
        assert_eq!(pulls.choose_manifest(&reference("reg/a:1"), std::slice::from_ref(&old)), None);
        let fresh = info("fresh", SystemTime::now() + Duration::from_secs(1));
        let chosen = pulls.choose_manifest(&reference("reg/a:1"), &[old, fresh.clone()]);
        assert_eq!(chosen, Some(fresh));
    }

    #[test]
    fn two_tags_of_one_repository_get_a_manifest_each() {
        let pulls = Arc::new(Pulls::default());
        let (one, two) = (reference("reg/a:1"), reference("reg/a:2"));
        let _pulls = (pulls.begin(&one), pulls.begin(&two));
        let first = info("first", SystemTime::now() + Duration::from_secs(1));
        let second = info("second", SystemTime::now() + Duration::from_secs(2));
        let found = [second.clone(), first.clone()];
        assert_eq!(pulls.choose_manifest(&one, &found), Some(first));
        pulls.remember(&one, layers("first"));
        assert_eq!(pulls.choose_manifest(&two, &found), Some(second));
    }

    #[test]
    fn nothing_is_remembered_of_a_pull_that_has_ended() {
        let pulls = Arc::new(Pulls::default());
        let image = reference("reg/a:1");
        let (first, second) = (pulls.begin(&image), pulls.begin(&image));
        pulls.remember(&image, layers("m"));
        drop(first);
        assert!(pulls.is_under_way(&image) && pulls.layers(&image).is_some());
        drop(second);
        pulls.remember(&image, layers("m"));
        assert!(!pulls.is_under_way(&image) && pulls.layers(&image).is_none());
    }
}
