//! A NodeImage as the controller remembers it: everything that its own writes need, and of the status what jobs count.
//! Ten thousand nodes with fifty images each have to fit, so what is equal on many nodes is held once.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use prewarm_api::kruise::{
    ImagePullPolicy, ImageSpec, ImageTagPullPolicy, ImageTagSpec, NodeImage, SandboxConfig, SecretReference,
};
use prewarm_api::names::NODE_RUNTIME_ANNOTATION;
use prewarm_api::ofen::RegistryPolicy;
use prewarm_api::reference_object::ObjectReference;

pub use status::{OwnerResult, TagStatus};
use status::{Statuses, read_statuses};

use super::weight;
use crate::cluster::intern::Interner;
use crate::object::{ImageKey, Uid};

mod status;

/// A NodeImage.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeImageRecord {
    /// Its UID.
    pub uid: Uid,
    /// Its resourceVersion.
    pub resource_version: String,
    /// Its generation: it grows with every change of the spec and with nothing else.
    pub generation: i64,
    /// Its labels.
    pub labels: Arc<BTreeMap<String, String>>,
    /// The UID of the Node among its owners.
    pub node_uid: Option<Uid>,
    /// Whether it has any owner.
    pub has_owners: bool,
    /// Whether it has any annotation.
    pub has_annotations: bool,
    /// What its agent is told about the node's container runtime.
    pub runtime: Option<Arc<str>>,
    /// When it was made.
    pub created_at: Option<Timestamp>,
    /// Whether it is being deleted.
    pub is_terminating: bool,
    /// How many bytes its entries cost.
    pub weight: usize,
    /// What the node is told to pull.
    pub images: BTreeMap<Arc<str>, ImageRecord>,
    /// The versions of statuses whose tag is not in the spec (any more).
    pub leftovers: BTreeMap<ImageKey, i64>,
}

/// The tags of one image.
#[derive(Clone, Debug, PartialEq)]
pub struct ImageRecord {
    /// Secrets with credentials.
    pub secrets: Arc<[SecretReference]>,
    /// Labels and annotations for the runtime.
    pub sandbox: Option<Arc<SandboxConfig>>,
    /// The tags, in the order of the spec.
    pub tags: Vec<TagRecord>,
}

/// One tag: what is asked, and how far it is.
#[derive(Clone, Debug, PartialEq)]
pub struct TagRecord {
    /// Tag or digest.
    pub tag: Arc<str>,
    /// When it was asked for.
    pub created_at: Option<Timestamp>,
    /// Limits, retries, expiry.
    pub policy: ImageTagPullPolicy,
    /// The jobs that want it.
    pub owners: Arc<[ObjectReference]>,
    /// The round.
    pub version: i64,
    /// Whether a present image is asked for again.
    pub image_pull_policy: ImagePullPolicy,
    /// Whether a person wrote it before a job joined.
    pub manual: bool,
    /// When it was last asked for again because the node had lost it.
    pub renewed_at: Option<Timestamp>,
    /// Whether a Secret of the job was missing when this version was asked for.
    pub secret_missing: bool,
    /// Whether, and with which digest, it comes from mirrors alone.
    pub mirrors: Option<MirrorsOnly>,
    /// How far the node is, in whichever version.
    pub status: Option<TagStatus>,
}

/// A tag that comes from the mirrors of its node alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MirrorsOnly {
    /// What the tag has to stand for, if that is known.
    pub digest: Option<Arc<str>>,
}

/// What records share.
#[derive(Debug, Default)]
pub struct Shared {
    texts: Interner<str>,
    owners: Interner<[ObjectReference]>,
    secrets: Interner<[SecretReference]>,
    sandboxes: Interner<SandboxConfig>,
    results: Interner<[OwnerResult]>,
    labels: Interner<BTreeMap<String, String>>,
    amounts: Interner<BTreeMap<String, i128>>,
}

impl Shared {
    /// The shared copy of a name.
    pub fn text<T: From<Arc<str>>>(&mut self, text: &str) -> T {
        self.texts.share(text).into()
    }

