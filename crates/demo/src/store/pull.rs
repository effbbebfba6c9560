//! One pull, from a name to an image on the node, whether from the registry or from mirrors.

use std::net::SocketAddr;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use prewarm_api::reference::ImageRef;
use prewarm_runtime::serve::{Identity, PullCall, Refusal};

use super::Shared;
use super::download::have;
use super::manifest::{Descriptor, Document, Manifest};
use super::source::{Kind, Source, authorization};
use super::state::Root;

/// How many layers of one image are downloaded at a time, as in containerd.
const LAYERS_AT_ONCE: usize = 3;
/// How many indexes in a row are followed.
const MAX_INDEXES: usize = 4;
/// The largest manifest that is read, in bytes. Registries refuse larger ones.
const MAX_MANIFEST: u64 = 4 * 1024 * 1024;

/// Two callers share a pull if they agree in this: the image and the credential for the registry.
pub(super) type Key = (ImageRef, Option<String>);

/// Pulls an image and returns its name in the runtime. Dropping the future cancels the pull, unless another caller
/// waits for it.
pub(super) async fn pull(shared: &Arc<Shared>, call: &PullCall) -> Result<String, Refusal> {
    let reference = ImageRef::parse(&call.name).map_err(|_unreadable| Refusal::BadReference)?;
    let shown = call.credential.as_ref().and_then(|credential| authorization(credential, &reference));
    let key = (reference, shown);
    let begin = || from_registry(Arc::clone(shared), key.clone()).boxed();
    shared.pulls.join(key.clone(), begin).await
}

async fn from_registry(shared: Arc<Shared>, (reference, shown): Key) -> Result<String, Refusal> {
    let source = Source::find(&shared.node, &shared.config.hosts, &reference, shown)?;
    fetch(shared, reference.tag(), source, &reference).await
}

/// Brings an image from the nodes' mirrors, and its registry is not asked. If a digest is given, its name will stand for that.
pub(super) async fn bring(
    shared: Arc<Shared>,
    mirrors: SocketAddr,
    reference: ImageRef,
    digest: Option<String>,
) -> Result<(), Refusal> {
    let source = Source::mirrored(&shared.node, mirrors, &reference);
    let wanted = digest.as_deref().unwrap_or_else(|| reference.tag());
    fetch(shared, wanted, source, &reference).await.map(drop)
}

/// Makes what the source has under this tag or digest an image of the node.
async fn fetch(
    shared: Arc<Shared>,
    wanted: &str,
    source: Source,
    reference: &ImageRef,
) -> Result<String, Refusal> {
    let hold = Hold::new(&shared, reference);
    let root = source.resolve(wanted).await?;
    let (digest, manifest) = find_manifest(&hold, &source, reference, &root).await?;
    let parts = manifest.parts();
    shared.state().need_parts(hold.number, parts.values().map(|part| (part.digest.clone(), part.size)));
    let downloads = parts.values().cloned().map(|part| download(&shared, &source, part));
    stream::iter(downloads).buffer_unordered(LAYERS_AT_ONCE).try_collect::<()>().await?;
    let identity = Identity {
        config: manifest.config.digest.clone(),
        manifest: digest,
        root: root.descriptor.digest.clone(),
        size: parts.values().map(|part| part.size).sum(),
    };
    shared.state().add(hold.number, &identity, root);
    shared.write_index().map_err(|error| Refusal::Write {
        path: shared.layout.directory().to_owned(),
        trouble: error.to_string(),
    })?;
    Ok(identity.config)
}

fn download(
    shared: &Arc<Shared>,
    source: &Source,
    part: Descriptor,
) -> impl Future<Output = Result<(), Refusal>> + use<> {
    let (shared, source) = (Arc::clone(shared), source.clone());
    async move { have(&shared, &source, Kind::Blob, &part).await }
}

/// Follows indexes to the manifest for this platform. Returns it with its digest.
async fn find_manifest(
    hold: &Hold,
    source: &Source,
    reference: &ImageRef,
    root: &Root,
) -> Result<(String, Manifest), Refusal> {
    let shared = &hold.shared;
    let mut next = root.descriptor.clone();
    for _ in 0..MAX_INDEXES {
        shared.state().need_manifest(hold.number, &next.digest);
        let bytes = read_manifest(shared, source, &next).await?;
        let bad = || Refusal::BadManifest { digest: next.digest.clone() };
        match Document::parse(&bytes).ok_or_else(bad)? {
            Document::Index(Some(chosen)) => next = chosen,
            Document::Index(None) => return Err(Refusal::NoPlatform { manifest: next.digest }),
            Document::Image(manifest) => {
                shared.state().note_manifest(&next.digest, bytes, reference);
                return Ok((next.digest, manifest));
            }
        }
    }
    Err(Refusal::BadManifest { digest: root.descriptor.digest.clone() })
}

async fn read_manifest(
    shared: &Arc<Shared>,
    source: &Source,
    wanted: &Descriptor,
) -> Result<Vec<u8>, Refusal> {
    if wanted.size > MAX_MANIFEST {
        return Err(Refusal::BadManifest { digest: wanted.digest.clone() });
    }
    have(shared, source, Kind::Manifest, wanted).await?;
    let path = shared.layout.blob(&wanted.digest);
    tokio::fs::read(&path).await.map_err(|error| Refusal::Write { path, trouble: error.to_string() })
}

/// A pull under way, whose content is not collected. When it ends, content that nothing needs is.
struct Hold {
    shared: Arc<Shared>,
    number: u64,
}

impl Hold {
    fn new(shared: &Arc<Shared>, reference: &ImageRef) -> Self {
        let number = shared.state().begin_pull(reference);
        Self { shared: Arc::clone(shared), number }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.shared.state().end_pull(self.number);
        self.shared.collect();
    }
}
