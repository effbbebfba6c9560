//! A server with everything in `deploy` applied as by a user, and agents on nodes with tokens as from a kubelet.

use anyhow::Context as _;
use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Node, Pod, ServiceAccount};
use kube::api::PostParams;
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, ResourceExt as _};
use prewarm_api::permission::{AGENT, SYSTEM_NAMESPACE};
use prewarm_api::{crd, kruise::NodeImage};
use prewarm_testkit::{ApiServer, wait};
use serde_json::{Value, json};

use prewarm_testkit::install;

/// Starts a server and applies the definitions, the roles, the policy and the programs.
pub async fn start() -> anyhow::Result<ApiServer> {
    let server = ApiServer::start().await?;
    install::definitions(&server.client()?, crd::all()).await?;
    install::shipped(&server).await?;
    Ok(server)
}

/// Creates a node, its NodeImage and an agent's pod on it.
pub async fn add_node(server: &ApiServer, node: &str) -> anyhow::Result<()> {
    let client = server.client()?;
    create::<Node>(&Api::all(client.clone()), json!({"metadata": {"name": node}})).await?;
    create::<NodeImage>(&Api::all(client.clone()), json!({"metadata": {"name": node}, "spec": {}})).await?;
    let pod = json!({
        "metadata": {"name": format!("agent-{node}")},
        "spec": {
            "nodeName": node,
            "serviceAccountName": AGENT.name,
            "containers": [{"name": "agent", "image": "agent"}],
        },
    });
    create::<Pod>(&Api::namespaced(client, SYSTEM_NAMESPACE), pod).await?;
    Ok(())
}

/// The agent of a node, with the token that its kubelet would mount.
pub async fn agent_on(server: &ApiServer, node: &str) -> anyhow::Result<Client> {
    let pod =
        Api::<Pod>::namespaced(server.client()?, SYSTEM_NAMESPACE).get(&format!("agent-{node}")).await?;
    let reference = BoundObjectReference {
        api_version: Some("v1".into()),
        kind: Some("Pod".into()),
        name: pod.metadata.name.clone(),
        uid: pod.uid(),
    };
    let spec = TokenRequestSpec { bound_object_ref: Some(reference), ..TokenRequestSpec::default() };
    let request = TokenRequest { spec, ..TokenRequest::default() };
    let accounts = Api::<ServiceAccount>::namespaced(server.client()?, SYSTEM_NAMESPACE);
    let answer = accounts.create_token_request(AGENT.name, &PostParams::default(), &request).await?;
    let token = answer.status.context("the server issued no token")?.token;

    let kubeconfig = Kubeconfig::read_from(server.kubeconfig())?;
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    config.auth_info = AuthInfo { token: Some(token.into()), ..AuthInfo::default() };
    Ok(Client::try_from(config)?)
}

/// Waits until a policy that was just applied takes effect, which takes the server a moment.
pub async fn policy_is_in_force(agent: &Client, foreign: &str) -> anyhow::Result<()> {
    let images = Api::<NodeImage>::all(agent.clone());
    wait::until("the policy to be in force", async || {
        let params = kube::api::PatchParams { dry_run: true, ..Default::default() };
        let answer = images.patch_status(foreign, &params, &status(1)).await;
        Ok(answer.is_err().then_some(()))
    })
    .await
}

/// A change of the status, as an agent sends it.
pub fn status(desired: i32) -> kube::api::Patch<Value> {
    let counts = json!({"desired": desired, "succeeded": 0, "failed": 0, "pulling": 0});
    kube::api::Patch::Merge(json!({"status": counts}))
}

pub async fn create<K>(api: &Api<K>, object: Value) -> anyhow::Result<K>
where
    K: Clone + serde::de::DeserializeOwned + serde::Serialize + std::fmt::Debug,
{
    let object: K = serde_json::from_value(object)?;
    Ok(api.create(&PostParams::default(), &object).await?)
}

/// The code and message, if the server refused.
pub fn refusal<T>(answer: Result<T, kube::Error>) -> Option<(u16, String)> {
    match answer {
        Err(kube::Error::Api(status)) => Some((status.code, status.message.clone())),
        Err(other) => Some((0, other.to_string())),
        Ok(_) => None,
    }
}
