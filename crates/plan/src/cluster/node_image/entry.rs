//! What a NodeImage says of one image and one tag, read off its record, and how an entry is written.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use prewarm_api::kruise::{FailureClass, ImageSpec, ImageTagSpec, PullPhase};
use prewarm_api::names::FAKE_NODE_IMAGE_LABEL;
use prewarm_api::ofen::RegistryPolicy;

use super::record::{ImageRecord, NodeImageRecord, OwnerResult, TagRecord, TagStatus};
use crate::object::ImageKey;

impl NodeImageRecord {
    /// Whether it may exist without a Node.
    pub fn is_fake(&self) -> bool {
        self.labels.contains_key(FAKE_NODE_IMAGE_LABEL)
    }

    /// One tag.
    pub fn tag(&self, key: &ImageKey) -> Option<(&ImageRecord, &TagRecord)> {
        let image = self.images.get(key.name.as_str())?;
        Some((image, image.tag(&key.tag)?))
    }

    /// All its tags.
    pub fn keys(&self) -> Vec<ImageKey> {
        let key = |name: &str, tag: &TagRecord| ImageKey { name: name.to_owned(), tag: tag.tag.to_string() };
        self.images
            .iter()
            .flat_map(|(name, image)| image.tags.iter().map(move |tag| key(name, tag)))
            .collect()
    }

    /// The version that the node last reported for a tag that is not in the spec.
    pub fn leftover(&self, key: &ImageKey) -> Option<i64> {
        self.leftovers.get(key).copied()
    }
}

impl ImageRecord {
    /// One tag. Of two with one name the one of the higher version counts, as it does for the agent.
    pub fn tag(&self, tag: &str) -> Option<&TagRecord> {
        self.tags.iter().filter(|record| *record.tag == *tag).max_by_key(|record| record.version)
    }

    /// Whether there is an entry of the same tag with a later round.
    pub fn is_outdone(&self, tag: &TagRecord) -> bool {
        self.tag(&tag.tag).is_some_and(|other| other.version > tag.version)
    }

    /// As it stands in a NodeImage.
    pub fn to_spec(&self) -> ImageSpec {
        ImageSpec {
            pull_secrets: (!self.secrets.is_empty()).then(|| self.secrets.to_vec()),
            tags: self.tags.iter().map(TagRecord::to_spec).collect(),
            sandbox_config: self.sandbox.as_deref().cloned(),
        }
    }
}

impl TagRecord {
    /// Whether the job with this UID wants it.
    pub fn is_owned_by(&self, uid: &str) -> bool {
        self.owners.iter().any(|owner| owner.uid.as_deref() == Some(uid))
    }

    /// Whether a person wrote it, and jobs have joined it at most.
    pub fn is_by_hand(&self) -> bool {
        self.owners.is_empty() || self.manual
    }

    /// The status of the round that is asked for.
    pub fn current(&self) -> Option<&TagStatus> {
        self.status.as_ref().filter(|status| status.version == self.version)
    }

    /// The round whose pull has begun and not ended, if it is the one that is asked for.
    pub fn begun(&self) -> Option<i64> {
        let status = self.current()?;
        let goes_on = status.completed_at.is_none() && !status.is_finished();
        (goes_on && status.started_at.is_some()).then_some(self.version)
    }

    /// Whether the round that is asked for has ended, well or badly.
    pub fn is_finished(&self) -> bool {
        self.current().is_some_and(TagStatus::is_finished)
    }

    fn to_spec(&self) -> ImageTagSpec {
        ImageTagSpec {
            tag: self.tag.to_string(),
            created_at: self.created_at.map(Time),
            pull_policy: self.policy.clone(),
            owner_references: (!self.owners.is_empty()).then(|| self.owners.to_vec()),
            version: self.version,
            image_pull_policy: self.image_pull_policy,
            manual: self.manual,
            renewed_at: self.renewed_at.map(Time),
            secret_missing: self.secret_missing,
            registry_policy: self.mirrors.as_ref().map(|_| RegistryPolicy::MirrorOnly),
            digest: self.mirrors.as_ref().and_then(|mirrors| mirrors.digest.as_deref()).map(str::to_owned),
        }
    }
}

/// What a round that ended well is for one owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// It counts for it.
    Counts,
    /// It does not, for a reason of this class.
    Refused(FailureClass),
    /// It was pulled with credentials of others before this owner came.
    None,
}

impl TagStatus {
    /// What it is for an owner, if it ended well.
    pub fn share(&self, uid: &str) -> Share {
        let Some(results) = &self.results else { return Share::Counts };
        match results.iter().find(|result| *result.uid == *uid) {
            Some(OwnerResult { class: None, .. }) => Share::Counts,
            Some(OwnerResult { class: Some(class), .. }) => Share::Refused(*class),
            None => Share::None,
        }
    }

    /// Whether it has ended, well or badly.
    pub fn is_finished(&self) -> bool {
        matches!(self.phase, PullPhase::Succeeded | PullPhase::Failed)
    }
}
