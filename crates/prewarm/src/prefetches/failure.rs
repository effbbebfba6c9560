//! Which nodes could not pull an image of an ImagePrefetch and why, read off their NodeImages. They try on, so their pulls go on.

use prewarm_api::kruise::{FailureClass, ImageTagSpec, NodeImage, PullPhase};
use prewarm_api::ofen::{ImagePrefetch, RegistryPolicy};
use prewarm_api::reference::ImageRef;
use prewarm_plan::cluster::demands::parts::{self, Part};

use crate::jobs::{FORGOTTEN, Failure, status_of};

/// The nodes that fail, by name and image.
pub fn failures<'a>(
    prefetch: &ImagePrefetch,
    images: impl IntoIterator<Item = &'a NodeImage>,
) -> Vec<Failure> {
    let uid = prefetch.metadata.uid.as_deref().unwrap_or_default();
    let parts = parts::parts(uid, &prefetch.spec.images);
    let on_node = |node| {
        parts::demands(&parts).into_values().filter_map(move |part| failure(node, part)).collect::<Vec<_>>()
    };
    images.into_iter().flat_map(on_node).collect()
}

fn failure(object: &NodeImage, part: &Part) -> Option<Failure> {
    let reference = ImageRef::parse(&part.text).ok()?;
    let tag = entry(object, &reference, part)?;
    let status = status_of(object, &reference, Some(&part.uid))?;
    let class = status.failure_class.filter(|_| status.phase != PullPhase::Succeeded)?;
    // What no mirror has yet is no failure.
    let is_early = tag.registry_policy == Some(RegistryPolicy::MirrorOnly) && class == FailureClass::NotFound;
    (!is_early).then(|| Failure {
        node: object.metadata.name.clone().unwrap_or_default(),
        image: part.text.clone(),
        class: Some(class),
        message: status.message.unwrap_or_else(|| FORGOTTEN.to_owned()),
    })
}

/// The entry by which the node has to hold the image for this object.
fn entry<'a>(object: &'a NodeImage, reference: &ImageRef, part: &Part) -> Option<&'a ImageTagSpec> {
    let tags = &object.spec.images.get(reference.name())?.tags;
    let is_owned = |tag: &&ImageTagSpec| {
        let mut owners = tag.owner_references.iter().flatten();
        tag.tag == reference.tag() && owners.any(|owner| owner.uid.as_deref() == Some(&*part.uid))
    };
    tags.iter().find(is_owned)
}
