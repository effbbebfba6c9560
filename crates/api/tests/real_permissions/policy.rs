//! The policy that ties an agent to its node.

use anyhow::ensure;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::events::v1::Event;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use prewarm_api::kruise::NodeImage;
use prewarm_api::permission::{AGENT, SYSTEM_NAMESPACE};
use prewarm_testkit::wait;
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

/// A node that was made again under its name is another one, and a token of the old one is worth nothing there.
pub async fn an_agent_writes_to_no_namesake_of_its_node() -> anyhow::Result<()> {
    let server = cluster::start().await?;
    cluster::add_node(&server, "own").await?;
    cluster::add_node(&server, "other").await?;
    let agent = cluster::agent_on(&server, "own").await?;
    cluster::policy_is_in_force(&agent, "other").await?;
    let (administrator, images) = (Api::<NodeImage>::all(server.client()?), Api::<NodeImage>::all(agent));
    let owned_by = |uid: &str| {
        let owner = json!({"apiVersion": "v1", "kind": "Node", "name": "own", "uid": uid});
        Patch::Merge(json!({"metadata": {"ownerReferences": [owner]}}))
    };
    let node = Api::<Node>::all(server.client()?).get("own").await?;
    administrator.patch("own", &PatchParams::default(), &owned_by(&node.uid().unwrap_or_default())).await?;
    images.patch_status("own", &PatchParams::default(), &status(1)).await?;
    administrator.patch("own", &PatchParams::default(), &owned_by("another")).await?;
    let answer = refusal(images.patch_status("own", &PatchParams::default(), &status(2)).await);
    let (code, words) = answer.unwrap_or_default();
    ensure!(code == 403 && words.contains("belongs to another node of the same name"), "{code} {words}");
    Ok(())
}

pub async fn an_agent_writes_events_as_its_own_node_only() -> anyhow::Result<()> {
    let server = cluster::start().await?;
    cluster::add_node(&server, "own").await?;
    let agent = cluster::agent_on(&server, "own").await?;
    let own = Api::<Event>::namespaced(agent, "default");
    let event = |name: &str, instance: &str, kind: &str, about: &str, note: &str| {
        json!({
            "metadata": {"name": name, "namespace": "default"}, "action": "PullImage", "reason": "PullImageFailed",
            "eventTime": "2026-01-01T00:00:00.000000Z", "type": "Warning", "note": note,
            "reportingController": "prewarm-agent", "reportingInstance": instance,
            "regarding": {"apiVersion": "apps.kruise.io/v1beta1", "kind": kind, "name": about, "namespace": "default"},
        })
    };
    let create = async |event: serde_json::Value| cluster::create(&own, event).await;
    wait::until("the policy to be in force", async || {
        let dry = PostParams { dry_run: true, ..Default::default() };
        let foreign = serde_json::from_value(event("probe", "other", "NodeImage", "other", "x"))?;
        Ok(own.create(&dry, &foreign).await.is_err().then_some(()))
    })
    .await?;
    // What the real agent writes.
    create(event("a", "own", "NodeImage", "own", "cannot pull web:v1")).await?;
    create(event("b", "own", "ImagePullJob", "warm", "on node own: cannot pull web:v1")).await?;
    let series = json!({"series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:01.000000Z"}});
    own.patch("a", &PatchParams::default(), &Patch::Merge(&series)).await?;

    let forged = [
        event("c", "other", "NodeImage", "own", "cannot pull web:v1"),
        event("c", "own", "NodeImage", "other", "cannot pull web:v1"),
        event("c", "own", "ImagePullJob", "warm", "on node other: cannot pull web:v1"),
        event("c", "own", "Node", "own", "on node own: it burns"),
    ];
    for mut forged in forged {
        let text = forged.to_string();
        if forged["regarding"]["kind"] == "Node" {
            forged["regarding"]["apiVersion"] = json!("v1");
        }
        let forged: Event = serde_json::from_value(forged)?;
        let (code, words) = refusal(own.create(&PostParams::default(), &forged).await).unwrap_or_default();
        ensure!(code == 403, "{text}: {code} {words}");
    }
    let administrator = Api::<Event>::namespaced(server.client()?, "default");
    cluster::create(&administrator, event("d", "other", "NodeImage", "other", "cannot pull web:v1")).await?;
    let answer = refusal(own.patch("d", &PatchParams::default(), &Patch::Merge(&series)).await);
    ensure!(answer.as_ref().is_some_and(|(code, _)| *code == 403), "{answer:?}");
    Ok(())
}
