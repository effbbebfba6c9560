//! Names of images: what a name stands for. CRI learns of every change by an event and takes over what it finds.

use std::collections::BTreeMap;

use prost_types::FieldMask;
use tonic::Code;
use tonic::transport::Channel;

use super::{ContentStore, absent_is_fine};
use crate::error::CallError;
use crate::progress::named;
use crate::proto::images::images_client::ImagesClient;
use crate::proto::images::{
    CreateImageRequest, DeleteImageRequest, GetImageRequest, Image, UpdateImageRequest,
};
use crate::proto::types::Descriptor;
use crate::runtime::within;

/// The label that CRI gives to every name that it keeps, and its value.
const MANAGED: (&str, &str) = ("io.cri-containerd.image", "managed");

/// What a name stands for: a manifest, or an index of several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its media type.
    pub media_type: String,
    /// Its digest.
    pub digest: String,
    /// Its size in bytes.
    pub size: u64,
}

impl ContentStore {
    /// What a name stands for.
    pub async fn target(&self, name: &str) -> Result<Option<Target>, CallError> {
        let mut images = self.images();
        let request = GetImageRequest { name: name.to_owned() };
        match within("Images/Get", images.get(named(request))).await? {
            Ok(answer) => Ok(answer.image.and_then(|image| image.target).map(Target::from)),
            Err(status) if status.code() == Code::NotFound => Ok(None),
            Err(status) => Err(CallError::from_status(&status)),
        }
    }

    /// Gives a name to what is in the store, as CRI does after a pull. If the name stood for something else, it moves.
    pub async fn name(&self, name: &str, target: &Target) -> Result<(), CallError> {
        let labels = BTreeMap::from([(MANAGED.0.to_owned(), MANAGED.1.to_owned())]);
        let image = Image { name: name.to_owned(), labels, target: Some(Descriptor::from(target)) };
        let mut images = self.images();
        let request = CreateImageRequest { image: Some(image.clone()) };
        let created = within("Images/Create", images.create(named(request))).await?;
        match created {
            Ok(_) => return Ok(()),
            Err(status) if status.code() == Code::AlreadyExists => {}
            Err(status) => return Err(CallError::from_status(&status)),
        }
        let paths = vec!["target".to_owned(), format!("labels.{}", MANAGED.0)];
        let request = UpdateImageRequest { image: Some(image), update_mask: Some(FieldMask { paths }) };
        let updated = within("Images/Update", images.update(named(request))).await?;
        updated.map(drop).map_err(|status| CallError::from_status(&status))
    }

    /// Takes a name away, if there is one like this.
    pub async fn unname(&self, name: &str) -> Result<(), CallError> {
        let request = DeleteImageRequest { name: name.to_owned(), sync: false };
        absent_is_fine(within("Images/Delete", self.images().delete(named(request))).await?)
    }

    fn images(&self) -> ImagesClient<Channel> {
        ImagesClient::new(self.channel.clone())
    }
}

impl From<&Target> for Descriptor {
    fn from(target: &Target) -> Self {
        Self {
            media_type: target.media_type.clone(),
            digest: target.digest.clone(),
            size: i64::try_from(target.size).unwrap_or(i64::MAX),
        }
    }
}

impl From<Descriptor> for Target {
    fn from(descriptor: Descriptor) -> Self {
        Self {
            media_type: descriptor.media_type,
            digest: descriptor.digest,
            size: u64::try_from(descriptor.size).unwrap_or(0),
        }
    }
}
