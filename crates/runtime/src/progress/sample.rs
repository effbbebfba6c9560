//! Adds up one sample.

use crate::proto::content::Status;

use super::Progress;
use super::manifest::Layers;

/// The prefixes before the digest in the name of an ingest.
const KINDS: [&str; 2] = ["layer-", "config-"];

/// The sum over all layers: complete ones, and those under way as far as they have arrived.
pub fn sum(layers: &Layers, ingests: &[Status]) -> Progress {
    let total: u64 = layers.sizes.values().sum();
    let done: u64 = layers
        .sizes
        .iter()
        .map(
            |(digest, size)| {
                if layers.seen.contains(digest) { *size } else { arrived(digest, *size, ingests) }
            },
        )
        .sum();
    // All bytes of a layer can have arrived before containerd commits it.
    Progress { done, total, is_unpacking: done == total }
}

/// How much of a layer has arrived, never more than its size.
fn arrived(digest: &str, size: u64, ingests: &[Status]) -> u64 {
    let is_of = |ingest: &&Status| {
        KINDS.iter().any(|kind| ingest.r#ref.strip_prefix(kind).is_some_and(|rest| rest == digest))
    };
    let offset = ingests.iter().find(is_of).map_or(0, |ingest| ingest.offset);
    u64::try_from(offset).unwrap_or(0).min(size)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    fn layers(seen: &[&str]) -> Layers {
        Layers {
            manifest: "m".into(),
            sizes: BTreeMap::from([("a".into(), 100), ("b".into(), 50)]),
            seen: seen.iter().map(ToString::to_string).collect::<BTreeSet<_>>(),
        }
    }

    fn ingest(name: &str, offset: i64) -> Status {
        Status { r#ref: name.into(), offset, total: 0 }
    }

    #[test]
    fn layers_that_are_there_and_parts_of_others_are_done() {
        let progress = sum(&layers(&["a"]), &[ingest("layer-b", 20), ingest("layer-other", 7)]);
        assert_eq!(progress, Progress { done: 120, total: 150, is_unpacking: false });
    }

    #[test]
    fn an_ingest_never_counts_for_more_than_its_layer() {
        let progress = sum(&layers(&[]), &[ingest("layer-a", i64::MAX), ingest("layer-b", -5)]);
        assert_eq!(progress, Progress { done: 100, total: 150, is_unpacking: false });
    }

    #[test]
    fn a_layer_that_is_not_committed_yet_has_arrived() {
        let progress = sum(&layers(&["a"]), &[ingest("layer-b", 50)]);
        assert_eq!(progress, Progress { done: 150, total: 150, is_unpacking: true });
    }

    #[test]
    fn an_image_that_has_arrived_is_being_unpacked() {
        assert_eq!(sum(&layers(&["a", "b"]), &[]), Progress { done: 150, total: 150, is_unpacking: true });
    }
}
