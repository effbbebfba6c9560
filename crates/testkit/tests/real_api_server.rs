//! What a test may expect of the test kit's API server.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, ServiceAccount};
use kube::api::{DeleteParams, ListParams, ObjectMeta, PostParams};
use kube::{Api, Client};
use prewarm_testkit::{ApiServer, real_tests, wait};

real_tests! {
    a_config_map_is_stored_changed_and_deleted,
    namespaces_of_two_tests_differ,
    a_user_without_rights_is_refused,
    a_group_brings_its_rights,
    a_service_account_holds_a_real_token,
    kubectl_reads_the_kubeconfig,
    a_kubeconfig_of_another_user_has_only_its_rights,
    a_token_of_a_service_account_names_its_node_and_ends_with_it,
    a_killed_server_comes_back_with_its_data,
    a_restarted_etcd_keeps_its_data,
    a_frozen_server_answers_after_the_thaw,
    chosen_controllers_run,
}

fn config_map(name: &str, value: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..Default::default() },
        data: Some(BTreeMap::from([("key".to_owned(), value.to_owned())])),
        ..Default::default()
    }
}

/// The HTTP status of a refusal.
fn refusal<T>(answer: kube::Result<T>) -> Option<u16> {
    match answer {
        Err(kube::Error::Api(status)) => Some(status.code),
        _ => None,
    }
}

async fn count_namespaces(client: Client) -> kube::Result<usize> {
    Ok(Api::<Namespace>::all(client).list(&ListParams::default()).await?.items.len())
}

async fn a_config_map_is_stored_changed_and_deleted() -> anyhow::Result<()> {
    let server = ApiServer::shared().await?;
    let namespace = server.namespace().await?;
    let maps = Api::<ConfigMap>::namespaced(server.client()?, &namespace);
    let mut stored = maps.create(&PostParams::default(), &config_map("one", "before")).await?;
    stored.data = config_map("one", "after").data;
    maps.replace("one", &PostParams::default(), &stored).await?;
    ensure!(maps.get("one").await?.data == config_map("one", "after").data);
    maps.delete("one", &DeleteParams::default()).await?;
    ensure!(refusal(maps.get("one").await) == Some(404));
    Ok(())
}

async fn namespaces_of_two_tests_differ() -> anyhow::Result<()> {
    let server = ApiServer::shared().await?;
    ensure!(server.namespace().await? != server.namespace().await?);
    Ok(())
}

async fn a_user_without_rights_is_refused() -> anyhow::Result<()> {
    let server = ApiServer::shared().await?;
    let client = server.client_as("jane", &["developers"])?;
    ensure!(refusal(count_namespaces(client).await) == Some(403));
    Ok(())
}

async fn a_group_brings_its_rights() -> anyhow::Result<()> {
    let server = ApiServer::shared().await?;
    let client = server.client_as("jane", &["developers", "system:masters"])?;
    ensure!(count_namespaces(client).await? > 0);
    Ok(())
}

async fn a_service_account_holds_a_real_token() -> anyhow::Result<()> {
    let server = ApiServer::shared().await?;
    let namespace = server.namespace().await?;
    let accounts = Api::<ServiceAccount>::namespaced(server.client()?, &namespace);
    let account = ServiceAccount {
        metadata: ObjectMeta { name: Some("agent".to_owned()), ..Default::default() },
        ..Default::default()
    };
    accounts.create(&PostParams::default(), &account).await?;
    let client = server.client_of_service_account(&namespace, "agent").await?;
    ensure!(client.apiserver_version().await?.minor == "36");
    ensure!(refusal(count_namespaces(client).await) == Some(403));
    Ok(())
}

async fn kubectl_reads_the_kubeconfig() -> anyhow::Result<()> {
    let server = ApiServer::shared().await?;
    let version = server.kubectl(["version", "--output=json"]).await?;
    ensure!(version.matches("v1.36.").count() == 2, "client and server: {version}");
    let namespace = server.namespace().await?;
    let listed = server.kubectl(["get", "namespaces", "--output=name"]).await?;
    ensure!(listed.contains(&format!("namespace/{namespace}\n")), "{listed}");
    Ok(())
}

