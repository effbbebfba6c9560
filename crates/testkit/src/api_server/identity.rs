//! Identities for the API server: the administrator, any user or group, and service accounts.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Node, ServiceAccount};
use kube::api::PostParams;
use kube::config::AuthInfo;
use kube::{Api, Client, Config};
use serde_json::{Value, json};

use super::ApiServer;
use crate::pki::{Pair, Pki};

impl ApiServer {
    /// A client of the administrator. Create one per test: its connections belong to the async runtime on which it was
    /// created.
    pub fn client(&self) -> anyhow::Result<Client> {
        self.client_with(self.administrator())
    }

    /// A client of this user, with the rights that RBAC gives to the user and its groups, and no others.
    ///
    /// It is the administrator who impersonates the user: the server authorizes and admits the request as that user.
    pub fn client_as(&self, user: &str, groups: &[&str]) -> anyhow::Result<Client> {
        self.client_with(AuthInfo {
            impersonate: Some(user.to_owned()),
            impersonate_groups: Some(groups.iter().map(ToString::to_string).collect()),
            ..self.administrator()
        })
    }

    /// A client with a real token of an existing service account.
    pub async fn client_of_service_account(&self, namespace: &str, name: &str) -> anyhow::Result<Client> {
        let token = self.token(namespace, name, None).await?;
        self.client_with(AuthInfo { token: Some(token.into()), ..Default::default() })
    }

    /// A kubeconfig with a real token of an existing service account, as a pod on this node would have it: policies see
    /// the node's name in it, and it becomes invalid once the node is gone.
    pub async fn kubeconfig_of_service_account(
        &self,
        namespace: &str,
        name: &str,
        node: &str,
    ) -> anyhow::Result<PathBuf> {
        let token = self.token(namespace, name, Some(node)).await?;
        let path = self.directory.join(format!("{namespace}-{name}-{node}.kubeconfig"));
        write_kubeconfig(&path, &self.address, &self.pki, &json!({ "token": token }))?;
        Ok(path)
    }

    async fn token(&self, namespace: &str, name: &str, node: Option<&str>) -> anyhow::Result<String> {
        let accounts = Api::<ServiceAccount>::namespaced(self.client()?, namespace);
        let bound_object_ref = match node {
            None => None,
            Some(node) => Some(self.bound_to(node).await?),
        };
        let spec =
            TokenRequestSpec { expiration_seconds: Some(3600), bound_object_ref, ..Default::default() };
        let request = TokenRequest { spec, ..Default::default() };
        let answer = accounts
            .create_token_request(name, &PostParams::default(), &request)
            .await
            .with_context(|| format!("asking for a token of {namespace}/{name}"))?;
        Ok(answer.status.context("the API server issued no token")?.token)
    }

    async fn bound_to(&self, node: &str) -> anyhow::Result<BoundObjectReference> {
        let found = Api::<Node>::all(self.client()?).get(node).await;
        let found =
            found.with_context(|| format!("a token can only be bound to an existing node, not to {node}"))?;
        Ok(BoundObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Node".to_owned()),
            name: Some(node.to_owned()),
            uid: found.metadata.uid,
        })
    }

    /// The administrator's kubeconfig, for programs that read one.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// A kubeconfig with a client certificate of this user, and of one group if given.
    pub fn kubeconfig_as(&self, user: &str, group: Option<&str>) -> anyhow::Result<PathBuf> {
        let file = user.replace(':', "-");
        let pair = self.pki.client(&file, user, group)?;
        let path = self.directory.join(format!("{file}.kubeconfig"));
        write_kubeconfig(&path, &self.address, &self.pki, &certificate(&pair))?;
        Ok(path)
    }

    /// The certificate by which clients recognise the server.
    pub(crate) fn authority_file(&self) -> PathBuf {
        self.pki.authority_file()
    }

    fn administrator(&self) -> AuthInfo {
        AuthInfo {
            client_certificate: Some(self.admin.certificate.display().to_string()),
            client_key: Some(self.admin.key.display().to_string()),
            ..Default::default()
        }
    }

    fn client_with(&self, auth_info: AuthInfo) -> anyhow::Result<Client> {
        let mut config = Config::new(self.address.parse().context("the server's address is no URL")?);
        config.root_cert = Some(vec![self.pki.authority_der()]);
        config.auth_info = auth_info;
        // A test wants to see the first answer of the server, not the third.
        config.default_retry = false;
        Client::try_from(config).context("making a client")
    }
}

/// A user with a client certificate, as a kubeconfig has it.
pub fn certificate(pair: &Pair) -> Value {
    json!({"client-certificate": pair.certificate, "client-key": pair.key})
}

/// Writes a kubeconfig with one context. It is JSON, which every YAML reader accepts.
pub fn write_kubeconfig(path: &Path, server: &str, pki: &Pki, user: &Value) -> anyhow::Result<()> {
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "bed", "cluster": {"server": server, "certificate-authority": pki.authority_file()}}],
        "users": [{"name": "user", "user": user}],
        "contexts": [{"name": "bed", "context": {"cluster": "bed", "user": "user"}}],
        "current-context": "bed",
    });
    fs::write(path, config.to_string()).with_context(|| format!("writing {}", path.display()))
}
