//! Answers of one plugin that are still valid.

use std::collections::BTreeMap;
use std::sync::Arc;

use prewarm_api::reference::ImageRef;
use tokio::time::Instant;

use super::response::{Answer, Key, Scope};

/// The most answers of one plugin.
pub(super) const MAX_ENTRIES: usize = 256;

#[derive(Default)]
pub(super) struct Cache {
    entries: BTreeMap<Key, (Instant, Arc<Answer>)>,
}

impl Cache {
    /// The valid answer for an image: one for the image itself before one for its registry, and that before one for
    /// all.
    pub(super) fn find(&self, image: &ImageRef, now: Instant) -> Option<Arc<Answer>> {
        [Scope::Image, Scope::Registry, Scope::Global]
            .into_iter()
            .filter_map(|scope| self.entries.get(&scope.key(image)))
            .find(|(expires, _)| now < *expires)
            .map(|(_, answer)| Arc::clone(answer))
    }

    /// Keeps an answer as long as it says. If there is no room, the one that expires first makes way.
    pub(super) fn keep(&mut self, image: &ImageRef, answer: &Arc<Answer>, now: Instant) {
        self.entries.retain(|_, (expires, _)| now < *expires);
        if answer.keep.is_zero() {
            return;
        }
        let key = answer.scope.key(image);
        if self.entries.len() >= MAX_ENTRIES && !self.entries.contains_key(&key) {
            let first =
                self.entries.iter().min_by_key(|(_, (expires, _))| *expires).map(|(key, _)| key.clone());
            first.map(|key| self.entries.remove(&key));
        }
        self.entries.insert(key, (now + answer.keep, Arc::clone(answer)));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::DockerConfig;

    fn answer(scope: Scope, seconds: u64) -> Arc<Answer> {
        Arc::new(Answer { config: DockerConfig::default(), scope, keep: Duration::from_secs(seconds) })
    }

    fn image(text: &str) -> ImageRef {
        text.parse().unwrap()
    }

    #[test]
    fn an_answer_holds_for_its_scope_and_its_time() {
        let now = Instant::now();
        for (scope, others) in
            [(Scope::Image, [false, false]), (Scope::Registry, [true, false]), (Scope::Global, [true, true])]
        {
            let mut cache = Cache::default();
            cache.keep(&image("a.example/x:v1"), &answer(scope, 60), now);
            let holds =
                |text, seconds| cache.find(&image(text), now + Duration::from_secs(seconds)).is_some();
            assert!(holds("a.example/x:v2", 59));
            assert!(!holds("a.example/x:v1", 60));
            assert_eq!([holds("a.example/y", 0), holds("b.example/x", 0)], others, "{scope:?}");
        }
    }

    #[test]
    fn an_answer_without_time_is_not_kept() {
        let mut cache = Cache::default();
        cache.keep(&image("a.example/x"), &answer(Scope::Global, 0), Instant::now());
        assert!(cache.entries.is_empty());
    }

    #[test]
    fn the_cache_is_bounded_and_drops_what_expires_first() {
        let (mut cache, now) = (Cache::default(), Instant::now());
        cache.keep(&image("a.example/first"), &answer(Scope::Image, 1), now);
        for number in 0..MAX_ENTRIES {
            cache.keep(&image(&format!("a.example/n{number}")), &answer(Scope::Image, 60), now);
        }
        assert_eq!(cache.entries.len(), MAX_ENTRIES);
        assert!(cache.find(&image("a.example/first"), now).is_none());
        assert!(cache.find(&image("a.example/n0"), now).is_some());
    }
}
