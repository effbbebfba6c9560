//! What is recognised as ofen's: its controller, its program on the nodes, and the Lease by which one of its controllers leads.

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt as _;

use crate::check::facts::Asked;

/// The Lease of its controller, in the controller's namespace.
pub const LEASE: &str = "c4cf5e14.ofen.cybozu.io";
/// Where it is installed unless somebody says otherwise.
const NAMESPACE: &str = "ofen-system";
/// What names, labels and images of it have.
const WORD: &str = "ofen";

pub fn is_controller(deployment: &Deployment) -> bool {
    is_its(&deployment.metadata, deployment.spec.as_ref().map(|spec| &spec.template))
}

pub fn is_daemon(daemon: &DaemonSet) -> bool {
    is_its(&daemon.metadata, daemon.spec.as_ref().map(|spec| &spec.template))
}

/// The namespace of its controller.
pub fn namespace(deployments: &Asked<Vec<Deployment>>) -> String {
    let found = deployments.as_ref().ok().and_then(|all| all.first()?.namespace());
    found.unwrap_or_else(|| NAMESPACE.to_owned())
}

fn is_its(metadata: &ObjectMeta, template: Option<&PodTemplateSpec>) -> bool {
    // A part of a word is none: `often` is not ofen.
    let has_word = |text: &str| text.split(|one: char| !one.is_ascii_alphanumeric()).any(|word| word == WORD);
    let labels = metadata.labels.iter().flatten();
    let mut labels =
        labels.filter(|(name, _)| name.starts_with("app.kubernetes.io/")).map(|(_, value)| value);
    let containers =
        template.and_then(|template| template.spec.as_ref()).into_iter().flat_map(|spec| &spec.containers);
    let mut images = containers.filter_map(|container| container.image.as_deref());
    metadata.name.as_deref().is_some_and(has_word)
        || labels.any(|value| has_word(value))
        || images.any(|image| has_word(last_part(image)))
}

/// The last part of an image's repository, with its tag.
fn last_part(image: &str) -> &str {
    let image = image.split('@').next().unwrap_or_default();
    image.rsplit('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn deployment(name: &str, label: &str, image: &str) -> Deployment {
        serde_json::from_value(json!({
            "metadata": {"name": name, "labels": {"app.kubernetes.io/name": label}},
            "spec": {"selector": {}, "template": {"spec": {"containers": [{"name": "manager", "image": image}]}}},
        }))
        .unwrap()
    }

    #[test]
    fn its_controller_is_known_by_name_label_or_image() {
        for (name, label, image) in [
            ("ofen-imageprefetch-controller", "x", "registry.example/mirror:1"),
            ("warmer", "ofen", "registry.example/mirror:1"),
            ("warmer", "x", "ghcr.io/cybozu-go/ofen:0.8.2"),
            ("warmer", "x", "ghcr.io/cybozu-go/ofen@sha256:0123"),
        ] {
            assert!(is_controller(&deployment(name, label, image)), "{name} {label} {image}");
        }
        assert!(!is_controller(&deployment("soften", "often", "registry.example/ofen/web:1")));
    }
}
