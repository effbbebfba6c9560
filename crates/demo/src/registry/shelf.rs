//! The content of a registry: repositories with their tags, manifests and blobs, and who may read them.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use prewarm_image::Artifact;

#[derive(Default)]
pub(super) struct Shelf {
    repositories: BTreeMap<String, Repository>,
    /// Each piece of content once, however many repositories have it.
    bytes: BTreeMap<String, Bytes>,
    downloads: BTreeMap<String, u64>,
    pub sent: u64,
}

#[derive(Default)]
pub(super) struct Repository {
    /// Digests by tag.
    tags: BTreeMap<String, String>,
    /// Media types by digest.
    manifests: BTreeMap<String, &'static str>,
    blobs: BTreeSet<String>,
    account: Option<Account>,
    traffic: Traffic,
}

/// Who asked for anything of a repository, and what was sent of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Clients by the names that they give themselves.
    pub clients: BTreeSet<String>,
    /// The bytes of manifests and blobs.
    pub sent: u64,
}

struct Account {
    username: String,
    password: String,
}

pub(super) struct Manifest {
    pub digest: String,
    pub media_type: &'static str,
    pub bytes: Bytes,
}

impl Shelf {
    pub fn push(&mut self, repository: &str, tag: &str, artifact: Artifact) {
        let digest = artifact.digest().to_owned();
        let shelved = self.repositories.entry(repository.to_owned()).or_default();
        for manifest in artifact.manifests {
            shelved.manifests.insert(manifest.blob.digest.clone(), manifest.media_type);
            self.bytes.entry(manifest.blob.digest).or_insert_with(|| manifest.blob.bytes.into());
        }
        for blob in artifact.blobs {
            shelved.blobs.insert(blob.digest.clone());
            self.bytes.entry(blob.digest).or_insert_with(|| blob.bytes.into());
        }
        shelved.tags.insert(tag.to_owned(), digest);
    }

    pub fn protect(&mut self, repository: &str, username: &str, password: &str) {
        let account = Account { username: username.to_owned(), password: password.to_owned() };
        self.repositories.entry(repository.to_owned()).or_default().account = Some(account);
    }

    pub fn spoil(&mut self, digest: &str) -> bool {
        let Some(bytes) = self.bytes.get_mut(digest).filter(|bytes| !bytes.is_empty()) else { return false };
        let mut spoiled = bytes.to_vec();
        let middle = spoiled.len() / 2;
        spoiled[middle] ^= 0xff;
        *bytes = spoiled.into();
        true
    }

    pub fn repository(&self, name: &str) -> Option<&Repository> {
        self.repositories.get(name)
    }

    /// The manifest that a tag or a digest names.
    pub fn manifest(&self, repository: &Repository, reference: &str) -> Option<Manifest> {
        let digest = repository.tags.get(reference).map_or(reference, String::as_str);
        let media_type = repository.manifests.get(digest)?;
        Some(Manifest { digest: digest.to_owned(), media_type, bytes: self.bytes.get(digest)?.clone() })
    }

    pub fn blob(&self, repository: &Repository, digest: &str) -> Option<Bytes> {
        self.bytes.get(repository.blobs.get(digest)?).cloned()
    }

    pub fn note_download(&mut self, digest: &str) {
        *self.downloads.entry(digest.to_owned()).or_default() += 1;
    }

    /// Records a request for anything of a repository.
    pub fn note_client(&mut self, repository: &str, client: &str) {
        if let Some(repository) = self.repositories.get_mut(repository) {
            repository.traffic.clients.insert(client.to_owned());
        }
    }

    /// Records bytes that leave.
    pub fn note_sent(&mut self, repository: &str, bytes: u64) {
        self.sent += bytes;
        if let Some(repository) = self.repositories.get_mut(repository) {
            repository.traffic.sent += bytes;
        }
    }

    pub fn traffic(&self, repository: &str) -> Traffic {
        self.repositories.get(repository).map(|repository| repository.traffic.clone()).unwrap_or_default()
    }

    pub fn downloads(&self, digest: &str) -> u64 {
        self.downloads.get(digest).copied().unwrap_or(0)
    }
}

impl Repository {
    /// Whether a client with these credentials may read the repository.
    pub fn admits(&self, shown: Option<&(String, String)>) -> bool {
        let Some(account) = &self.account else { return true };
        shown.is_some_and(|(username, password)| {
            *username == account.username && *password == account.password
        })
    }
}
