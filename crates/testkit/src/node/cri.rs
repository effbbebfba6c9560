//! The few calls of CRI that tests make by hand, with only the fields that they need.
//!
//! This is separate from the client that Prewarm uses, so that a mistake in one shows in the other.

use std::fmt;
use std::path::Path;

use anyhow::Context as _;
use http::uri::PathAndQuery;
use prost::Message;
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};
use tonic_prost::ProstCodec;

/// A connection to a runtime. The socket need not exist yet: each call connects if there is no connection.
#[derive(Debug, Clone)]
pub struct Cri {
    channel: Channel,
}

/// The account for a pull.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub struct Credentials {
    #[prost(string, tag = "1")]
    pub user: String,
    #[prost(string, tag = "2")]
    pub password: String,
}

/// An image as the runtime lists it.
#[derive(Clone, PartialEq, Message)]
pub struct ListedImage {
    #[prost(string, tag = "1")]
    pub id: String,
    #[prost(string, repeated, tag = "2")]
    pub tags: Vec<String>,
    #[prost(string, repeated, tag = "3")]
    pub digests: Vec<String>,
    #[prost(uint64, tag = "4")]
    pub size: u64,
    #[prost(bool, tag = "8")]
    pub pinned: bool,
}

#[derive(Clone, PartialEq, Message)]
struct Spec {
    #[prost(string, tag = "1")]
    image: String,
}

/// A request about an image, for removal and status as well as for a pull.
#[derive(Clone, PartialEq, Message)]
struct Call {
    #[prost(message, optional, tag = "1")]
    image: Option<Spec>,
    #[prost(message, optional, tag = "2")]
    credentials: Option<Credentials>,
}

#[derive(Clone, PartialEq, Message)]
struct Pulled {
    #[prost(string, tag = "1")]
    reference: String,
}

#[derive(Clone, PartialEq, Message)]
struct Listed {
    #[prost(message, repeated, tag = "1")]
    images: Vec<ListedImage>,
}

#[derive(Clone, PartialEq, Message)]
struct Version {
    #[prost(string, tag = "2")]
    runtime: String,
    #[prost(string, tag = "3")]
    number: String,
}

#[derive(Clone, PartialEq, Message)]
struct Nothing {}

impl Credentials {
    pub fn new(user: &str, password: &str) -> Self {
        Self { user: user.to_owned(), password: password.to_owned() }
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

impl ListedImage {
    /// The names of the image: its tags, or its digests if it has none.
    pub fn references(self) -> Vec<String> {
        if self.tags.is_empty() { self.digests } else { self.tags }
    }
}

impl Cri {
    /// A client of this socket. It has to be created inside an async runtime.
    pub fn new(socket: &Path) -> anyhow::Result<Self> {
        let uri = format!("unix://{}", socket.display());
        let endpoint = Endpoint::from_shared(uri).context("a socket's path is no address")?;
        Ok(Self { channel: endpoint.connect_lazy() })
    }

    /// Pulls an image and returns the runtime's reference to it.
    pub async fn pull(&self, reference: &str, credentials: Option<Credentials>) -> Result<String, Status> {
        let call = Call { image: Some(Spec { image: reference.to_owned() }), credentials };
        let pulled: Pulled = self.call("/runtime.v1.ImageService/PullImage", call).await?;
        Ok(pulled.reference)
    }

    pub async fn images(&self) -> Result<Vec<ListedImage>, Status> {
        let listed: Listed = self.call("/runtime.v1.ImageService/ListImages", Nothing {}).await?;
        Ok(listed.images)
    }

    /// Removes an image, as kubelet's garbage collection would.
    pub async fn remove(&self, reference: &str) -> Result<(), Status> {
        let call = Call { image: Some(Spec { image: reference.to_owned() }), credentials: None };
        let _removed: Nothing = self.call("/runtime.v1.ImageService/RemoveImage", call).await?;
        Ok(())
    }

    /// The name and version of the runtime.
    pub async fn version(&self) -> Result<(String, String), Status> {
        let version: Version = self.call("/runtime.v1.RuntimeService/Version", Nothing {}).await?;
        Ok((version.runtime, version.number))
    }

    async fn call<Q, A>(&self, method: &'static str, question: Q) -> Result<A, Status>
    where
        Q: Message + Send + Sync + 'static,
        A: Message + Default + Send + Sync + 'static,
    {
        let mut client = Grpc::new(self.channel.clone());
        client.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
        let path = PathAndQuery::from_static(method);
        let answer = client.unary(Request::new(question), path, ProstCodec::<Q, A>::default()).await?;
        Ok(answer.into_inner())
    }
}
