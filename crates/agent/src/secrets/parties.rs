//! Which Secrets serve whom. A copy says in an annotation which jobs it serves, and any other Secret serves the jobs of its
//! namespace; a person is served by what a person named. Whoever is served by the same Secrets is one party, and what is
//! wrong with a Secret is told to those whom it serves and to nobody else.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Secret;
use prewarm_api::kruise::SecretReference;
use prewarm_api::names::{SECRET_MODE_BATCH, SECRET_REFERENCES_ANNOTATION, SECRET_SOURCE_ANNOTATION};
use prewarm_credentials::excerpt::wipe;
use prewarm_credentials::source::fingerprint;
use prewarm_credentials::{Beneficiary, CredentialRequest, Found, Keyring, Party};
use prewarm_plan::cluster::secret::is_called_like_one_of;
use prewarm_plan::object::ObjectKey;

/// As many Secrets are read that look like a beneficiary's own. A NodeImage names no more for one image.
const MAX_OWN: usize = 1024;
/// And as many that do not tell whose they are. More only cost the API server.
const MAX_OTHERS: usize = 64;

/// What became of reading one Secret.
pub struct Answer {
    reference: SecretReference,
    secret: Result<Named, String>,
}

/// What is needed of a Secret. Its data is overwritten when it is dropped.
struct Named {
    namespace: String,
    name: String,
    /// What people know it by: a copy has the name of what it is a copy of.
    origin: String,
    /// The jobs that a copy serves.
    served: Option<BTreeSet<ObjectKey>>,
    kind: String,
    data: BTreeMap<String, Vec<u8>>,
}

impl Answer {
    pub fn new(reference: SecretReference, answer: Result<Secret, String>) -> Self {
        Self { reference, secret: answer.map(Named::from) }
    }

    /// Whether it is about somebody.
    fn concerns(&self, beneficiary: &Beneficiary) -> bool {
        let job = match beneficiary {
            Beneficiary::Person => return is_by_hand(&self.reference),
            Beneficiary::Job(job) => job,
        };
        let Some(namespace) = &job.namespace else { return false };
        match &self.secret {
            Ok(Named { served: Some(served), .. }) => {
                let key = job.name.clone().map(|name| ObjectKey { namespace: namespace.clone(), name });
                key.is_some_and(|key| served.contains(&key))
            }
            Ok(secret) => secret.namespace == *namespace,
            // What cannot be read does not say whom it serves, but its name may.
            Err(_) => looks_like_one_of(namespace, &self.reference),
        }
    }
}

impl From<Secret> for Named {
    fn from(secret: Secret) -> Self {
        let metadata = secret.metadata;
        let annotation = |name: &str| metadata.annotations.as_ref().and_then(|all| all.get(name));
        let (namespace, name) =
            (metadata.namespace.clone().unwrap_or_default(), metadata.name.clone().unwrap_or_default());
        let name = format!("{namespace}/{name}");
        Self {
            origin: annotation(SECRET_SOURCE_ANNOTATION).unwrap_or(&name).clone(),
            served: annotation(SECRET_REFERENCES_ANNOTATION)
                .map(|served| served.split(',').filter_map(ObjectKey::parse).collect()),
            namespace,
            name,
            kind: secret.type_.unwrap_or_default(),
            data: secret.data.unwrap_or_default().into_iter().map(|(key, value)| (key, value.0)).collect(),
        }
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        self.data.values_mut().for_each(wipe);
    }
}

/// The Secrets to be read: those that look like a beneficiary's own come first, so that no number of others crowds them
/// out.
pub fn chosen(request: &CredentialRequest) -> Vec<&SecretReference> {
    let namespaces: BTreeSet<&str> = request.beneficiaries.iter().filter_map(namespace).collect();
    let has_person = request.beneficiaries.contains(&Beneficiary::Person);
    let is_own = |reference: &&SecretReference| {
        (has_person && is_by_hand(reference))
            || namespaces.iter().any(|namespace| looks_like_one_of(namespace, reference))
    };
    let (own, others): (Vec<_>, Vec<_>) = request.secrets.iter().partition(is_own);
    // What only jobs can have named serves no person.
    let others = others.into_iter().filter(|_| !namespaces.is_empty());
    own.into_iter().take(MAX_OWN).chain(others.take(MAX_OTHERS)).collect()
}

