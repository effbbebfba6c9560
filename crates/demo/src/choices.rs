//! What the seed decides. Every choice is a pure function of the seed and of its purpose, so the same seed makes the
//! same choices, whatever was chosen before.

use sha2::{Digest as _, Sha256};

use crate::pace::Flow;

/// The slowest link, in percent of the usual one.
const SLOWEST: u64 = 60;
/// The fastest.
const FASTEST: u64 = 140;

/// The choices of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choices(u64);

impl Choices {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The link of a node, by its number: from 60 % to 140 % of the usual one.
    pub fn link(self, usual: Flow, node: usize) -> Flow {
        let percent = self.between("link", node, SLOWEST, FASTEST);
        match usual {
            Flow::Limited(rate) => Flow::Limited((rate / 100 * percent).max(1)),
            Flow::Free | Flow::Still => usual,
        }
    }

    /// A number from `least` to `most`. Different purposes are independent of each other, and so are the places of one
    /// purpose.
    pub fn between(self, purpose: &str, place: usize, least: u64, most: u64) -> u64 {
        let hash = Sha256::digest(format!("{} {purpose} {place}", self.0));
        let number = hash.iter().take(7).fold(0, |number, byte| number << 8 | u64::from(*byte));
        least + number % (most.saturating_sub(least) + 1)
    }

    /// One element of a list, or none of an empty one.
    pub fn choose<T>(self, purpose: &str, from: impl ExactSizeIterator<Item = T>) -> Option<T> {
        let last = u64::try_from(from.len()).ok()?.checked_sub(1)?;
        let chosen = self.between(purpose, 0, 0, last);
        { from }.nth(usize::try_from(chosen).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(seed: u64) -> Vec<Flow> {
        (1..=200).map(|node| Choices::new(seed).link(Flow::Limited(1000), node)).collect()
    }

    #[test]
    fn the_same_seed_repeats_its_choices_and_another_one_does_not() {
        assert_eq!(links(7), links(7));
        assert_ne!(links(7), links(8));
        let chosen = |seed| Choices::new(seed).choose("full disk", 0..1000);
        assert_eq!(chosen(7), chosen(7));
        assert_ne!(chosen(7), chosen(8));
    }

    #[test]
    fn links_are_spread_around_the_usual_one() {
        let is_within = |flow: &Flow| matches!(flow, Flow::Limited(rate) if (600..=1400).contains(rate));
        let links = links(1);
        assert!(links.iter().all(is_within), "{links:?}");
        assert!(links.iter().any(|flow| matches!(flow, Flow::Limited(rate) if *rate < 700)));
        assert!(links.iter().any(|flow| matches!(flow, Flow::Limited(rate) if *rate > 1300)));
        assert_eq!(Choices::new(1).link(Flow::Free, 1), Flow::Free);
    }

    #[test]
    fn nothing_is_chosen_from_nothing_and_the_only_one_from_one() {
        let choices = Choices::new(3);
        assert_eq!(choices.choose("any", std::iter::empty::<u8>()), None);
        assert_eq!(choices.choose("any", [5].into_iter()), Some(5));
    }
}
