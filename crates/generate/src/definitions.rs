//! The definitions: each as a file of its own, and once more as a part of the chart.

use anyhow::{Context as _, Result, bail};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use prewarm_api::crd;

use crate::roles::value_of;

/// kubectl keeps the last applied object in an annotation, and annotations have a limit.
const MAX_BYTES: usize = 200_000;
/// What every definition has, on a line of its own at this depth and nowhere else.
const METADATA: &str = "\nmetadata:\n";

/// The definition as `kubectl apply` takes it.
pub fn plain(crd: &CustomResourceDefinition) -> Result<String> {
    let text = crd::to_yaml(crd);
    if text.len() > MAX_BYTES {
        bail!("{} has {} bytes; kubectl can apply at most {MAX_BYTES}", crd::file_name(crd), text.len());
    }
    Ok(text)
}

/// The same as a template. Helm leaves the definition where it is when the release goes: with a definition go all its objects.
pub fn template(crd: &CustomResourceDefinition) -> Result<String> {
    let text = plain(crd)?;
    let (before, after) = text.split_once(METADATA).context("a definition has metadata")?;
    if text.contains("{{") || after.contains(METADATA) || after.starts_with("  annotations:") {
        bail!("{} cannot be made a template", crd::file_name(crd));
    }
    let keep = "  annotations:\n    helm.sh/resource-policy: keep\n";
    let condition = condition(&crd.spec.names.kind);
    Ok(format!("{{{{- if {condition} }}}}\n{before}{METADATA}{keep}{after}{{{{- end }}}}\n"))
}

/// The values that leave a definition out. NodeImages and ImagePullJobs are what everything is about.
fn condition(kind: &str) -> String {
    let own = match kind {
        "NodeImage" | "ImagePullJob" => return ".Values.crds.install".to_owned(),
        // An ImagePrefetch is carried out by NodeImageSets.
        "NodeImageSet" => "ImagePrefetch",
        kind => kind,
    };
    format!("and .Values.crds.install .Values.kinds.{}", value_of(own))
}
