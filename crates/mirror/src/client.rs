//! Asks mirrors for content, one after the other, in the order of the file: a mirror that does not have it, refuses,
//! lies or stalls is left for the next, and remembered for the error. The registry itself is never asked (ofen W19).
//!
//! Every request has a connection of its own. An image is a handful of requests, and a connection that nothing else uses
//! can be left at any moment.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::CONTENT_TYPE;

pub use blob::Blob;
pub use failure::{Failure, FetchError, Tried};

use crate::content::{Descriptor, Digest, MAX_MANIFEST};
use crate::hosts::{Hosts, Mirror};
use exchange::{Answer, Ask};
use order::Order;

mod blob;
mod exchange;
mod failure;
mod location;
mod order;
mod wire;

/// What containerd accepts for the manifest of a tag.
const ACCEPT_MANIFESTS: &str = "application/vnd.docker.distribution.manifest.v2+json, \
     application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.oci.image.manifest.v1+json, \
     application/vnd.oci.image.index.v1+json, */*";
/// The header in which a registry says what it answers with.
const CONTENT_DIGEST: &str = "docker-content-digest";

/// How long mirrors are waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// For a connection, unless the file says `dial_timeout`, and then for agreeing on TLS.
    pub connect: Duration,
    /// For the beginning of an answer. A mirror that fetches what it is asked for needs time for that.
    pub answer: Duration,
    /// For the next bytes of an answer.
    pub stall: Duration,
    /// For a whole manifest.
    pub manifest: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            answer: Duration::from_secs(30),
            stall: Duration::from_secs(20),
            manifest: Duration::from_mins(1),
        }
    }
}

/// Which manifest is asked for. A tag whose digest is known is asked for by digest: then mirrors that may not resolve
/// tags can answer, and none of them can answer with anything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted<'a> {
    Tag(&'a str),
    Digest(&'a Digest),
}

/// A manifest that a mirror had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The digest of the bytes. It was asked for, or is what the tag stands for at this mirror.
    pub digest: Digest,
    /// What the mirror called it.
    pub media_type: Option<String>,
    pub bytes: Bytes,
    /// The mirror that had it.
    pub mirror: String,
}

/// The mirrors of one registry, to be asked. Clones share what was met with.
#[derive(Clone, Debug)]
pub struct Mirrors {
    hosts: Arc<Hosts>,
    patience: Patience,
    order: Arc<Order>,
}

impl Mirrors {
    pub fn new(hosts: Hosts, patience: Patience) -> Self {
        let order = Arc::new(Order::new(hosts.mirrors.len()));
        Self { hosts: Arc::new(hosts), patience, order }
    }

    /// What was read of the node's files.
    pub fn hosts(&self) -> &Hosts {
        &self.hosts
    }

    /// Fetches a manifest, verified by its digest, from the first mirror that has it.
    pub async fn manifest(&self, repository: &str, wanted: Wanted<'_>) -> Result<Found, FetchError> {
        let what = self.name(repository, wanted);
        let may_answer =
            |number: &usize| self.hosts.mirrors[*number].may_resolve || matches!(wanted, Wanted::Digest(_));
        let numbers: Vec<usize> = self.order.present().into_iter().filter(may_answer).collect();
        if numbers.is_empty() {
            return Err(self.none(what));
        }
        let mut tried = Vec::new();
        for number in numbers {
            let mirror = &self.hosts.mirrors[number];
            let fetched = self.manifest_of(mirror, repository, wanted);
            let fetched = tokio::time::timeout(self.patience.manifest, fetched).await;
            match fetched.unwrap_or(Err(Failure::NoAnswer(self.patience.manifest))) {
                Ok(found) => return Ok(found),
                Err(failure) => {
                    self.order.note(number, &failure);
                    tried.push(Tried { mirror: mirror.to_string(), failure });
                }
            }
        }
        Err(FetchError::Failed { what, tried })
    }

