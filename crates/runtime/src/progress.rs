//! The progress of a pull on containerd.
//!
//! containerd shows the downloads under way (ingests) by the digests of their layers, and nothing about layers that it
//! has or has not begun. So the sum comes from the manifest, which is the first thing that a pull fetches. No name
//! leads there before the pull ends, but containerd records on each piece of content where it came from: the manifest is
//! the content from this repository that was touched after the pull began and that refers to a config.
//!
//! ```text
//! once per pull    List (from this repository, refers to a config)  ─▶  Read (manifest)
//! each sample      ListStatuses (ingests)  +  List (layers not seen yet)
//! ```

mod manifest;
mod pulls;
mod sample;

#[cfg(feature = "serve")]
pub(crate) use manifest::filter as manifest_filter;
pub use pulls::Pulls;

use std::time::Duration;

use futures::TryStreamExt as _;
use prewarm_api::reference::ImageRef;
use tokio::time::timeout;
use tonic::metadata::MetadataValue;
use tonic::transport::Channel;
use tonic::{Request, Status};

use crate::error::CallError;
use crate::proto::content::content_client::ContentClient;
use crate::proto::content::{Info, ListContentRequest, ListStatusesRequest, ReadContentRequest};
use crate::runtime::{Kind, MAX_ANSWER, Runtime};
use manifest::{Layers, MAX_MANIFEST};

/// The containerd namespace in which Kubernetes keeps its images, and the header that names it.
pub(crate) const NAMESPACE: &str = "k8s.io";
pub(crate) const NAMESPACE_HEADER: &str = "containerd-namespace";

/// How long one sample may take. The next one comes soon enough.
const SAMPLE_LIMIT: Duration = Duration::from_secs(5);

/// The progress of a pull.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// How many bytes are on the node.
    pub done: u64,
    /// How many bytes the image's config and layers have, packed.
    pub total: u64,
    /// Whether everything has arrived and only has to be unpacked.
    pub is_unpacking: bool,
}

/// What is known of a pull under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sample {
    /// Nothing: the image is not being pulled, its manifest cannot be understood, or the runtime is not containerd.
    Unknown,
    /// Nothing of this repository has arrived, not even the manifest.
    Nothing,
    /// So much.
    Some(Progress),
}

impl Runtime {
    /// The progress of this runtime's own pull of the image. `None` if it is not pulling it, if its manifest has not
    /// arrived or cannot be understood, and on runtimes other than containerd.
    pub async fn progress(&self, reference: &ImageRef) -> Result<Option<Progress>, CallError> {
        Ok(match self.sample(reference).await? {
            Sample::Some(progress) => Some(progress),
            Sample::Nothing | Sample::Unknown => None,
        })
    }

    /// What is known of this runtime's own pull of the image.
    pub async fn sample(&self, reference: &ImageRef) -> Result<Sample, CallError> {
        if self.kind() != Kind::Containerd || !self.pulls.is_under_way(reference) {
            return Ok(Sample::Unknown);
        }
        match timeout(SAMPLE_LIMIT, self.take_sample(reference)).await {
            Ok(sampled) => sampled.map_err(|status| CallError::from_status(&status)),
            Err(_elapsed) => Err(CallError::no_answer("for a pull's progress", SAMPLE_LIMIT)),
        }
    }

    async fn take_sample(&self, reference: &ImageRef) -> Result<Sample, Status> {
        let layers = match self.layers(reference).await? {
            Found::Layers(layers) => layers,
            Found::Nothing => return Ok(Sample::Nothing),
            Found::Unclear => return Ok(Sample::Unknown),
        };
        let mut client = self.content_client();
        // In this order, a layer that arrives between the two answers is in both. In the other order it would be in
        // neither, and the pull would seem to step back.
        let ingests = client.list_statuses(named(ListStatusesRequest::default())).await?.into_inner();
        let arrived = list(&mut client, layers.unseen_filters()).await?;
        let layers = layers.with_seen(arrived.iter().map(|info| info.digest.as_str()));
        let progress = sample::sum(&layers, &ingests.statuses);
        self.pulls.remember(reference, layers);
        Ok(Sample::Some(progress))
    }

    /// The layers of the image, from an earlier sample or from the manifest.
    async fn layers(&self, reference: &ImageRef) -> Result<Found, Status> {
        if let Some(layers) = self.pulls.layers(reference) {
            return Ok(Found::Layers(layers));
        }
        let mut client = self.content_client();
        let found = list(&mut client, vec![manifest::filter(reference)]).await?;
        if found.is_empty() {
            return Ok(Found::Nothing);
        }
        let Some(manifest) = self.pulls.choose_manifest(reference, &found) else { return Ok(Found::Unclear) };
        if u64::try_from(manifest.size).is_ok_and(|size| size > MAX_MANIFEST) {
            return Ok(Found::Unclear);
        }
        let bytes = read(&mut client, &manifest.digest).await?;
        Ok(manifest::parse(&manifest.digest, &bytes).map_or(Found::Unclear, Found::Layers))
    }

    fn content_client(&self) -> ContentClient<Channel> {
        ContentClient::new(self.channel.clone()).max_decoding_message_size(MAX_ANSWER)
    }
}

/// What was found of an image's layers.
enum Found {
    Layers(Layers),
    /// The node has no manifest of the image's repository.
    Nothing,
    /// It has some, but which one is the image's, or what it means, cannot be said.
    Unclear,
}

/// A request in the namespace of Kubernetes.
pub(crate) fn named<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert(NAMESPACE_HEADER, MetadataValue::from_static(NAMESPACE));
    request
}

/// All content that matches one of the filters. To containerd no filter means all content, but here it means none.
async fn list(client: &mut ContentClient<Channel>, filters: Vec<String>) -> Result<Vec<Info>, Status> {
    if filters.is_empty() {
        return Ok(Vec::new());
    }
    let mut parts = client.list(named(ListContentRequest { filters })).await?.into_inner();
    let mut listed = Vec::new();
    while let Some(part) = parts.try_next().await? {
        listed.extend(part.info);
    }
    Ok(listed)
}

async fn read(client: &mut ContentClient<Channel>, digest: &str) -> Result<Vec<u8>, Status> {
    let request = ReadContentRequest { digest: digest.to_owned(), offset: 0, size: 0 };
    let mut parts = client.read(named(request)).await?.into_inner();
    let mut bytes = Vec::new();
    while let Some(part) = parts.try_next().await? {
        bytes.extend(part.data);
        // The listed size may be wrong too.
        if bytes.len() as u64 > MAX_MANIFEST {
            return Ok(Vec::new());
        }
    }
    Ok(bytes)
}
