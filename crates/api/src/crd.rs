//! The CustomResourceDefinitions of all seven kinds, generated from the Rust types and the table of rules.
//!
//! A type provides names, fields, docs, bounds and defaults; `rule` provides the CEL rules. This module only combines
//! the two into a file that Kubernetes 1.30 and later accepts.

mod assemble;
mod yaml;

use std::sync::OnceLock;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

pub use yaml::to_yaml;

use crate::{kruise, ofen};

/// All seven definitions, in the order in which they are listed everywhere.
pub fn all() -> &'static [CustomResourceDefinition] {
    static ALL: OnceLock<Vec<CustomResourceDefinition>> = OnceLock::new();
    ALL.get_or_init(|| {
        let both = &["v1alpha1", "v1beta1"];
        vec![
            assemble::definition(&kruise::ImagePullJob::crd(), both),
            assemble::definition(&kruise::ImageListPullJob::crd(), both),
            assemble::definition(&kruise::NodeImage::crd(), both),
            assemble::definition(&kruise::AdvancedCronJob::crd(), both),
            assemble::definition(&kruise::BroadcastJob::crd(), both),
            assemble::definition(&ofen::ImagePrefetch::crd(), &["v1"]),
            assemble::definition(&ofen::NodeImageSet::crd(), &["v1"]),
        ]
    })
}

/// The file name of a definition, as in `deploy/crds`.
pub fn file_name(crd: &CustomResourceDefinition) -> String {
    format!("{}_{}.yaml", crd.spec.group, crd.spec.names.plural)
}