async fn a_kubeconfig_of_another_user_has_only_its_rights() -> anyhow::Result<()> {
    let server = ApiServer::shared().await?;
    let kubeconfig = server.kubeconfig_as("system:kube-scheduler", None)?;
    let kubeconfig = kubeconfig.to_str().context("a plain path")?;
    server.kubectl(["--kubeconfig", kubeconfig, "get", "nodes"]).await?;
    let refused = server.kubectl(["--kubeconfig", kubeconfig, "get", "secrets"]).await;
    ensure!(refused.is_err_and(|error| error.to_string().contains("system:kube-scheduler")));
    Ok(())
}

async fn a_token_of_a_service_account_names_its_node_and_ends_with_it() -> anyhow::Result<()> {
    let server = ApiServer::shared().await?;
    let namespace = server.namespace().await?;
    server.kubectl(["create", "serviceaccount", "agent", "--namespace", &namespace]).await?;
    ensure!(server.kubeconfig_of_service_account(&namespace, "agent", "bound-1").await.is_err());
    let nodes = Api::<Node>::all(server.client()?);
    let node = Node {
        metadata: ObjectMeta { name: Some("bound-1".to_owned()), ..Default::default() },
        ..Default::default()
    };
    nodes.create(&PostParams::default(), &node).await?;
    let kubeconfig = server.kubeconfig_of_service_account(&namespace, "agent", "bound-1").await?;
    let kubeconfig = kubeconfig.to_str().context("a plain path")?;
    let who = async || server.kubectl(["--kubeconfig", kubeconfig, "auth", "whoami", "--output=json"]).await;
    let person = who().await?;
    ensure!(person.contains(&format!("system:serviceaccount:{namespace}:agent")), "{person}");
    ensure!(
        person.contains("authentication.kubernetes.io/node-name") && person.contains("bound-1"),
        "{person}"
    );
    ensure!(
        server.kubectl(["--kubeconfig", kubeconfig, "get", "secrets"]).await.is_err(),
        "it has no rights"
    );
    nodes.delete("bound-1", &DeleteParams::default()).await?;
    wait::until("the end of the token", async || Ok(who().await.is_err().then_some(()))).await
}

async fn a_killed_server_comes_back_with_its_data() -> anyhow::Result<()> {
    let server = ApiServer::start().await?;
    let maps = Api::<ConfigMap>::namespaced(server.client()?, "default");
    maps.create(&PostParams::default(), &config_map("kept", "value")).await?;
    server.apiserver.kill()?;
    ensure!(maps.get("kept").await.is_err());
    server.apiserver.spawn()?;
    server.ready().await?;
    ensure!(maps.get("kept").await?.data == config_map("kept", "value").data);
    server.restart().await?;
    ensure!(maps.get("kept").await?.data == config_map("kept", "value").data);
    Ok(())
}

async fn a_restarted_etcd_keeps_its_data() -> anyhow::Result<()> {
    let server = ApiServer::start().await?;
    let maps = Api::<ConfigMap>::namespaced(server.client()?, "default");
    maps.create(&PostParams::default(), &config_map("kept", "value")).await?;
    server.etcd.kill()?;
    ensure!(server.etcd.check().is_err());
    server.etcd.spawn()?;
    let kept = wait::until("etcd", async || Ok(maps.get("kept").await.ok())).await?;
    ensure!(kept.data == config_map("kept", "value").data);
    Ok(())
}

async fn a_frozen_server_answers_after_the_thaw() -> anyhow::Result<()> {
    let server = ApiServer::start().await?;
    let client = server.client()?;
    server.apiserver.freeze()?;
    let while_frozen = tokio::time::timeout(Duration::from_millis(500), client.apiserver_version()).await;
    ensure!(while_frozen.is_err(), "a frozen server answered");
    server.apiserver.thaw()?;
    server.ready().await?;
    client.apiserver_version().await?;
    Ok(())
}

async fn chosen_controllers_run() -> anyhow::Result<()> {
    let server = ApiServer::configure().controllers(&["serviceaccount-controller"]).start().await?;
    let accounts = Api::<ServiceAccount>::namespaced(server.client()?, "default");
    wait::until("the default service account", async || Ok(accounts.get_opt("default").await?)).await?;
    Ok(())
}
