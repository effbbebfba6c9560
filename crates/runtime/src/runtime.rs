//! The calls. Each is one request to the runtime, within a limit; only a pull may take as long as it likes.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use prewarm_api::reference::ImageRef;
use tokio::time::timeout;
use tonic::transport::Channel;
use tonic::{Code, Response, Status};

use crate::error::CallError;
use crate::image::Image;
use crate::progress::Pulls;
use crate::proto::cri::image_service_client::ImageServiceClient;
use crate::proto::cri::{
    ImageFsInfoRequest, ImageSpec, ImageStatusRequest, ListImagesRequest, VersionResponse,
};

/// The longest answer that is read: a listing of tens of thousands of images.
pub(crate) const MAX_ANSWER: usize = 16 * 1024 * 1024;

/// How long a call may take that only looks something up.
pub(crate) const CALL_LIMIT: Duration = Duration::from_secs(10);

/// The node's container runtime. Clones share one connection.
#[derive(Clone)]
pub struct Runtime {
    pub(crate) channel: Channel,
    pub(crate) pulls: Arc<Pulls>,
    kind: Kind,
    version: Arc<str>,
}

/// Which program the runtime is. It decides what is offered besides CRI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// With progress and events.
    Containerd,
    /// CRI alone.
    CriO,
    /// Any other, CRI alone.
    Other,
}

impl Runtime {
    pub(crate) fn new(channel: Channel, version: &VersionResponse) -> Self {
        let kind = match version.runtime_name.as_str() {
            "containerd" => Kind::Containerd,
            "cri-o" => Kind::CriO,
            _ => Kind::Other,
        };
        Self { channel, pulls: Arc::default(), kind, version: version.runtime_version.as_str().into() }
    }

    /// Which program it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The program's version, as it says it.
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

    /// Where the runtime keeps its images. How much room there is has to be asked of the file system itself: what
    /// runtimes say about it lags, or leaves out the layers.
    pub async fn image_filesystem(&self) -> Result<PathBuf, CallError> {
        let mut client = self.images_client();
        let told = within("ImageFsInfo", client.image_fs_info(ImageFsInfoRequest {})).await?;
        let told = told.map_err(|status| CallError::from_status(&status))?;
        let mut places = told.image_filesystems.into_iter().filter_map(|usage| usage.fs_id);
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

/// Waits for an answer up to the limit. Whoever answers nothing within it counts as away.
pub(crate) async fn within<T>(
    call: &str,
    answer: impl Future<Output = Result<Response<T>, Status>>,
) -> Result<Result<T, Status>, CallError> {
    match timeout(CALL_LIMIT, answer).await {
        Ok(answer) => Ok(answer.map(Response::into_inner)),
        Err(_elapsed) => Err(CallError::no_answer(call, CALL_LIMIT)),
    }
}
