//! Installs definitions and waits until the server serves them, and installs what is shipped.

use std::fs;
use std::path::Path;

use ::http::Request;
use anyhow::Context as _;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, ResourceExt as _};

use crate::{ApiServer, wait};

/// The kinds of shipped objects that programs need before they start.
const RIGHTS: [&str; 8] = [
    "Namespace",
    "ServiceAccount",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
];
const DEFINITION: &str = "CustomResourceDefinition";

/// Applies `deploy/install.yaml` without the definitions.
pub async fn shipped(server: &ApiServer) -> anyhow::Result<()> {
    apply_shipped(server, |kind| kind != DEFINITION).await
}

/// Applies the namespaces, accounts, roles and policies of `deploy/install.yaml`: what the programs that a test starts
/// itself need.
pub async fn rights(server: &ApiServer) -> anyhow::Result<()> {
    apply_shipped(server, |kind| RIGHTS.contains(&kind)).await
}

async fn apply_shipped(server: &ApiServer, is_wanted: impl Fn(&str) -> bool) -> anyhow::Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/install.yaml");
    let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let kind =
        |document: &str| document.lines().find_map(|line| line.strip_prefix("kind: ").map(str::to_owned));
    let documents =
        text.split("\n---\n").filter(|document| kind(document).is_some_and(|kind| is_wanted(&kind)));
    let chosen = server.kubeconfig().with_file_name("shipped.yaml");
    fs::write(&chosen, documents.collect::<Vec<_>>().join("\n---\n"))?;
    server.kubectl(["apply", "--server-side", "--validate=strict", "-f", &chosen.to_string_lossy()]).await?;
    Ok(())
}

/// Applies the definitions. Existing ones are updated.
pub async fn definitions(client: &Client, crds: &[CustomResourceDefinition]) -> anyhow::Result<()> {
    let api = Api::<CustomResourceDefinition>::all(client.clone());
    for crd in crds {
        let params = PatchParams::apply("prewarm-tests").force();
        api.patch(&crd.name_any(), &params, &Patch::Apply(crd))
            .await
            .with_context(|| format!("applying {}", crd.name_any()))?;
    }
    for crd in crds {
        let name = crd.name_any();
        wait::until(&format!("{name} to be served"), async || {
            let status = api.get(&name).await?.status;
            let conditions = status.and_then(|status| status.conditions).unwrap_or_default();
            let is_established =
                conditions.iter().any(|one| one.type_ == "Established" && one.status == "True");
            Ok((is_established && is_served(client, crd).await).then_some(()))
        })
        .await?;
    }
    Ok(())
}

/// Whether the server lists objects of the kind in every version. This takes a moment after the definition is
/// established.
async fn is_served(client: &Client, crd: &CustomResourceDefinition) -> bool {
    for version in &crd.spec.versions {
        let path = format!("/apis/{}/{}/{}", crd.spec.group, version.name, crd.spec.names.plural);
        let request = Request::get(path).body(Vec::new()).expect("a fixed path is a valid request");
        if client.request_text(request).await.is_err() {
            return false;
        }
    }
    true
}
