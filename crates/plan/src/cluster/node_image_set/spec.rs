//! The name, the labels and the spec of a NodeImageSet (ofen 1.3, 1.6).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use prewarm_api::names::{NODE_NAME_LABEL, OWNER_NAME_LABEL, OWNER_NAMESPACE_LABEL};
use prewarm_api::ofen::{NodeImageSet, NodeImageSetSpec};

use crate::cluster::image_prefetch::policy;
use crate::cluster::image_prefetch::record::Prefetch;
use crate::demand::Role;
use crate::hash::sha1_digits;

/// How many bytes of the hash are in a name.
const HASH_BYTES: usize = 4;
/// The longest value of a label. What is longer is left out: the name says it.
const LONGEST_LABEL: usize = 63;
/// The longest name of an object. The names of longer ImagePrefetches are cut.
const LONGEST_NAME: usize = 253;

/// What the NodeImageSet of an ImagePrefetch on a node is called.
pub fn name(prefetch: &str, namespace: &str, node: &str) -> String {
    let digits = sha1_digits(&[prefetch, namespace, node].join("\0"), HASH_BYTES);
    let room = LONGEST_NAME - "nodeimageset--".len() - digits.len();
    let stem: String = prefetch.chars().take(room).collect();
    format!("nodeimageset-{}-{digits}", stem.trim_end_matches(['.', '-']))
}

/// The NodeImageSet of an ImagePrefetch on a node.
pub fn new(prefetch: &Prefetch, node: &str, role: Role) -> NodeImageSet {
    let key = &prefetch.key;
    let labels =
        [(OWNER_NAMESPACE_LABEL, &*key.namespace), (OWNER_NAME_LABEL, &*key.name), (NODE_NAME_LABEL, node)];
    let labels = labels.into_iter().filter(|(_, value)| value.len() <= LONGEST_LABEL);
    let mut set = NodeImageSet::new(&name(&key.name, &key.namespace, node), wanted(prefetch, node, role));
    set.metadata = ObjectMeta {
        labels: Some(labels.map(|(label, value)| (label.to_owned(), value.to_owned())).collect()),
        ..set.metadata
    };
    set
}

/// What it says.
pub fn wanted(prefetch: &Prefetch, node: &str, role: Role) -> NodeImageSetSpec {
    let spec = &prefetch.object.spec;
    NodeImageSetSpec {
        images: spec.images.clone(),
        registry_policy: policy(role),
        node_name: node.to_owned(),
        image_pull_secrets: spec.image_pull_secrets.clone(),
        image_prefetch_generation: prefetch.object.metadata.generation,
        image_download_retry_limit: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_clients_know() {
        assert_eq!(name("sample", "default", "worker1"), "nodeimageset-sample-cf546b4d");
        assert_eq!(
            name("imageprefetch-sample", "team-a", "node-0"),
            "nodeimageset-imageprefetch-sample-a7896792"
        );
        assert_eq!(name("a", "b", "c"), "nodeimageset-a-52aa7158");
    }

    #[test]
    fn a_long_name_is_cut_and_stays_a_name() {
        let long = name(&"p".repeat(253), "default", "worker1");
        assert_eq!(long.len(), LONGEST_NAME);
        assert_ne!(long, name(&"p".repeat(253), "default", "worker2"));
    }
}
