//! The Secrets that tasks name, read at every attempt: a Secret that was corrected a moment ago counts at once.
//!
//! An image's Secrets are those of all jobs that want one of its tags. For a task, only those are used that serve one of
//! its own jobs (kruise W30): a copy says in an annotation whom it serves, and any other Secret serves the jobs of its
//! namespace. For a task that a person wrote, all are used.

use std::collections::BTreeSet;

use futures::FutureExt as _;
use futures::future::{BoxFuture, join_all};
use k8s_openapi::api::core::v1::Secret;
use kube::api::ObjectMeta;
use kube::{Api, Client};
use prewarm_api::kruise::SecretReference;
use prewarm_api::names::{SECRET_REFERENCES_ANNOTATION, SECRET_SOURCE_ANNOTATION};
use prewarm_api::reference_object::ObjectReference;
use prewarm_credentials::source::fingerprint;
use prewarm_credentials::{Beneficiary, CredentialRequest, CredentialSource, Found, Keyring};
use prewarm_plan::agent::task::{PullSecret, Task};
use prewarm_plan::object::ObjectKey;

/// At most this many Secrets of one task are read; more only cost the API server.
const MAX_SECRETS: usize = 64;

/// What credentials are wanted for a task.
pub fn request(task: &Task) -> CredentialRequest {
    let is_by_hand = task.is_by_hand() || task.is_manual;
    let beneficiary = if is_by_hand { Beneficiary::Person } else { Beneficiary::Jobs(task.owners.clone()) };
    let secrets = task.secrets.iter().map(reference).collect();
    CredentialRequest { image: task.reference.clone(), secrets, beneficiary }
}

fn reference(secret: &PullSecret) -> SecretReference {
    SecretReference { namespace: secret.namespace.clone(), name: secret.name.clone(), mode: None }
}

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
            let mut answers = join_all(wanted.map(|reference| self.read(reference))).await;
            // A Secret that serves somebody else is not mentioned: it is none of this task's business.
            answers.retain(|answer| {
                answer.as_ref().map_or(true, |secret| serves(&secret.metadata, &request.beneficiary))
            });
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
            if found.credentials.is_empty() && problems.is_empty() {
                found.unmatched = secrets.into_iter().map(|secret| secret.origin).collect();
            }
            found.problems.extend(problems);
            found
        }
        .boxed()
    }

    fn name(&self) -> &'static str {
        "secrets"
    }
}

/// Whether a Secret may be used for somebody.
fn serves(secret: &ObjectMeta, beneficiary: &Beneficiary) -> bool {
    let Beneficiary::Jobs(jobs) = beneficiary else { return true };
    let annotations = secret.annotations.as_ref();
    match annotations.and_then(|annotations| annotations.get(SECRET_REFERENCES_ANNOTATION)) {
        Some(served) => {
            let served: BTreeSet<ObjectKey> = served.split(',').filter_map(ObjectKey::parse).collect();
            jobs.iter().filter_map(key).any(|job| served.contains(&job))
        }
        None => jobs.iter().any(|job| job.namespace.is_some() && job.namespace == secret.namespace),
    }
}

fn key(job: &ObjectReference) -> Option<ObjectKey> {
    Some(ObjectKey { namespace: job.namespace.clone()?, name: job.name.clone()? })
}

/// What a keyring needs of a Secret.
struct Named {
    name: String,
    /// What people know it by: a copy has the name of what it is a copy of.
    origin: String,
    kind: String,
    data: std::collections::BTreeMap<String, Vec<u8>>,
}

impl From<Secret> for Named {
    fn from(secret: Secret) -> Self {
        let (namespace, name) =
            (secret.metadata.namespace.unwrap_or_default(), secret.metadata.name.unwrap_or_default());
        let data = secret.data.unwrap_or_default().into_iter().map(|(key, value)| (key, value.0)).collect();
        let source = secret.metadata.annotations.and_then(|mut all| all.remove(SECRET_SOURCE_ANNOTATION));
        let name = format!("{namespace}/{name}");
        let origin = source.unwrap_or_else(|| name.clone());
        Self { name, origin, kind: secret.type_.unwrap_or_default(), data }
    }
}

/// What a Secret holds, by key.
type Content<'a> = Vec<(&'a String, &'a Vec<u8>)>;

/// What the answers hold, by which a changed Secret is recognized.
fn contents(answers: &[Result<Secret, String>]) -> Vec<Option<Content<'_>>> {
    answers.iter().map(|answer| answer.as_ref().ok().map(content)).collect()
}

fn content(secret: &Secret) -> Content<'_> {
    secret.data.iter().flatten().map(|(key, value)| (key, &value.0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(namespace: &str, served: Option<&str>) -> ObjectMeta {
        let annotation = |served: &str| [(SECRET_REFERENCES_ANNOTATION.to_owned(), served.to_owned())].into();
        ObjectMeta {
            namespace: Some(namespace.to_owned()),
            annotations: served.map(annotation),
            ..ObjectMeta::default()
        }
    }

    fn jobs(jobs: &[(&str, &str)]) -> Beneficiary {
        let reference = |(namespace, name): &(&str, &str)| ObjectReference {
            namespace: Some((*namespace).to_owned()),
            name: Some((*name).to_owned()),
            ..ObjectReference::default()
        };
        Beneficiary::Jobs(jobs.iter().map(reference).collect())
    }

    #[test]
    fn a_copy_serves_the_jobs_that_it_lists_and_nobody_else() {
        let copy = secret("kruise-daemon-config", Some("red/one,red/two"));
        assert!(serves(&copy, &jobs(&[("red", "two")])));
        assert!(serves(&copy, &jobs(&[("blue", "one"), ("red", "one")])));
        assert!(!serves(&copy, &jobs(&[("blue", "one")])));
        assert!(!serves(&secret("kruise-daemon-config", Some("")), &jobs(&[("red", "one")])));
    }

    #[test]
    fn a_secret_that_lists_nobody_serves_the_jobs_of_its_namespace() {
        let plain = secret("kruise-daemon-config", None);
        assert!(serves(&plain, &jobs(&[("kruise-daemon-config", "one")])));
        assert!(!serves(&plain, &jobs(&[("red", "one")])));
        assert!(!serves(&plain, &Beneficiary::Jobs(vec![ObjectReference::default()])));
    }

    #[test]
    fn every_secret_serves_a_person_who_names_it() {
        assert!(serves(&secret("kruise-daemon-config", Some("red/one")), &Beneficiary::Person));
    }
}
