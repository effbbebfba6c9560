//! Tries out with a tiny image of its own what writing past a pull depends on and containerd does not document: that what is begun
//! under a lease stays, that nobody else writes it meanwhile, that wrong bytes are refused, that unpacking labels what belongs
//! together, and that CRI takes over an image that was given a name. Nothing of it is left.
//!
//! The names under which containerd's own pulls write, and that they wait for whoever writes there, need no trial: our pieces have
//! names of their own, and no pull runs beside them. A registry would be needed to see it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use prewarm_api::reference::ImageRef;
use serde_json::json;
use sha2::{Digest as _, Sha256, Sha512};
use tokio::time::{Instant, sleep, timeout};

use super::{Blob, ContentStore, Ingest, Lease, Opened, Platform, Target, layout};
use crate::error::CallError;
use crate::image::Image;
use crate::progress::named;
use crate::proto::content::InfoRequest;
use crate::runtime::{Runtime, within};

/// The name of the image; no registry can have it.
const NAME: &str = "prewarm.invalid/start-check";
/// How long containerd keeps what a trial leaves that is killed.
const LEFT_FOR: Duration = Duration::from_mins(10);
/// How long a trial may take. It writes a few kilobytes.
const TRIAL_LIMIT: Duration = Duration::from_mins(1);
/// How long CRI may take to observe a name. It gives each of its events this time.
const EVENT_LIMIT: Duration = Duration::from_secs(10);
/// The pause before CRI is asked for the first time again, and the longest one.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));
/// The pause before a piece is tried again that somebody else writes.
const BUSY: Duration = Duration::from_millis(100);

/// What labels begin with by which one piece keeps another.
const REFERENCE_LABEL: &str = "containerd.io/gc.ref.content";

const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// What a containerd that was tried out can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fitness {
    /// Whether it completes pieces whose digest is of another algorithm than SHA-256.
    pub takes_other_digests: bool,
}

impl Runtime {
    /// Waits until CRI has an image under a name that was just given, standing for this digest. `None` if it never comes.
    pub async fn takes_over(&self, reference: &ImageRef, digest: &str) -> Result<Option<Image>, CallError> {
        let (began, mut pause) = (Instant::now(), PAUSES.0);
        loop {
            let image = self.image(reference).await?;
            let is_it = |image: &Image| image.names().any(|name| name.is_digest() && name.tag() == digest);
            if let Some(image) = image.filter(is_it) {
                return Ok(Some(image));
            }
            if began.elapsed() > EVENT_LIMIT {
                return Ok(None);
            }
            sleep(pause).await;
            pause = (pause * 2).min(PAUSES.1);
        }
    }

    /// Tries out whether images can be made past a pull for this platform. A trial that nobody waits for any more still ends, because
    /// otherwise it would leave what it has made.
    pub async fn try_out_content(&self, platform: &Platform) -> Result<Fitness, CallError> {
        let (runtime, platform) = (self.clone(), platform.clone());
        let trial = tokio::spawn(async move { runtime.try_out_once(&platform).await });
        trial.await.unwrap_or_else(|_| Err(CallError::odd_answer("a trial of its content store broke off")))
    }

    async fn try_out_once(&self, platform: &Platform) -> Result<Fitness, CallError> {
        let Some(store) = self.content_store() else {
            return Err(CallError::odd_answer("only containerd has a content store"));
        };
        self.sweep(&store).await?;
        let nonce = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos().to_string();
        let sample = Sample::new(&nonce, platform);
        let lease = store.lease(&format!("prewarm-check-{nonce}"), SystemTime::now() + LEFT_FOR).await?;
        let trial = timeout(TRIAL_LIMIT, self.try_out(&store, &lease, &sample, platform)).await;
        let cleaned = clean(&store, &lease, &sample).await;
        let fitness = trial
            .unwrap_or_else(|_| Err(CallError::no_answer("a trial of its content store", TRIAL_LIMIT)))?;
        cleaned.map(|()| fitness)
    }

