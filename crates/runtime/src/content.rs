//! containerd's content store, in the namespace of Kubernetes: content is written under a lease and made an image of the node
//! without any contact to a registry.
//!
//! ```text
//! lease ─▶ ingest (append …, commit) for each piece ─▶ unpack ─▶ name ─▶ CRI, kubelet and crictl have the image ─▶ release
//! ```
//!
//! Pieces are written under names of our own, so that a broken one never gets into the way of a pull by anybody else.

mod ingest;
mod layout;
mod name;
mod trial;
mod unpack;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use prost_types::Timestamp;
use tokio::sync::Mutex;
use tonic::metadata::MetadataValue;
use tonic::transport::Channel;
use tonic::{Code, Request};

use crate::error::CallError;
use crate::progress::{NAMESPACE, NAMESPACE_HEADER, named};
use crate::proto::content::content_client::ContentClient;
use crate::proto::content::{AbortRequest, InfoRequest, ReadContentRequest};
use crate::proto::leases::leases_client::LeasesClient;
use crate::proto::leases::{CreateRequest, DeleteRequest};
use crate::runtime::{Kind, MAX_ANSWER, Runtime, within};

pub use ingest::{Ingest, Opened};
pub use name::Target;
pub use trial::Fitness;
pub use unpack::Platform;

/// The header that names the lease of a call.
const LEASE_HEADER: &str = "containerd-lease";
/// Until when the garbage collector respects a lease.
const EXPIRE_LABEL: &str = "containerd.io/gc.expire";
/// A flat lease keeps what is in it and not what that refers to. Otherwise it would keep snapshots of removed images. That the label is
/// there is enough, but containerd drops labels that are empty.
const FLAT_LABEL: (&str, &str) = ("containerd.io/gc.flat", "true");
/// What names of our pieces begin with while they are written.
const REF_PREFIX: &str = "prewarm-";

/// The content store of a containerd. Clones share one connection.
#[derive(Clone)]
pub struct ContentStore {
    channel: Channel,
    /// Imports write under one name, so that they come one after the other.
    unpacking: Arc<Mutex<()>>,
}

/// Keeps what is written under it until it is released or expires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    id: String,
}

/// A piece of content, before it is there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Blob {
    /// Its digest, with the algorithm.
    pub digest: String,
    /// Its size in bytes.
    pub size: u64,
}

impl Runtime {
    /// The content store; nothing on runtimes other than containerd.
    pub fn content_store(&self) -> Option<ContentStore> {
        (self.kind() == Kind::Containerd)
            .then(|| ContentStore { channel: self.channel.clone(), unpacking: Arc::clone(&self.unpacking) })
    }

    /// The snapshotter that CRI unpacks images with, as the place of its file system says.
    pub async fn snapshotter(&self) -> Result<String, CallError> {
        let place = self.image_filesystem().await?;
        let name = place.file_name().and_then(|name| name.to_str()).and_then(snapshotter_of);
        name.map(ToOwned::to_owned).ok_or_else(|| {
            CallError::odd_answer(&format!(
                "{} does not say with which snapshotter containerd unpacks images",
                place.display()
            ))
        })
    }
}

/// The snapshotter whose directory this is.
fn snapshotter_of(directory: &str) -> Option<&str> {
    directory.strip_prefix("io.containerd.snapshotter.v1.").filter(|name| !name.is_empty())
}

impl ContentStore {
    /// Creates a lease, or joins the one that has this id. How long that one lasts cannot be changed.
    pub async fn lease(&self, id: &str, until: SystemTime) -> Result<Lease, CallError> {
        let labels = BTreeMap::from([
            (EXPIRE_LABEL.to_owned(), Timestamp::from(until).to_string()),
            (FLAT_LABEL.0.to_owned(), FLAT_LABEL.1.to_owned()),
        ]);
        let request = CreateRequest { id: id.to_owned(), labels };
        let created = within("Leases/Create", self.leases().create(named(request))).await?;
        match created {
            Err(status) if status.code() != Code::AlreadyExists => Err(CallError::from_status(&status)),
            Ok(_) | Err(_) => Ok(Lease { id: id.to_owned() }),
        }
    }

