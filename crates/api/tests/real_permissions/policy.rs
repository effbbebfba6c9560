//! The policy that ties an agent to its node.

use anyhow::ensure;
use kube::Api;
use kube::api::{Patch, PatchParams};
use prewarm_api::kruise::NodeImage;
use prewarm_api::permission::{AGENT, SYSTEM_NAMESPACE};
use serde_json::json;

use crate::cluster::{self, refusal, status};

pub async fn an_agent_writes_the_status_of_its_own_node_only() -> anyhow::Result<()> {
    let server = cluster::start().await?;
    cluster::add_node(&server, "own").await?;
    cluster::add_node(&server, "other").await?;
    let agent = cluster::agent_on(&server, "own").await?;
    cluster::policy_is_in_force(&agent, "other").await?;
    let images = Api::<NodeImage>::all(agent);

    let written = images.patch_status("own", &PatchParams::default(), &status(3)).await?;
    ensure!(written.status.is_some_and(|status| status.desired == 3));

    let foreign = refusal(images.patch_status("other", &PatchParams::default(), &status(3)).await);
    let (code, words) = foreign.unwrap_or_default();
    let expected = "the agent of node own may not write the status of NodeImage other";
    ensure!(code == 403 && words.contains(expected), "{code} {words}");

    let apply = PatchParams { field_manager: Some("agent".into()), force: true, ..PatchParams::default() };
    let object = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "NodeImage", "metadata": {"name": "other"},
                        "status": {"desired": 3, "succeeded": 0, "failed": 0, "pulling": 0}});
    let other_ways: [(&PatchParams, Patch<serde_json::Value>); 2] = [
        (&apply, Patch::Apply(object)),
        (&PatchParams { dry_run: true, ..PatchParams::default() }, status(3)),
    ];
    for (params, patch) in other_ways {
        let answer = refusal(images.patch_status("other", params, &patch).await);
        ensure!(answer.as_ref().is_some_and(|(code, _)| *code == 403), "{answer:?}");
    }
    let other = Api::<NodeImage>::all(server.client()?).get("other").await?;
    ensure!(other.status.is_none_or(|status| status.desired == 0), "nothing was written");
    Ok(())
}

pub async fn a_token_that_names_no_node_writes_no_status() -> anyhow::Result<()> {
    let server = cluster::start().await?;
    cluster::add_node(&server, "own").await?;
    let unbound = server.client_of_service_account(SYSTEM_NAMESPACE, AGENT.name).await?;
    cluster::policy_is_in_force(&unbound, "own").await?;
    let images = Api::<NodeImage>::all(unbound);
    let (code, words) =
        refusal(images.patch_status("own", &PatchParams::default(), &status(1)).await).unwrap_or_default();
    ensure!(code == 403 && words.contains("the token does not name a node"), "{code} {words}");

    // The policy is only about the agent and does not apply to the administrator.
    let administrator = Api::<NodeImage>::all(server.client()?);
    administrator.patch_status("own", &PatchParams::default(), &status(1)).await?;
    Ok(())
}
