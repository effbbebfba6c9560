//! Puts definitions on a server and waits until it serves them.

use anyhow::Context as _;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, ResourceExt as _};
use prewarm_testkit::wait;

/// Applies the definitions; those that are already there are brought up to date.
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
            let is_served = conditions.iter().any(|one| one.type_ == "Established" && one.status == "True");
            Ok(is_served.then_some(()))
        })
        .await?;
    }
    Ok(())
}
