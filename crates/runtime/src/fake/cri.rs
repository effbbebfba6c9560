//! The CRI half of the fake.

use std::sync::Arc;

use tonic::{Request, Response, Status, async_trait};

use super::pulling;
use super::world::Shared;
use crate::proto::cri::image_service_server::ImageService;
use crate::proto::cri::runtime_service_server::RuntimeService;
use crate::proto::cri::{
    FilesystemIdentifier, FilesystemUsage, ImageFsInfoRequest, ImageFsInfoResponse, ImageStatusRequest,
    ImageStatusResponse, ListImagesRequest, ListImagesResponse, PullImageRequest, PullImageResponse,
    VersionRequest, VersionResponse,
};
use crate::runtime::Kind;

#[derive(Clone)]
pub(super) struct Cri(pub Arc<Shared>);

#[async_trait]
impl RuntimeService for Cri {
    async fn version(&self, _: Request<VersionRequest>) -> Result<Response<VersionResponse>, Status> {
        self.0.enter("Version").await;
        let (name, version) = match self.0.world().kind {
            Kind::Containerd => ("containerd", "2.2.0"),
            Kind::CriO => ("cri-o", "1.34.0"),
            Kind::Other => ("other", "0"),
        };
        Ok(Response::new(VersionResponse {
            version: "0.1.0".into(),
            runtime_name: name.into(),
            runtime_version: version.into(),
            runtime_api_version: "v1".into(),
        }))
    }
}

#[async_trait]
impl ImageService for Cri {
    async fn list_images(
        &self,
        _: Request<ListImagesRequest>,
    ) -> Result<Response<ListImagesResponse>, Status> {
        self.0.enter("ListImages").await;
        let images = self.0.world().stored.values().cloned().collect();
        Ok(Response::new(ListImagesResponse { images }))
    }

    async fn image_status(
        &self,
        request: Request<ImageStatusRequest>,
    ) -> Result<Response<ImageStatusResponse>, Status> {
        self.0.enter("ImageStatus").await;
        let name = request.into_inner().image.map(|spec| spec.image).unwrap_or_default();
        let image = self.0.world().find(&name).cloned();
        Ok(Response::new(ImageStatusResponse { image }))
    }

    async fn pull_image(
        &self,
        request: Request<PullImageRequest>,
    ) -> Result<Response<PullImageResponse>, Status> {
        // Written down before it can be frozen: it has arrived.
        let pulling = pulling::Pulling::begin(&self.0, request.into_inner());
        self.0.enter("PullImage").await;
        pulling.run().await.map(|image_ref| Response::new(PullImageResponse { image_ref }))
    }

    async fn image_fs_info(
        &self,
        _: Request<ImageFsInfoRequest>,
    ) -> Result<Response<ImageFsInfoResponse>, Status> {
        self.0.enter("ImageFsInfo").await;
        let mountpoint = self.0.world().filesystem.clone();
        let usage = FilesystemUsage { fs_id: Some(FilesystemIdentifier { mountpoint }) };
        Ok(Response::new(ImageFsInfoResponse { image_filesystems: vec![usage] }))
    }
}
