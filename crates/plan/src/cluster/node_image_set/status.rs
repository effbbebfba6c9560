//! The status of a NodeImageSet (ofen 1.4, 1.5, A12), and the events that go with it (ofen A16).

use jiff::Timestamp;
use prewarm_api::names::condition::{IMAGE_AVAILABLE, IMAGE_DOWNLOAD_SUCCEEDED, SECRETS_READY};
use prewarm_api::names::event::{IMAGE_DOWNLOAD_FAILED, IMAGE_DOWNLOADED, IMAGE_DOWNLOADING};
use prewarm_api::names::image_state;
use prewarm_api::ofen::{ContainerImageStatus, NodeImageSetStatus};

use crate::amount::counter;
use crate::cluster::command::Notice;
use crate::cluster::image_prefetch::ImageState;
use crate::condition::{Finding, Reason, set_condition};

impl ImageState {
    /// The word on the wire.
    fn word(&self) -> &'static str {
        match self {
            Self::Waiting => image_state::WAITING,
            Self::InProgress => image_state::IN_PROGRESS,
            Self::Downloaded => image_state::DOWNLOADED,
            Self::Failed(_) => image_state::FAILED,
            Self::NotYet(_) => image_state::TEMPORARILY_FAILED,
        }
    }

    fn error(&self) -> Option<String> {
        match self {
            Self::Failed(why) | Self::NotYet(why) => Some(why.clone()),
            Self::Waiting | Self::InProgress | Self::Downloaded => None,
        }
    }
}

/// The status at this time, from the images in the order of the spec.
pub fn status(
    old: Option<&NodeImageSetStatus>,
    images: &[(String, ImageState)],
    has_ignored_secrets: bool,
    generation: i64,
    now: Timestamp,
) -> NodeImageSetStatus {
    let count = |is: &dyn Fn(&ImageState) -> bool| images.iter().filter(|(_, state)| is(state)).count();
    let available = count(&|state| *state == ImageState::Downloaded);
    let failed = count(&|state| matches!(state, ImageState::Failed(_)));
    let mut conditions = old.and_then(|old| old.conditions.clone()).unwrap_or_default();
    conditions.retain(|condition| has_ignored_secrets || condition.type_ != SECRETS_READY);
    let secrets = has_ignored_secrets.then(ignored_secrets);
    for finding in
        [is_available(available, images.len()), has_succeeded(images, failed)].into_iter().chain(secrets)
    {
        set_condition(&mut conditions, finding, None, now);
    }
    let image = |(text, state): &(String, ImageState)| ContainerImageStatus {
        image_ref: text.clone(),
        error: state.error(),
        last_state: Some(state.word().to_owned()),
    };
    NodeImageSetStatus {
        observed_generation: Some(generation),
        conditions: Some(conditions),
        desired_images: counter(images.len()),
        available_images: counter(available),
        download_failed_images: counter(failed),
        container_image_statuses: Some(images.iter().map(image).collect()),
    }
}

fn is_available(available: usize, desired: usize) -> Finding {
    let is_so = available == desired;
    let reason = if is_so { Reason::ImageDownloadComplete } else { Reason::ImageDownloadIncomplete };
    let message = format!("the node has {available} of {desired} images");
    Finding { type_: IMAGE_AVAILABLE, status: is_so.into(), reason, message }
}

/// The first failure stands for all: `containerImageStatuses` has each.
fn has_succeeded(images: &[(String, ImageState)], failed: usize) -> Finding {
    let is_so = failed == 0;
    let reason = if is_so { Reason::NoImagePullFailed } else { Reason::ImageDownloadFailed };
    let first = images.iter().find_map(|(image, state)| match state {
        ImageState::Failed(why) => Some(format!("{image}: {why}")),
        _ => None,
    });
    let message = first.map_or_else(
        || "no image pull has failed".to_owned(),
        |first| format!("{failed} of {} images could not be pulled; {first}", images.len()),
    );
    Finding { type_: IMAGE_DOWNLOAD_SUCCEEDED, status: is_so.into(), reason, message }
}

fn ignored_secrets() -> Finding {
    let message = "imagePullSecrets are not used: a NodeImageSet is in no namespace, so only one that an ImagePrefetch has made gets \
                   the Secrets of its namespace; make an ImagePrefetch"
        .to_owned();
    Finding { type_: SECRETS_READY, status: false.into(), reason: Reason::SecretsIgnored, message }
}

