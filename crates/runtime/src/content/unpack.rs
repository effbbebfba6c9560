//! Unpacks an image whose content is in the store. The transfer service imports an archive that has nothing but the name of
//! the manifest: it finds all content in place, labels what refers to what for the garbage collector, and unpacks the layers. It
//! has no registry to ask.

use std::sync::atomic::{AtomicU64, Ordering};

use futures::SinkExt as _;
use futures::channel::mpsc;
use prost::Message;
use prost_types::Any;
use tonic::{Code, Status, Streaming};

use super::{ContentStore, Lease, Target, layout, leased};
use crate::error::CallError;
use crate::proto::streaming::StreamInit;
use crate::proto::streaming::streaming_client::StreamingClient;
use crate::proto::transfer::TransferRequest;
use crate::proto::transfer::transfer_client::TransferClient;
use crate::proto::types;
use crate::proto::types::transfer::{Data, ImageImportStream, ImageStore, UnpackConfiguration};
use crate::runtime::within;

/// The start of the stream and the archive: no more is sent.
const MESSAGES: usize = 2;
/// The archive is not compressed.
const TAR: &str = "application/x-tar";

/// For which machine an image is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Platform {
    /// The operating system.
    pub os: String,
    /// The processor, as Go names it.
    pub architecture: String,
    /// Its variant, if there are several.
    pub variant: String,
}

impl ContentStore {
    /// Unpacks the image for this platform. All its content has to be in the store. The lease keeps what was unpacked until the image
    /// has a name.
    pub async fn unpack(
        &self,
        lease: &Lease,
        root: &Target,
        platform: &Platform,
        snapshotter: &str,
    ) -> Result<(), CallError> {
        let _alone = self.unpacking.lock().await;
        let stream = stream_name();
        // It has to stay open until the import has ended.
        let _answers = self.send(lease, &stream, layout::archive(root), snapshotter).await?;
        let platform = types::Platform::from(platform);
        let unpack =
            UnpackConfiguration { platform: Some(platform.clone()), snapshotter: snapshotter.to_owned() };
        let request = TransferRequest {
            source: Some(any(
                "containerd.types.transfer.ImageImportStream",
                &ImageImportStream { stream, media_type: TAR.into() },
            )),
            destination: Some(any(
                "containerd.types.transfer.ImageStore",
                &ImageStore {
                    // Without a name no image is made; names come when everything is in place.
                    name: String::new(),
                    platforms: vec![platform],
                    manifest_limit: 1,
                    unpacks: vec![unpack],
                },
            )),
        };
        let transferred = TransferClient::new(self.channel.clone()).transfer(leased(request, lease)?).await;
        transferred.map(drop).map_err(|status| unpack_error(&status, snapshotter))
    }

    /// Opens a stream of this name and sends the archive on it.
    async fn send(
        &self,
        lease: &Lease,
        name: &str,
        archive: Vec<u8>,
        snapshotter: &str,
    ) -> Result<Streaming<Any>, CallError> {
        let (mut requests, messages) = mpsc::channel(MESSAGES);
        let begin = any("containerd.services.streaming.v1.StreamInit", &StreamInit { id: name.to_owned() });
        // The receiver is still here.
        drop(requests.send(begin).await);
        let mut client = StreamingClient::new(self.channel.clone());
        let answers = within("Streaming/Stream", client.stream(leased(messages, lease)?)).await?;
        let mut answers = answers.map_err(|status| unpack_error(&status, snapshotter))?;
        // containerd says that it knows the stream before anything may refer to it.
        answers.message().await.map_err(|status| unpack_error(&status, snapshotter))?;
        // It is smaller than what containerd takes at once, so that nothing has to be waited for.
        drop(requests.send(any("containerd.types.transfer.Data", &Data { data: archive })).await);
        Ok(answers)
    }
}

/// Names are unique among all streams of this containerd.
fn stream_name() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let since = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos();
    format!("prewarm-{since}-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// containerd names its types without the usual prefix.
fn any(name: &str, message: &impl Message) -> Any {
    Any { type_url: name.to_owned(), value: message.encode_to_vec() }
}

fn unpack_error(status: &Status, snapshotter: &str) -> CallError {
    if status.code() == Code::Unimplemented {
        return CallError::odd_answer(
            "this containerd has no transfer service; version 1.7 or newer has one",
        );
    }
    if status.message().contains("no unpack platforms defined") {
        return CallError::odd_answer(&format!(
            "containerd's transfer service does not unpack with the snapshotter {snapshotter}; add it to \
             unpack_config of io.containerd.transfer.v1.local"
        ));
    }
    CallError::from_status(status)
}

impl From<&Platform> for types::Platform {
    fn from(platform: &Platform) -> Self {
        Self {
            os: platform.os.clone(),
            architecture: platform.architecture.clone(),
            variant: platform.variant.clone(),
        }
    }
}