/// What was found for everybody who is to be served.
pub fn found(request: &CredentialRequest, answers: &[Answer]) -> Found {
    let mut parties: Vec<(Vec<usize>, Vec<usize>)> = Vec::new();
    for (member, beneficiary) in request.beneficiaries.iter().enumerate() {
        let serving: Vec<usize> =
            (0..answers.len()).filter(|&number| answers[number].concerns(beneficiary)).collect();
        match parties.iter_mut().find(|(same, _)| *same == serving) {
            Some((_, members)) => members.push(member),
            None => parties.push((serving, vec![member])),
        }
    }
    let used: BTreeSet<usize> = parties.iter().flat_map(|(serving, _)| serving).copied().collect();
    let contents: Vec<_> = used.into_iter().map(|number| content(&answers[number])).collect();
    let parties = parties.into_iter().map(|(serving, members)| {
        party(request, serving.into_iter().map(|number| &answers[number]), members)
    });
    Found {
        fingerprint: fingerprint(contents),
        parties: in_order(request, parties.collect()),
        ..Found::default()
    }
}

fn party<'a>(
    request: &CredentialRequest,
    answers: impl Iterator<Item = &'a Answer>,
    members: Vec<usize>,
) -> Party {
    let (mut secrets, mut problems) = (Vec::new(), Vec::new());
    for answer in answers {
        match &answer.secret {
            Ok(secret) => secrets.push(secret),
            Err(problem) => problems.push(problem.clone()),
        }
    }
    let parts = secrets.iter().map(|secret| (secret.name.as_str(), secret.kind.as_str(), &secret.data));
    let (keyring, of_secrets) = Keyring::from_secrets(parts);
    let credentials = keyring.matching(&request.image);
    let is_useless = credentials.is_empty() && of_secrets.is_empty();
    let unmatched = secrets.iter().filter(|_| is_useless).map(|secret| secret.origin.clone()).collect();
    problems.extend(of_secrets);
    Party { members, credentials, problems, unmatched }
}

/// Parties with credentials come before those without, which a public image is enough for; and namespaces take turns, so
/// that one with many Secrets does not keep another waiting.
fn in_order(request: &CredentialRequest, parties: Vec<Party>) -> Vec<Party> {
    let mut seen: BTreeMap<Option<&str>, usize> = BTreeMap::new();
    let mut ranked: Vec<(bool, usize, Party)> = Vec::new();
    for party in parties {
        let namespace = party.members.first().and_then(|&member| namespace(&request.beneficiaries[member]));
        let turn = seen.entry(namespace).or_default();
        *turn += 1;
        ranked.push((party.credentials.is_empty(), *turn, party));
    }
    ranked.sort_by_key(|(has_none, turn, _)| (*has_none, *turn));
    ranked.into_iter().map(|(_, _, party)| party).collect()
}

fn namespace(beneficiary: &Beneficiary) -> Option<&str> {
    match beneficiary {
        Beneficiary::Person => None,
        Beneficiary::Job(job) => job.namespace.as_deref(),
    }
}

fn is_by_hand(reference: &SecretReference) -> bool {
    reference.mode.as_deref() != Some(SECRET_MODE_BATCH)
}

/// Whether a Secret is in a namespace, or looks like the copy of one there.
fn looks_like_one_of(namespace: &str, reference: &SecretReference) -> bool {
    let is_there = reference.namespace.as_deref() == Some(namespace);
    is_there || reference.name.as_deref().is_some_and(|name| is_called_like_one_of(namespace, name))
}

/// What a Secret holds, by which a changed one is recognized.
fn content(answer: &Answer) -> Option<&BTreeMap<String, Vec<u8>>> {
    answer.secret.as_ref().ok().map(|secret| &secret.data)
}

#[cfg(test)]
mod tests;