/// Events about what has changed, one for each image.
pub fn notices(old: Option<&NodeImageSetStatus>, new: &NodeImageSetStatus, node: &str) -> Vec<Notice> {
    let before = |image: &str| {
        let all = old.and_then(|old| old.container_image_statuses.as_deref()).unwrap_or_default();
        all.iter().find(|one| one.image_ref == image).and_then(|one| one.last_state.as_deref())
    };
    let images = new.container_image_statuses.iter().flatten();
    let changed = images.filter(|image| before(&image.image_ref) != image.last_state.as_deref());
    changed.filter_map(|image| notice(image, node)).collect()
}

fn notice(image: &ContainerImageStatus, node: &str) -> Option<Notice> {
    let name = &image.image_ref;
    match image.last_state.as_deref()? {
        image_state::IN_PROGRESS => {
            Some(Notice::normal(IMAGE_DOWNLOADING, format!("node {node} pulls {name}")))
        }
        image_state::DOWNLOADED => {
            Some(Notice::normal(IMAGE_DOWNLOADED, format!("{name} is on node {node}")))
        }
        image_state::FAILED => {
            let why = image.error.as_deref().unwrap_or_default();
            Some(Notice::warning(IMAGE_DOWNLOAD_FAILED, format!("{name} on node {node}: {why}")))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn images(states: &[ImageState]) -> Vec<(String, ImageState)> {
        states.iter().enumerate().map(|(number, state)| (format!("image:{number}"), state.clone())).collect()
    }

    fn words(status: &NodeImageSetStatus) -> Vec<String> {
        let conditions = status.conditions.iter().flatten();
        conditions.map(|one| format!("{}={} {}", one.type_, one.status, one.reason)).collect()
    }

    #[test]
    fn the_condition_says_why_the_first_image_could_not_be_pulled() {
        let why = "MirrorOnly cannot be kept with cri-o".to_owned();
        let status =
            status(None, &images(&[ImageState::Downloaded, ImageState::Failed(why)]), false, 3, at(0));
        let mut conditions = status.conditions.iter().flatten();
        let found = conditions.find(|one| one.type_ == IMAGE_DOWNLOAD_SUCCEEDED).unwrap();
        assert_eq!(
            found.message,
            "1 of 2 images could not be pulled; image:1: MirrorOnly cannot be kept with cri-o"
        );
    }

    #[test]
    fn what_no_mirror_has_yet_is_no_failure() {
        let not_yet = ImageState::NotYet("no mirror has it".to_owned());
        let found = images(&[ImageState::Downloaded, not_yet]);
        let status = status(None, &found, false, 3, at(0));
        assert_eq!(
            (status.desired_images, status.available_images, status.download_failed_images),
            (2, 1, 0)
        );
        assert_eq!(
            words(&status),
            ["ImageAvailable=False ImageDownloadIncomplete", "ImageDownloadSucceeded=True NoImagePullFailed"]
        );
        let last = &status.container_image_statuses.unwrap()[1];
        assert_eq!(last.last_state.as_deref(), Some("ImageDownloadTemporarilyFailed"));
        assert_eq!(last.error.as_deref(), Some("no mirror has it"));
    }

    #[test]
    fn a_transition_time_moves_only_when_the_status_does() {
        let first = status(None, &images(&[ImageState::Waiting]), false, 1, at(0));
        let second = status(Some(&first), &images(&[ImageState::InProgress]), false, 1, at(50));
        let third = status(Some(&second), &images(&[ImageState::Downloaded]), false, 1, at(90));
        let times = |status: &NodeImageSetStatus| -> Vec<i64> {
            let conditions = status.conditions.iter().flatten();
            conditions.map(|one| one.last_transition_time.0.as_second()).collect()
        };
        assert_eq!((times(&second), times(&third)), (vec![0, 0], vec![90, 0]));
    }

    #[test]
    fn each_change_of_an_image_is_told_once() {
        let failed = || ImageState::Failed("unauthorized".to_owned());
        let steps = [
            ImageState::Waiting,
            ImageState::InProgress,
            failed(),
            failed(),
            ImageState::InProgress,
            ImageState::Downloaded,
        ];
        let mut old: Option<NodeImageSetStatus> = None;
        let mut told = Vec::new();
        for state in steps {
            let new = status(old.as_ref(), &images(&[state]), false, 1, at(0));
            told.extend(notices(old.as_ref(), &new, "n1").into_iter().map(|notice| notice.reason));
            old = Some(new);
        }
        assert_eq!(told, ["ImageDownloading", "ImageDownloadFailed", "ImageDownloading", "ImageDownloaded"]);
    }
}
