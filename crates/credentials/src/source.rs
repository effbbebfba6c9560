//! The seam between pulling and the sources of credentials. Secrets, plugins and others each implement
//! [`CredentialSource`]; [`Chain`] asks several in order and joins their answers.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, LazyLock};

use futures::future::{BoxFuture, FutureExt as _, join_all};
use prewarm_api::kruise::SecretReference;
use prewarm_api::reference::ImageRef;
use prewarm_api::reference_object::ObjectReference;

use crate::Credential;

/// One source of credentials.
///
/// A source never fails as a whole: what it could not read is a problem beside what it could read, because a broken
/// plugin must not hide a good Secret.
pub trait CredentialSource: Send + Sync {
    /// Finds the credentials for an image, best match first.
    fn credentials<'a>(&'a self, request: &'a CredentialRequest) -> BoxFuture<'a, Found>;

    /// A short fixed word for metrics and logs.
    fn name(&self) -> &'static str;
}

/// What credentials are needed for.
#[derive(Clone, Debug, PartialEq)]
pub struct CredentialRequest {
    /// The image to pull.
    pub image: ImageRef,
    /// The Secrets that its task names.
    pub secrets: Vec<SecretReference>,
    /// Whom it is pulled for.
    pub beneficiaries: Vec<Beneficiary>,
}

/// Somebody whom an image is pulled for. A Secret that serves somebody else is not used: what one tenant asks for is never
/// pulled with another tenant's credentials (kruise W30).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Beneficiary {
    /// A person who wrote the task by hand and named the Secrets.
    Person,
    /// A job.
    Job(ObjectReference),
}

/// What a source found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The credentials of the node itself, which serve everybody, in the order in which they should be tried.
    pub credentials: Vec<Credential>,
    /// Sentences for people, without any credential in them: what was missing, malformed or failed on the node itself.
    pub problems: Vec<String>,
    /// What serves single beneficiaries. Those of them who are in no party have nothing of their own.
    pub parties: Vec<Party>,
    /// Changes when the contents behind the answer change. It is meaningful only within this process: see
    /// [`fingerprint`].
    pub fingerprint: u64,
}

/// Beneficiaries who have the same credentials, in the order in which these should be tried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Party {
    /// Their places among the request's beneficiaries.
    pub members: Vec<usize>,
    /// Their credentials, before those of the node.
    pub credentials: Vec<Credential>,
    /// Sentences for them and nobody else, without any credential: what was missing or malformed.
    pub problems: Vec<String>,
    /// The names of what was read and has nothing for the image, for people who wonder why a registry refuses them.
    pub unmatched: Vec<String>,
}

/// A number that differs for different content.
///
/// It is keyed with a random value of this process, so that a number in a log reveals nothing about the content, not
/// even to somebody who guesses it.
pub fn fingerprint(content: impl std::hash::Hash) -> u64 {
    static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    KEY.hash_one(content)
}

/// Several sources as one: their credentials in the order of the sources, each once.
#[derive(Clone)]
pub struct Chain {
    sources: Vec<Arc<dyn CredentialSource>>,
}

impl Chain {
    /// Joins sources; the credentials of the first are tried first.
    pub fn new(sources: Vec<Arc<dyn CredentialSource>>) -> Self {
        Self { sources }
    }
}

impl CredentialSource for Chain {
    fn credentials<'a>(&'a self, request: &'a CredentialRequest) -> BoxFuture<'a, Found> {
        // All are asked at the same time: a plugin may take seconds, and so may a Secret.
        join_all(self.sources.iter().map(|source| source.credentials(request))).map(join).boxed()
    }

    fn name(&self) -> &'static str {
        "chain"
    }
}

fn join(answers: Vec<Found>) -> Found {
    let fingerprint = fingerprint(answers.iter().map(|found| found.fingerprint).collect::<Vec<_>>());
    let mut joined = Found { fingerprint, ..Found::default() };
    for found in answers {
        joined.credentials.extend(found.credentials);
        joined.problems.extend(found.problems);
        joined.parties.extend(found.parties);
    }
    keep_first(&mut joined.credentials);
    joined
}

/// Removes repetitions of earlier elements. Lists are short, so comparing all pairs is cheap.
fn keep_first<T: PartialEq>(list: &mut Vec<T>) {
    let mut kept = Vec::with_capacity(list.len());
    for item in list.drain(..) {
        if !kept.contains(&item) {
            kept.push(item);
        }
    }
    *list = kept;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SecretText;

    struct Fixed(Found);

    impl CredentialSource for Fixed {
        fn credentials<'a>(&'a self, _: &'a CredentialRequest) -> BoxFuture<'a, Found> {
            let found = self.0.clone();
            async move { found }.boxed()
        }

        fn name(&self) -> &'static str {
            "fixed"
        }
    }

    fn password(text: &str) -> Credential {
        Credential {
            password: SecretText::new(text.into()),
            server_address: "reg.example".into(),
            ..Credential::default()
        }
    }

    async fn ask(sources: Vec<Found>) -> Found {
        let chain = Chain::new(sources.into_iter().map(|found| Arc::new(Fixed(found)) as _).collect());
        let request = CredentialRequest {
            image: "nginx".parse().unwrap(),
            secrets: vec![],
            beneficiaries: vec![Beneficiary::Person],
        };
        chain.credentials(&request).await
    }

    #[tokio::test]
    async fn a_chain_keeps_the_order_of_its_sources_and_drops_repeats() {
        let first = Found { credentials: vec![password("a"), password("b")], ..Found::default() };
        let second = Found { credentials: vec![password("b"), password("c")], ..Found::default() };
        let found = ask(vec![first, second]).await;
        assert_eq!(found.credentials, [password("a"), password("b"), password("c")]);
    }

    #[tokio::test]
    async fn a_source_with_a_problem_does_not_hide_the_others() {
        let broken = Found { problems: vec!["a plugin failed".into()], ..Found::default() };
        let good = Found { credentials: vec![password("a")], ..Found::default() };
        let found = ask(vec![broken, good]).await;
        assert_eq!(found.credentials, [password("a")]);
        assert_eq!(found.problems, ["a plugin failed"]);
    }

    #[tokio::test]
    async fn the_fingerprint_of_a_chain_follows_each_of_its_sources() {
        let of = |number| Found { fingerprint: number, ..Found::default() };
        let before = ask(vec![of(1), of(2)]).await.fingerprint;
        assert_eq!(ask(vec![of(1), of(2)]).await.fingerprint, before);
        assert_ne!(ask(vec![of(1), of(3)]).await.fingerprint, before);
        assert_ne!(ask(vec![of(3), of(2)]).await.fingerprint, before);
    }
}
