//! The credentials of several Secrets, and which of them match an image.

use std::collections::BTreeMap;

use prewarm_api::reference::ImageRef;

use crate::Credential;
use crate::docker_config::{DecodeError, DockerConfig, Layout, Login};
use crate::pattern::{Fit, Pattern};

/// The most credentials for one image: each of them may cost a request that a registry refuses.
pub const MAX_CANDIDATES: usize = 32;
/// The most entries, however many Secrets they come from.
pub const MAX_ENTRIES: usize = 8192;

/// Credentials by pattern.
#[derive(Clone, Debug, Default)]
pub struct Keyring {
    logins: BTreeMap<Pattern, Vec<Login>>,
    entries: usize,
}

impl Keyring {
    /// Reads Secrets, given as name, type and data. What cannot be used is reported in sentences that name the Secret
    /// and the registry, and repeat nothing of the content.
    pub fn from_secrets<'a>(
        secrets: impl IntoIterator<Item = (&'a str, &'a str, &'a BTreeMap<String, Vec<u8>>)>,
    ) -> (Self, Vec<String>) {
        let (mut keyring, mut problems) = (Self::default(), Vec::new());
        for (name, secret_type, data) in secrets {
            problems.extend(keyring.add_secret(name, secret_type, |key| data.get(key).map(Vec::as_slice)));
        }
        (keyring, problems)
    }

    /// Adds one Secret, whose data is looked up by key, and returns what could not be used.
    pub fn add_secret<'a>(
        &mut self,
        name: &str,
        secret_type: &str,
        data: impl Fn(&'static str) -> Option<&'a [u8]>,
    ) -> Vec<String> {
        let config = Layout::of_secret_type(secret_type).ok_or(DecodeError::SecretType).and_then(|layout| {
            let key = layout.data_key();
            DockerConfig::decode(layout, data(key).ok_or(DecodeError::NoKey(key))?)
        });
        let problems = match config {
            Ok(config) => self.add(config),
            Err(error) => vec![error.to_string()],
        };
        problems.into_iter().map(|problem| format!("secret {name} cannot be used whole: {problem}")).collect()
    }

    /// Adds the entries of a config after those that are there, and returns its problems.
    pub fn add(&mut self, config: DockerConfig) -> Vec<String> {
        let mut problems = config.problems;
        for (pattern, login) in config.logins {
            if self.entries == MAX_ENTRIES {
                problems.push(format!("all secrets together have more than {MAX_ENTRIES} entries"));
                break;
            }
            self.entries += 1;
            self.logins.entry(pattern).or_default().push(login);
        }
        problems
    }

    /// The credentials for an image, in the order in which they should be tried: the longest path first, literal hosts
    /// before globs, then the order of the Secrets; aliases of Docker Hub come last.
    ///
    /// Each is tied to the image's own registry, which is the only host it may be sent to.
    pub fn matching(&self, image: &ImageRef) -> Vec<Credential> {
        let of = |wanted: Fit| {
            let fitting =
                self.logins.iter().rev().filter(move |(pattern, _)| pattern.fit(image) == Some(wanted));
            fitting.flat_map(|(_, logins)| logins)
        };
        let mut candidates: Vec<&Login> = Vec::new();
        for login in of(Fit::Named).chain(of(Fit::Alias)) {
            if !candidates.contains(&login) {
                candidates.push(login);
            }
            if candidates.len() == MAX_CANDIDATES {
                break;
            }
        }
        candidates.into_iter().map(|login| login.tie_to(image.registry())).collect()
    }
}

impl Login {
    fn tie_to(&self, registry: &str) -> Credential {
        let Self { username, password, identity_token, registry_token } = self.clone();
        Credential {
            username: username.reveal().to_owned(),
            password,
            identity_token,
            registry_token,
            server_address: registry.to_owned(),
        }
    }
}
