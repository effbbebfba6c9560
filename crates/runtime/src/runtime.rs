//! The calls. Each is one request to the runtime, with a time limit; only a pull may take as long as it likes.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use prewarm_api::reference::ImageRef;
use tokio::sync::Mutex;
use tokio::time::timeout;
use tonic::transport::Channel;
use tonic::{Code, Response, Status};

use crate::endpoint::Endpoint;
use crate::error::CallError;
use crate::image::Image;
use crate::progress::Pulls;
use crate::proto::cri::image_service_client::ImageServiceClient;
use crate::proto::cri::{
    ImageFsInfoRequest, ImageSpec, ImageStatusRequest, ListImagesRequest, VersionResponse,
};

/// The longest answer that is read, in bytes: a listing of tens of thousands of images.
pub(crate) const MAX_ANSWER: usize = 16 * 1024 * 1024;

/// How long a call that only looks something up may take.
pub(crate) const CALL_LIMIT: Duration = Duration::from_secs(10);

/// The node's container runtime. Clones share one connection.
#[derive(Clone)]
pub struct Runtime {
    pub(crate) channel: Channel,
    pub(crate) pulls: Arc<Pulls>,
    pub(crate) unpacking: Arc<Mutex<()>>,
    kind: Kind,
    name: Arc<str>,
    version: Arc<str>,
    place: Arc<str>,
}

/// Which program the runtime is, which determines what it offers besides CRI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// CRI, progress and events.
    Containerd,
    /// CRI only.
    CriO,
    /// Any other program, with CRI only.
    Other,
}

impl Runtime {
    pub(crate) fn new(channel: Channel, endpoint: &Endpoint, version: &VersionResponse) -> Self {
        let kind = match version.runtime_name.as_str() {
            "containerd" => Kind::Containerd,
            "cri-o" => Kind::CriO,
            _ => Kind::Other,
        };
        Self {
            channel,
            pulls: Arc::default(),
            unpacking: Arc::default(),
            kind,
            name: version.runtime_name.as_str().into(),
            version: version.runtime_version.as_str().into(),
            place: endpoint.to_string().into(),
        }
    }

    /// The program.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The program's name, as it reports it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The socket on which it answers.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The program's version, as it reports it.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Asks for one image by tag or digest. `None` if the runtime does not have it.
    pub async fn image(&self, reference: &ImageRef) -> Result<Option<Image>, CallError> {
        let spec = ImageSpec { image: reference.full(), ..ImageSpec::default() };
        let mut client = self.images_client();
        let answer = client.image_status(ImageStatusRequest { image: Some(spec) });
        match within("ImageStatus", answer).await? {
            Ok(found) => Ok(found.image.map(Image::from)),
            Err(status) if status.code() == Code::NotFound => Ok(None),
            Err(status) => Err(CallError::from_status(&status)),
        }
    }

    /// Lists all images.
    pub async fn images(&self) -> Result<Vec<Image>, CallError> {
        let mut client = self.images_client();
        let listed = within("ListImages", client.list_images(ListImagesRequest {})).await?;
        let listed = listed.map_err(|status| CallError::from_status(&status))?;
        Ok(listed.images.into_iter().map(Image::from).collect())
    }

    /// The directory in which the runtime keeps its images. The free space has to be read from the file system itself:
    /// what runtimes report lags behind, or leaves out the layers.
    pub async fn image_filesystem(&self) -> Result<PathBuf, CallError> {
        let mut client = self.images_client();
        let answer = within("ImageFsInfo", client.image_fs_info(ImageFsInfoRequest {})).await?;
        let answer = answer.map_err(|status| CallError::from_status(&status))?;
        let mut places = answer.image_filesystems.into_iter().filter_map(|usage| usage.fs_id);
        let place = places.find(|place| !place.mountpoint.is_empty());
        let place = place.ok_or_else(|| {
            CallError::odd_answer("the container runtime names no image filesystem; see its log")
        })?;
        Ok(PathBuf::from(place.mountpoint))
    }

    pub(crate) fn images_client(&self) -> ImageServiceClient<Channel> {
        ImageServiceClient::new(self.channel.clone()).max_decoding_message_size(MAX_ANSWER)
    }
}

/// Waits for an answer up to the limit. A runtime that does not answer within it counts as away.
pub(crate) async fn within<T>(
    call: &str,
    answer: impl Future<Output = Result<Response<T>, Status>>,
) -> Result<Result<T, Status>, CallError> {
    match timeout(CALL_LIMIT, answer).await {
        Ok(answer) => Ok(answer.map(Response::into_inner)),
        Err(_elapsed) => Err(CallError::no_answer(call, CALL_LIMIT)),
    }
}