    /// Ends a lease, if there is one with this id. What only it kept goes with the next garbage collection, and at once if this is
    /// to wait for one.
    pub async fn release(&self, id: &str, is_at_once: bool) -> Result<(), CallError> {
        let request = DeleteRequest { id: id.to_owned(), sync: is_at_once };
        let mut leases = self.leases();
        let deleted = leases.delete(named(request));
        let deleted = if is_at_once {
            // The garbage collector takes as long as it takes.
            deleted.await.map(tonic::Response::into_inner)
        } else {
            within("Leases/Delete", deleted).await?
        };
        absent_is_fine(deleted)
    }

    /// The size of a piece that is there.
    pub async fn size(&self, digest: &str) -> Result<Option<u64>, CallError> {
        let mut content = self.content();
        let request = InfoRequest { digest: digest.to_owned() };
        match within("Content/Info", content.info(named(request))).await? {
            Ok(answer) => Ok(answer.info.map(|info| u64::try_from(info.size).unwrap_or(0))),
            Err(status) if status.code() == Code::NotFound => Ok(None),
            Err(status) => Err(CallError::from_status(&status)),
        }
    }

    /// A piece that is there, if it has at most so many bytes.
    pub async fn read(&self, digest: &str, most: u64) -> Result<Option<Vec<u8>>, CallError> {
        match self.size(digest).await? {
            Some(size) if size <= most => {}
            Some(_) => return Err(CallError::odd_answer(&format!("{digest} is larger than {most} bytes"))),
            None => return Ok(None),
        }
        let mut content = self.content();
        let request = ReadContentRequest { digest: digest.to_owned(), offset: 0, size: 0 };
        let parts = within("Content/Read", content.read(named(request))).await?;
        let mut parts = parts.map_err(|status| CallError::from_status(&status))?;
        let mut bytes = Vec::new();
        while let Some(part) = parts.message().await.map_err(|status| CallError::from_status(&status))? {
            bytes.extend(part.data);
        }
        Ok(Some(bytes))
    }

    /// Discards what was written of a piece that is not complete, if anything was.
    pub async fn abort(&self, digest: &str) -> Result<(), CallError> {
        let request = AbortRequest { r#ref: reference(digest) };
        absent_is_fine(within("Content/Abort", self.content().abort(named(request))).await?)
    }

    fn content(&self) -> ContentClient<Channel> {
        ContentClient::new(self.channel.clone()).max_decoding_message_size(MAX_ANSWER)
    }

    fn leases(&self) -> LeasesClient<Channel> {
        LeasesClient::new(self.channel.clone())
    }
}

/// The name under which a piece is written.
fn reference(digest: &str) -> String {
    format!("{REF_PREFIX}{digest}")
}

/// A request in the namespace of Kubernetes whose results the lease keeps.
fn leased<T>(message: T, lease: &Lease) -> Result<Request<T>, CallError> {
    let mut request = Request::new(message);
    let id = MetadataValue::try_from(&lease.id)
        .map_err(|_| CallError::odd_answer(&format!("{:?} cannot be the id of a lease", lease.id)))?;
    request.metadata_mut().insert(NAMESPACE_HEADER, MetadataValue::from_static(NAMESPACE));
    request.metadata_mut().insert(LEASE_HEADER, id);
    Ok(request)
}

fn absent_is_fine(answer: Result<(), tonic::Status>) -> Result<(), CallError> {
    match answer {
        Err(status) if status.code() != Code::NotFound => Err(CallError::from_status(&status)),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_snapshotter_is_the_one_whose_directory_the_images_are_in() {
        assert_eq!(snapshotter_of("io.containerd.snapshotter.v1.overlayfs"), Some("overlayfs"));
        for other in ["overlay", "io.containerd.snapshotter.v1.", "containerd"] {
            assert_eq!(snapshotter_of(other), None, "{other}");
        }
    }

    #[test]
    fn the_end_of_a_lease_is_written_as_containerd_reads_it() {
        let until = SystemTime::UNIX_EPOCH + std::time::Duration::from_hours(500_000);
        assert_eq!(Timestamp::from(until).to_string(), "2027-01-15T08:00:00Z");
    }
}
