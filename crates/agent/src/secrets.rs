//! The Secrets that tasks name, read at every attempt: a Secret that was corrected a moment ago counts at once.
//!
//! An image's Secrets are those of all jobs that want one of its tags. Whose they are is settled in [`parties`]: nobody is
//! served by the Secret of another (kruise W30).

mod parties;

use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _, stream};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use prewarm_api::kruise::SecretReference;
use prewarm_api::names::SECRET_MODE_BATCH;
use prewarm_credentials::{Beneficiary, CredentialRequest, CredentialSource, Found};
use prewarm_plan::agent::task::{PullSecret, Task};
use prewarm_process::client::limited;
use prewarm_process::watch::Crowd;

use parties::{Answer, chosen, found};

/// So many Secrets are read at once.
const READS_AT_ONCE: usize = 16;

/// What credentials are wanted for a task.
pub fn request(task: &Task) -> CredentialRequest {
    let person = (task.is_by_hand() || task.is_manual).then_some(Beneficiary::Person);
    let jobs = task.owners.iter().cloned().map(Beneficiary::Job);
    CredentialRequest {
        image: task.reference.clone(),
        secrets: task.secrets.iter().map(reference).collect(),
        beneficiaries: person.into_iter().chain(jobs).collect(),
    }
}

fn reference(secret: &PullSecret) -> SecretReference {
    let mode = secret.is_shared.then(|| SECRET_MODE_BATCH.to_owned());
    SecretReference { namespace: secret.namespace.clone(), name: secret.name.clone(), mode }
}

/// Reads Secrets through the Kubernetes API.
pub struct KubeSecrets {
    client: Client,
    config_namespace: String,
}

impl KubeSecrets {
    /// Advice names `config_namespace`, the one that the shipped role opens.
    pub fn new(client: Client, config_namespace: String) -> Self {
        Self { client: limited(client, Crowd::Few), config_namespace }
    }

    async fn read(&self, reference: SecretReference) -> Answer {
        let answer = self.ask(&reference).await;
        Answer::new(reference, answer)
    }

    async fn ask(&self, reference: &SecretReference) -> Result<Secret, String> {
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
            let wanted: Vec<SecretReference> = chosen(request).into_iter().cloned().collect();
            let reads = stream::iter(wanted.into_iter().map(|reference| self.read(reference)));
            let answers: Vec<Answer> = reads.buffered(READS_AT_ONCE).collect().await;
            found(request, &answers)
        }
        .boxed()
    }

    fn name(&self) -> &'static str {
        "secrets"
    }
}
