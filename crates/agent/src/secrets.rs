//! The Secrets that tasks name, read at every attempt: a Secret that was corrected a moment ago counts at once.

use futures::FutureExt as _;
use futures::future::{BoxFuture, join_all};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use prewarm_api::kruise::SecretReference;
use prewarm_credentials::source::fingerprint;
use prewarm_credentials::{CredentialRequest, CredentialSource, Found, Keyring};

/// How many Secrets of one task are read; more only cost the API server.
const MAX_SECRETS: usize = 64;

/// Reads Secrets through the Kubernetes API.
pub struct KubeSecrets {
    client: Client,
    config_namespace: String,
}

impl KubeSecrets {
    /// Advice names `config_namespace`, the one that the shipped role opens.
    pub fn new(client: Client, config_namespace: String) -> Self {
        Self { client, config_namespace }
    }

    async fn read(&self, reference: &SecretReference) -> Result<Secret, String> {
        let namespace = reference.namespace.as_deref().unwrap_or(&self.config_namespace);
        let name = reference.name.as_deref().unwrap_or_default();
        if name.is_empty() {
            return Err("an entry of pullSecrets has no name".to_owned());
        }
        let api: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        match api.get_opt(name).await {
            Ok(Some(secret)) => Ok(secret),
            Ok(None) => Err(format!("secret {namespace}/{name} does not exist")),
            Err(kube::Error::Api(status)) if status.code == 403 => Err(format!(
                "secret {namespace}/{name} may not be read by the agent; put it into namespace {}",
                self.config_namespace
            )),
            // The error's own text may quote the answer, and an answer may hold the Secret.
            Err(kube::Error::Api(status)) => Err(format!(
                "secret {namespace}/{name} could not be read: the API server answered {}",
                status.code
            )),
            Err(_) => {
                Err(format!("secret {namespace}/{name} could not be read: the API server cannot be reached"))
            }
        }
    }
}

impl CredentialSource for KubeSecrets {
    fn credentials<'a>(&'a self, request: &'a CredentialRequest) -> BoxFuture<'a, Found> {
        async move {
            let wanted = request.secrets.iter().take(MAX_SECRETS);
            let answers = join_all(wanted.map(|reference| self.read(reference))).await;
            let mut found = Found { fingerprint: fingerprint(contents(&answers)), ..Found::default() };
            let mut secrets = Vec::new();
            for answer in answers {
                match answer {
                    Ok(secret) => secrets.push(Named::from(secret)),
                    Err(problem) => found.problems.push(problem),
                }
            }
            let parts =
                secrets.iter().map(|secret| (secret.name.as_str(), secret.kind.as_str(), &secret.data));
            let (keyring, problems) = Keyring::from_secrets(parts);
            found.credentials = keyring.matching(&request.image);
            found.problems.extend(problems);
            found
        }
        .boxed()
    }

    fn name(&self) -> &'static str {
        "secrets"
    }
}

/// What a keyring needs of a Secret.
struct Named {
    name: String,
    kind: String,
    data: std::collections::BTreeMap<String, Vec<u8>>,
}

impl From<Secret> for Named {
    fn from(secret: Secret) -> Self {
        let (namespace, name) =
            (secret.metadata.namespace.unwrap_or_default(), secret.metadata.name.unwrap_or_default());
        let data = secret.data.unwrap_or_default().into_iter().map(|(key, value)| (key, value.0)).collect();
        Self { name: format!("{namespace}/{name}"), kind: secret.type_.unwrap_or_default(), data }
    }
}

/// What a Secret holds, by key.
type Content<'a> = Vec<(&'a String, &'a Vec<u8>)>;

/// What the answers hold, for telling a changed Secret from an unchanged one.
fn contents(answers: &[Result<Secret, String>]) -> Vec<Option<Content<'_>>> {
    answers.iter().map(|answer| answer.as_ref().ok().map(content)).collect()
}

fn content(secret: &Secret) -> Content<'_> {
    secret.data.iter().flatten().map(|(key, value)| (key, &value.0)).collect()
}
