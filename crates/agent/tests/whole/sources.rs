//! Credentials from other places (kruise D33), and places that may not be read (kruise S4).

use std::sync::Arc;
use std::time::Duration;

use prewarm_agent::secrets::KubeSecrets;
use prewarm_credentials::{Chain, Plugins};
use serde_json::json;

use crate::node::{CONFIG_NAMESPACE, Node, image, image_of, policy, tag, with, with_secrets};

const NAME: &str = "reg.example/app";
const APP: &str = "reg.example/app:1";

/// A plugin as kubelets run it: it reads the request and answers with a credential.
const SCRIPT: &str = r#"
read request
case "$request" in *reg.example/app*) ;; *) exit 1 ;; esac
echo '{"apiVersion":"credentialprovider.kubelet.k8s.io/v1","kind":"CredentialProviderResponse",
"cacheKeyType":"Registry","cacheDuration":"10m","auth":{"reg.example":{"username":"node","password":"from-plugin"}}}'
"#;

#[tokio::test]
async fn a_plugin_of_the_kubelet_gives_what_no_secret_has() {
    // In real time, because the plugin is a real program.
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/bin/sh", folder.path().join("plugin")).unwrap();
    let config = folder.path().join("config.yaml");
    let script = json!(SCRIPT);
    let text = format!(
        "apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders:\n- name: plugin\n  \
         matchImages: [reg.example]\n  defaultCacheDuration: 10m\n  \
         apiVersion: credentialprovider.kubelet.k8s.io/v1\n  args: ['-c', {script}]\n"
    );
    std::fs::write(&config, text).unwrap();
    let plugins = Plugins::load(&config, folder.path(), Duration::from_secs(30)).unwrap();
    let mut node = Node::new();
    let secrets = KubeSecrets::new(node.client.clone(), CONFIG_NAMESPACE.to_owned());
    node.credentials = Some(Arc::new(Chain::new(vec![Arc::new(secrets), Arc::new(plugins)])));
    node.fake.image(APP).needs("node", "from-plugin");
    node.ask(json!({ NAME: image(&["1"]) })).await;
    node.start();
    let status = node.settled(1).await;
    assert_eq!(status.succeeded, 1, "{status:?}");
    assert_eq!(node.fake.calls()[0].username.as_deref(), Some("node"));
}

/// Secrets of a cluster that lets nobody read them.
fn forbidden() -> KubeSecrets {
    let refuse = tower::service_fn(async |_request: http::Request<kube::client::Body>| {
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403,
            "message": "secrets is forbidden",
        });
        let body = kube::client::Body::from(status.to_string().into_bytes());
        Ok::<_, std::convert::Infallible>(http::Response::builder().status(403).body(body).unwrap())
    });
    KubeSecrets::new(kube::Client::new(refuse, "default"), CONFIG_NAMESPACE.to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_may_not_be_read_is_reported_with_the_namespace_that_may() {
    let mut node = Node::new();
    node.credentials = Some(Arc::new(forbidden()));
    node.fake.image(APP).needs("robot", "hunter2");
    let entry = policy(tag("1"), &json!({ "backoffLimit": 0 }));
    let secrets = json!({ "pullSecrets": [{ "namespace": "shop", "name": "pull" }] });
    node.ask(json!({ NAME: with(image_of(vec![entry]), &secrets) })).await;
    node.start();
    node.settled(1).await;
    let message = node.tag(NAME, "1").await.message.unwrap();
    let wanted = "credentials: secret shop/pull may not be read by the agent; put it into namespace \
                  kruise-daemon-config; give a pull secret";
    assert!(message.contains(wanted), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_may_not_be_read_keeps_no_public_image_away() {
    let mut node = Node::new();
    node.credentials = Some(Arc::new(forbidden()));
    node.fake.image(APP);
    node.ask(json!({ NAME: with_secrets(image(&["1"]), &["pull"]) })).await;
    node.start();
    assert_eq!(node.settled(1).await.succeeded, 1);
}