    /// Takes away what earlier trials left that were killed.
    async fn sweep(&self, store: &ContentStore) -> Result<(), CallError> {
        for image in self.images().await? {
            let mut names = image.names();
            let is_of_trial = names.any(|name| name.full().starts_with(NAME));
            if !is_of_trial || image.names().any(|name| is_under_way(name.tag())) {
                continue;
            }
            store.unname(&image.id).await?;
            for name in image.names() {
                store.unname(&name.full()).await?;
            }
        }
        Ok(())
    }

    async fn try_out(
        &self,
        store: &ContentStore,
        lease: &Lease,
        sample: &Sample,
        platform: &Platform,
    ) -> Result<Fitness, CallError> {
        refuses_wrong_bytes(store, lease, &sample.layer).await?;
        keeps_what_is_begun(store, lease, &sample.layer).await?;
        for piece in [&sample.layer, &sample.config, &sample.manifest] {
            if let Some(mut ingest) = open(store, lease, &blob(piece)).await? {
                let from = usize::try_from(ingest.offset()).unwrap_or(usize::MAX).min(piece.len());
                ingest.append(piece[from..].to_vec()).await?;
                ingest.commit(BTreeMap::new()).await?;
            }
        }
        let root = sample.root();
        store.unpack(lease, &root, platform, &self.snapshotter().await?).await?;
        labels_what_belongs_together(store, sample).await?;
        for name in sample.names() {
            store.name(&name, &root).await?;
        }
        let reference = ImageRef::from_parts(NAME, &sample.tag);
        let reference = reference.map_err(|_| CallError::odd_answer("a trial's name is no reference"))?;
        match self.takes_over(&reference, &root.digest).await? {
            Some(_) => Ok(Fitness { takes_other_digests: takes_sha512(store, lease, &sample.config).await? }),
            None => Err(CallError::odd_answer(
                "CRI does not take over an image that was made past a pull; see its log",
            )),
        }
    }
}

impl ContentStore {
    /// What the garbage collector keeps for as long as it keeps this piece.
    async fn kept_with(&self, digest: &str) -> Result<BTreeSet<String>, CallError> {
        let mut content = self.content();
        let request = InfoRequest { digest: digest.to_owned() };
        let answer = within("Content/Info", content.info(named(request))).await?;
        let answer = answer.map_err(|status| CallError::from_status(&status))?;
        let labels = answer.info.into_iter().flat_map(|info| info.labels);
        Ok(labels.filter(|(name, _)| name.starts_with(REFERENCE_LABEL)).map(|(_, digest)| digest).collect())
    }
}

/// Whether a trial that gave this tag may still run, such as that of another agent.
fn is_under_way(tag: &str) -> bool {
    let began = tag.parse().map(Duration::from_nanos).unwrap_or_default();
    let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    since.saturating_sub(began) < TRIAL_LIMIT
}

/// Takes everything away again that a trial made, also if a part of that fails. The name by which a sweep finds the rest goes last.
async fn clean(store: &ContentStore, lease: &Lease, sample: &Sample) -> Result<(), CallError> {
    let mut cleaned = Ok(());
    for name in sample.names().iter().rev() {
        cleaned = cleaned.and(store.unname(name).await);
    }
    cleaned.and(store.release(&lease.id, true).await)
}

async fn refuses_wrong_bytes(store: &ContentStore, lease: &Lease, piece: &[u8]) -> Result<(), CallError> {
    let Some(mut ingest) = open(store, lease, &blob(piece)).await? else { return Ok(()) };
    ingest.append(vec![b'x'; piece.len()]).await?;
    match ingest.commit(BTreeMap::new()).await {
        Ok(()) => Err(CallError::odd_answer("containerd took content that does not have its digest")),
        Err(error) if error.is_runtime_away() => Err(error),
        Err(_refused) => Ok(()),
    }
}

