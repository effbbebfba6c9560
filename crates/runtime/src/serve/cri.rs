//! The CRI half.

use std::sync::Arc;

use tonic::{Request, Response, Status, async_trait};

use super::backend::Backend;
use crate::image::Image;
use crate::proto::cri::image_service_server::ImageService;
use crate::proto::cri::runtime_service_server::RuntimeService;
use crate::proto::cri::{
    self, FilesystemIdentifier, FilesystemUsage, ImageFsInfoRequest, ImageFsInfoResponse, ImageStatusRequest,
    ImageStatusResponse, ListImagesRequest, ListImagesResponse, PullImageRequest, PullImageResponse,
    VersionRequest, VersionResponse,
};
use crate::runtime::Kind;

pub(super) struct Cri<B>(pub Arc<B>);

#[async_trait]
impl<B: Backend> RuntimeService for Cri<B> {
    async fn version(&self, _: Request<VersionRequest>) -> Result<Response<VersionResponse>, Status> {
        self.0.enter("Version").await;
        let (name, version) = match self.0.kind() {
            Kind::Containerd => ("containerd", "2.4.2"),
            Kind::CriO => ("cri-o", "1.34.0"),
            Kind::Other => ("other", "0"),
        };
        Ok(Response::new(VersionResponse {
            version: "0.1.0".into(),
            runtime_name: name.into(),
            runtime_version: self.0.version().unwrap_or_else(|| version.to_owned()),
            runtime_api_version: "v1".into(),
        }))
    }
}

#[async_trait]
impl<B: Backend> ImageService for Cri<B> {
    async fn list_images(
        &self,
        _: Request<ListImagesRequest>,
    ) -> Result<Response<ListImagesResponse>, Status> {
        self.0.enter("ListImages").await;
        let images = self.0.images().into_iter().map(message).collect();
        Ok(Response::new(ListImagesResponse { images }))
    }

    async fn image_status(
        &self,
        request: Request<ImageStatusRequest>,
    ) -> Result<Response<ImageStatusResponse>, Status> {
        self.0.enter("ImageStatus").await;
        let name = request.into_inner().image.map(|spec| spec.image).unwrap_or_default();
        Ok(Response::new(ImageStatusResponse { image: self.0.image(&name).map(message) }))
    }

    async fn pull_image(
        &self,
        request: Request<PullImageRequest>,
    ) -> Result<Response<PullImageResponse>, Status> {
        let image_ref = self.0.pull(request.into_inner().into()).await?;
        Ok(Response::new(PullImageResponse { image_ref }))
    }

    async fn image_fs_info(
        &self,
        _: Request<ImageFsInfoRequest>,
    ) -> Result<Response<ImageFsInfoResponse>, Status> {
        self.0.enter("ImageFsInfo").await;
        let mountpoint = self.0.image_filesystem().to_string_lossy().into_owned();
        let usage = FilesystemUsage { fs_id: Some(FilesystemIdentifier { mountpoint }) };
        Ok(Response::new(ImageFsInfoResponse { image_filesystems: vec![usage] }))
    }
}

fn message(image: Image) -> cri::Image {
    cri::Image {
        id: image.id,
        repo_tags: image.tags,
        repo_digests: image.digests,
        size: image.size,
        pinned: image.pinned,
    }
}