    /// Fetches a blob from `offset` on, piece by piece. Mirrors in `avoid` are not asked, such as those that an earlier
    /// error gave [reason](FetchError::suspects) to leave.
    ///
    /// Only a blob that is fetched from its beginning is verified here; whoever has its first part has to verify the whole.
    pub fn blob(
        &self,
        repository: &str,
        descriptor: &Descriptor,
        offset: u64,
        avoid: &BTreeSet<String>,
    ) -> Blob {
        let what = self.name(repository, Wanted::Digest(&descriptor.digest));
        Blob::new(self.clone(), what, repository, descriptor, offset, avoid)
    }

    async fn manifest_of(
        &self,
        mirror: &Mirror,
        repository: &str,
        wanted: Wanted<'_>,
    ) -> Result<Found, Failure> {
        let reference = match wanted {
            Wanted::Tag(tag) => tag,
            Wanted::Digest(digest) => digest.as_str(),
        };
        let path = format!("/{repository}/manifests/{reference}");
        let mut answer = self.ask(mirror, path, ACCEPT_MANIFESTS, 0).await?;
        let bytes = whole(&mut answer).await?;
        let digest = verify(&answer, &bytes, wanted)?;
        let media_type = answer.text(CONTENT_TYPE.as_str()).map(essence);
        Ok(Found { digest, media_type, bytes, mirror: mirror.to_string() })
    }

    async fn ask(
        &self,
        mirror: &Mirror,
        path: String,
        accept: &'static str,
        offset: u64,
    ) -> Result<Answer, Failure> {
        let namespace: String = form_urlencoded::byte_serialize(self.hosts.registry.as_bytes()).collect();
        let target = format!("{}{path}?ns={namespace}", mirror.address.root);
        let ask = Ask { mirror, upstream: &self.hosts.upstream, patience: &self.patience, accept, offset };
        ask.send(target).await
    }

    fn name(&self, repository: &str, wanted: Wanted<'_>) -> String {
        match wanted {
            Wanted::Tag(tag) => format!("{}/{repository}:{tag}", self.hosts.registry),
            Wanted::Digest(digest) => format!("{}/{repository}@{digest}", self.hosts.registry),
        }
    }

    /// The error if nobody may be asked. Mirrors that are left out may be the ones that could have helped.
    fn none(&self, what: String) -> FetchError {
        let problems = self.hosts.why_none();
        let why = match (&self.hosts.file, self.hosts.mirrors.is_empty()) {
            (Some(file), false) => {
                let file = file.display();
                let besides = if problems.is_empty() { String::new() } else { format!("; {problems}") };
                format!(
                    "no mirror in {file} may resolve tags: add the capability resolve to one that can, or name the \
                     image by digest{besides}"
                )
            }
            _ => problems,
        };
        FetchError::NoMirror { what, why }
    }
}

/// Reads a manifest within its bound.
async fn whole(answer: &mut Answer) -> Result<Bytes, Failure> {
    let too_long = Failure::TooLong { most: MAX_MANIFEST };
    if answer.length().is_some_and(|length| length > MAX_MANIFEST) {
        return Err(too_long);
    }
    let mut bytes = BytesMut::new();
    while let Some(chunk) = answer.chunk(bytes.len() as u64).await? {
        if (bytes.len() + chunk.len()) as u64 > MAX_MANIFEST {
            return Err(too_long);
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes.freeze())
}

/// The digest of a manifest, if it is what was asked for and what the mirror says that it is.
fn verify(answer: &Answer, bytes: &[u8], wanted: Wanted<'_>) -> Result<Digest, Failure> {
    let announced = answer.text(CONTENT_DIGEST).and_then(|text| Digest::parse(text).ok());
    let expected = match wanted {
        Wanted::Digest(digest) => Some(digest.clone()),
        Wanted::Tag(_) => announced,
    };
    match expected {
        Some(expected) if expected.fits(bytes) => Ok(expected),
        Some(_) => Err(Failure::Corrupt),
        // Something in between may answer anything with 200, such as a page that asks for a login.
        None if serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_err() => {
            Err(Failure::Odd("something that is no manifest"))
        }
        None => Ok(Digest::of(bytes)),
    }
}

/// A media type without its parameters.
fn essence(media_type: &str) -> String {
    media_type.split(';').next().unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests;