async fn keeps_what_is_begun(store: &ContentStore, lease: &Lease, piece: &[u8]) -> Result<(), CallError> {
    let half = piece.len() / 2;
    if let Some(mut ingest) = open(store, lease, &blob(piece)).await? {
        ingest.append(piece[..half].to_vec()).await?;
        if !matches!(store.ingest(lease, &blob(piece)).await?, Opened::Busy) {
            return Err(CallError::odd_answer("containerd lets two write the same content at once"));
        }
    }
    match open(store, lease, &blob(piece)).await? {
        Some(ingest) if ingest.offset() != half as u64 => {
            Err(CallError::odd_answer("containerd does not keep what is begun under a lease"))
        }
        _ => Ok(()),
    }
}

/// Whether a piece can be completed whose digest is not of SHA-256. Many releases compute no other one.
async fn takes_sha512(store: &ContentStore, lease: &Lease, piece: &[u8]) -> Result<bool, CallError> {
    let digest = format!("sha512:{}", hex(&Sha512::digest(piece)));
    let blob = Blob { digest, size: piece.len() as u64 };
    let written = async {
        if let Some(mut ingest) = open(store, lease, &blob).await? {
            ingest.append(piece.to_vec()).await?;
            ingest.commit(BTreeMap::new()).await?;
        }
        Ok(())
    };
    match written.await {
        Ok(()) => Ok(true),
        Err(error) if CallError::is_runtime_away(&error) => Err(error),
        Err(_refused) => Ok(false),
    }
}

/// Otherwise the garbage collector would take the image's content as soon as the lease ends.
async fn labels_what_belongs_together(store: &ContentStore, sample: &Sample) -> Result<(), CallError> {
    let kept = store.kept_with(&digest(&sample.manifest)).await?;
    if [&sample.config, &sample.layer].iter().all(|piece| kept.contains(&digest(piece))) {
        return Ok(());
    }
    Err(CallError::odd_answer("containerd unpacks an image without labels that keep its content"))
}

/// Opens a piece as soon as nobody else writes it. Nothing if it is there.
async fn open(store: &ContentStore, lease: &Lease, blob: &Blob) -> Result<Option<Ingest>, CallError> {
    loop {
        match store.ingest(lease, blob).await? {
            Opened::Present => return Ok(None),
            Opened::Ingest(ingest) => return Ok(Some(*ingest)),
            Opened::Busy => sleep(BUSY).await,
        }
    }
}

/// An image with one file that no other image has.
struct Sample {
    tag: String,
    layer: Vec<u8>,
    config: Vec<u8>,
    manifest: Vec<u8>,
}

impl Sample {
    fn new(nonce: &str, platform: &Platform) -> Self {
        let layer = layout::file("prewarm-start-check", nonce.as_bytes());
        let config = json!({
            "architecture": platform.architecture, "os": platform.os, "variant": platform.variant,
            "config": {}, "rootfs": { "type": "layers", "diff_ids": [digest(&layer)] },
        });
        let config = config.to_string().into_bytes();
        let descriptor = |media_type: &str, bytes: &[u8]| json!({ "mediaType": media_type, "digest": digest(bytes), "size": bytes.len() });
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST,
            "config": descriptor(CONFIG, &config), "layers": [descriptor(LAYER, &layer)],
        });
        Self { tag: nonce.to_owned(), layer, config, manifest: manifest.to_string().into_bytes() }
    }

    fn root(&self) -> Target {
        let Blob { digest, size } = blob(&self.manifest);
        Target { media_type: MANIFEST.to_owned(), digest, size }
    }

    /// The names that CRI gives to an image that it has pulled. The first one says whose the image is.
    fn names(&self) -> [String; 3] {
        [format!("{NAME}@{}", digest(&self.manifest)), digest(&self.config), format!("{NAME}:{}", self.tag)]
    }
}

fn blob(bytes: &[u8]) -> Blob {
    Blob { digest: digest(bytes), size: bytes.len() as u64 }
}

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hex(&Sha256::digest(bytes)))
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a string cannot fail");
        text
    })
}