    /// The shared copy of labels.
    pub fn labels(&mut self, labels: BTreeMap<String, String>) -> Arc<BTreeMap<String, String>> {
        self.labels.share(labels)
    }

    /// The shared copy of amounts.
    pub fn amounts(&mut self, amounts: Arc<BTreeMap<String, i128>>) -> Arc<BTreeMap<String, i128>> {
        self.amounts.share(amounts)
    }

    /// Remembers a NodeImage.
    pub fn record(&mut self, object: NodeImage) -> NodeImageRecord {
        let ObjectMeta {
            uid,
            resource_version,
            generation,
            labels,
            owner_references,
            creation_timestamp,
            deletion_timestamp,
            annotations,
            ..
        } = object.metadata;
        let runtime = annotations.as_ref().and_then(|all| all.get(NODE_RUNTIME_ANNOTATION));
        let owners = owner_references.unwrap_or_default();
        let node = owners.iter().find(|owner| owner.kind == "Node" && owner.api_version == "v1");
        let mut statuses = read_statuses(object.status.unwrap_or_default());
        let images = object.spec.images.into_iter();
        let images: BTreeMap<_, _> = images.map(|(name, spec)| self.image(&name, spec, &statuses)).collect();
        statuses.retain(|key, _| {
            images.get(key.name.as_str()).is_none_or(|image: &ImageRecord| image.tag(&key.tag).is_none())
        });
        NodeImageRecord {
            uid: uid.unwrap_or_default().into(),
            resource_version: resource_version.unwrap_or_default(),
            generation: generation.unwrap_or_default(),
            labels: self.labels.share(labels.unwrap_or_default()),
            node_uid: node.map(|owner| owner.uid.as_str().into()),
            has_owners: !owners.is_empty(),
            has_annotations: annotations.as_ref().is_some_and(|all| !all.is_empty()),
            runtime: runtime.map(|text| self.text(text)),
            created_at: moment(creation_timestamp),
            is_terminating: deletion_timestamp.is_some(),
            weight: weight::of_images(&images),
            images,
            leftovers: statuses.into_iter().map(|(key, status)| (key, status.version)).collect(),
        }
    }

    fn image(&mut self, name: &str, spec: ImageSpec, statuses: &Statuses) -> (Arc<str>, ImageRecord) {
        let tags = spec.tags.into_iter().map(|tag| self.tag(name, tag, statuses)).collect();
        let secrets = self.secrets.share(spec.pull_secrets.unwrap_or_default());
        let sandbox = spec.sandbox_config.map(|sandbox| self.sandboxes.share(sandbox));
        (self.text(name), ImageRecord { secrets, sandbox, tags })
    }

    fn tag(&mut self, name: &str, spec: ImageTagSpec, statuses: &Statuses) -> TagRecord {
        let key = ImageKey { name: name.to_owned(), tag: spec.tag };
        let mut status = statuses.get(&key).cloned();
        if let Some(status) = &mut status {
            if let Some(results) = &mut status.results {
                *results = self.results.share(results.to_vec());
            }
            if let Some(digest) = &mut status.digest {
                *digest = self.texts.share(digest.as_ref());
            }
        }
        TagRecord {
            tag: self.text(&key.tag),
            created_at: moment(spec.created_at),
            policy: spec.pull_policy,
            owners: self.owners.share(spec.owner_references.unwrap_or_default()),
            version: spec.version,
            image_pull_policy: spec.image_pull_policy,
            manual: spec.manual,
            renewed_at: moment(spec.renewed_at),
            secret_missing: spec.secret_missing,
            mirrors: (spec.registry_policy == Some(RegistryPolicy::MirrorOnly))
                .then(|| MirrorsOnly { digest: spec.digest.as_deref().map(|digest| self.text(digest)) }),
            status,
        }
    }
}

fn moment(time: Option<Time>) -> Option<Timestamp> {
    time.map(|Time(moment)| moment)
}
