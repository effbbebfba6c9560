//! Secrets with registry credentials.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DeleteParams, ObjectMeta, PostParams};
use prewarm_api::names::SECRET_REFERENCES_ANNOTATION;
use serde_json::{Value, json};

use super::{CONFIG_NAMESPACE, Node};

/// The config of `kubectl create secret docker-registry` for one registry.
pub fn docker_config(registry: &str, user: &str, password: &str) -> Value {
    json!({ "auths": { registry: { "username": user, "password": password } } })
}

impl Node {
    /// Makes a Secret in the config namespace, or replaces it. It serves the job `default/job`, and people.
    pub async fn secret(&self, name: &str, config: &Value) {
        self.raw_secret(name, config.to_string().as_bytes()).await;
    }

    /// Makes a copy that serves the job with this namespace and name.
    pub async fn copy(&self, name: &str, served: &str, config: &Value) {
        self.put_secret(name, served, config.to_string().as_bytes()).await;
    }

    /// Makes a Secret that holds these bytes.
    pub async fn raw_secret(&self, name: &str, config: &[u8]) {
        self.put_secret(name, "default/job", config).await;
    }

    async fn put_secret(&self, name: &str, served: &str, config: &[u8]) {
        let api = Api::<Secret>::namespaced(self.client.clone(), CONFIG_NAMESPACE);
        if api.get_opt(name).await.unwrap().is_some() {
            api.delete(name, &DeleteParams::default()).await.unwrap();
        }
        let data = [(".dockerconfigjson".to_owned(), ByteString(config.to_vec()))];
        let secret = Secret {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                annotations: Some([(SECRET_REFERENCES_ANNOTATION.to_owned(), served.to_owned())].into()),
                ..ObjectMeta::default()
            },
            type_: Some("kubernetes.io/dockerconfigjson".to_owned()),
            data: Some(data.into()),
            ..Secret::default()
        };
        api.create(&PostParams::default(), &secret).await.unwrap();
    }
}

/// An image's entry that names these Secrets of the config namespace.
pub fn with_secrets(image: Value, secrets: &[&str]) -> Value {
    let reference = |name: &&str| json!({ "namespace": CONFIG_NAMESPACE, "name": name });
    super::with(image, &json!({ "pullSecrets": secrets.iter().map(reference).collect::<Vec<_>>() }))
}
