//! Brings an image from mirrors into containerd's content store and makes it an image of the node.
//!
//! ```text
//! lease ─▶ manifest (index ─▶ this platform's) ─▶ config, layers: store has it, or mirrors ─▶ unpack ─▶ names ─▶ release
//! ```
//!
//! What an attempt that ends early has brought stays under the lease, and the next one goes on there. Nothing is named before all
//! of it is there, and every piece is committed by its digest.

mod piece;
mod suspects;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures::future::try_join_all;
use prewarm_api::reference::ImageRef;
use prewarm_mirror::content::{ContentError, MAX_MANIFEST};
use prewarm_mirror::{Digest, Document, FetchError, Image, Mirrors, Platform, Wanted};
use prewarm_plan::agent::state::Bytes as Arrived;
use prewarm_runtime::{Blob, ContentStore, Fitness, Lease, Target};
use tokio::sync::Semaphore;
use tokio::time::interval;
use tracing::debug;

use super::Update;
use super::mirrors::Trouble;
use super::turns::Turns;
use suspects::Liars;

/// So many pieces are brought at once, as containerd does it.
const PIECES_AT_ONCE: usize = 3;
/// How often is said how much has arrived.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(2);
/// A lease lasts for at least this long and at most twice as long. What nobody goes on with is gone after that.
const LEASE_PERIOD: Duration = Duration::from_hours(6);
/// What says of a piece of content from which repository it came, before the registry's host.
const SOURCE_LABEL: &str = "containerd.io/distribution.source";

/// What is needed to bring an image.
pub(super) struct Bringer {
    pub store: ContentStore,
    pub snapshotter: String,
    pub mirrors: Mirrors,
    pub platform: Platform,
    pub turns: Turns,
    pub fitness: Fitness,
}

/// One image on its way.
struct Way<'a> {
    bringer: &'a Bringer,
    reference: &'a ImageRef,
    lease: Lease,
    /// How many bytes of config and layers are there.
    done: AtomicU64,
    total: AtomicU64,
    liars: Liars,
    /// Places for pieces under way.
    places: Semaphore,
}

/// A manifest that is in the store.
struct Stored {
    target: Target,
    document: Document,
}

/// Brings the image and names it. Returns the digest that its name stands for.
pub(super) async fn bring(
    bringer: &Bringer,
    reference: &ImageRef,
    digest: Option<&str>,
    send: &impl Fn(Update),
) -> Result<String, Trouble> {
    let (id, until, _) = lease_of(reference, SystemTime::now());
    let lease = {
        // An earlier lease of this id may be about to be released.
        let _turn = bringer.turns.take(&leases_of(reference)).await;
        bringer.store.lease(&id, until).await.map_err(Trouble::Call)?
    };
    let way = Way {
        bringer,
        reference,
        lease,
        done: AtomicU64::new(0),
        total: AtomicU64::new(0),
        liars: Liars::default(),
        places: Semaphore::new(PIECES_AT_ONCE),
    };
    let (root, config) = tokio::select! {
        brought = way.content(digest) => brought?,
        never = way.report(send) => match never {},
    };
    way.finish(&root, &config).await?;
    release(&bringer.store, reference).await;
    Ok(root.digest)
}

/// Ends the leases for an image: what has no name by now is gone soon.
pub(super) async fn release(store: &ContentStore, reference: &ImageRef) {
    let (id, _, earlier) = lease_of(reference, SystemTime::now());
    for lease in [id, earlier] {
        if let Err(error) = store.release(&lease, false).await {
            debug!(lease, %error, "a lease could not be ended; it expires by itself");
        }
    }
}

/// The turn of whoever begins or ends leases for an image.
pub(super) fn leases_of(reference: &ImageRef) -> String {
    format!("leases of {}", reference.full())
}

/// The lease for an image at this time: its id, when it expires, and the one before. When a lease expires cannot be changed, so
/// there is another one in each period.
fn lease_of(reference: &ImageRef, now: SystemTime) -> (String, SystemTime, String) {
    let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let period = since.as_secs() / LEASE_PERIOD.as_secs();
    let until = SystemTime::UNIX_EPOCH + Duration::from_secs((period + 2) * LEASE_PERIOD.as_secs());
    let digest = Digest::of(reference.full().as_bytes());
    let name = digest.as_str().trim_start_matches("sha256:").get(..16).unwrap_or_default().to_owned();
    (format!("prewarm-{name}-{period}"), until, format!("prewarm-{name}-{}", period.saturating_sub(1)))
}

impl Way<'_> {
    /// Brings everything that belongs to the image. Returns what its name is to stand for, and the digest of its config.
    async fn content(&self, digest: Option<&str>) -> Result<(Target, String), Trouble> {
        let root = self.root(digest).await?;
        let image = match root.document {
            Document::Image(image) => image,
            Document::Index(index) => {
                let chosen = index.choose(&self.bringer.platform).map_err(Trouble::Content)?;
                let announced = Some(chosen.media_type.as_str());
                match self.manifest(Wanted::Digest(&chosen.digest), announced).await?.document {
                    Document::Image(image) => image,
                    Document::Index(_) => return Err(Trouble::Content(ContentError::NestedIndex)),
                }
            }
        };
        self.parts(&image).await?;
        Ok((root.target, image.config.digest.to_string()))
    }

    async fn root(&self, digest: Option<&str>) -> Result<Stored, Trouble> {
        let reference = self.reference;
        let digest = digest.or_else(|| reference.is_digest().then(|| reference.tag()));
        let Some(text) = digest else { return self.manifest(Wanted::Tag(reference.tag()), None).await };
        let digest = Digest::parse(text).map_err(|_| {
            let what = reference.full();
            Trouble::Fetch(FetchError::NoMirror { what, why: format!("{text:?} is no digest; correct it") })
        })?;
        self.manifest(Wanted::Digest(&digest), None).await
    }

    /// A manifest, from the store or from mirrors. Afterwards the store has it.
    async fn manifest(&self, wanted: Wanted<'_>, announced: Option<&str>) -> Result<Stored, Trouble> {
        if let Wanted::Digest(digest) = wanted {
            check(self.bringer.fitness, digest)?;
        }
        let (store, repository) = (&self.bringer.store, self.reference.repository());
        let known = match wanted {
            Wanted::Digest(digest) => {
                store.read(digest.as_str(), MAX_MANIFEST).await.map_err(Trouble::Call)?
            }
            Wanted::Tag(_) => None,
        };
        let (bytes, media_type) = if let Some(bytes) = known {
            (Bytes::from(bytes), None)
        } else {
            let found = self.bringer.mirrors.manifest(repository, wanted).await.map_err(Trouble::Fetch)?;
            (found.bytes, found.media_type)
        };
        let announced = announced.or(media_type.as_deref());
        let document = Document::read(&bytes, announced).map_err(Trouble::Content)?;
        let digest = match wanted {
            Wanted::Digest(digest) => digest.clone(),
            Wanted::Tag(_) => Digest::of(&bytes),
        };
        let blob = Blob { digest: digest.to_string(), size: bytes.len() as u64 };
        let (_turn, mut place) = self.turn(&blob).await;
        // What the store has already gets under the lease by this, too.
        if let Some(mut ingest) = self.open(&blob, &mut place).await? {
            let from = usize::try_from(ingest.offset()).unwrap_or(usize::MAX).min(bytes.len());
            ingest.append(bytes[from..].to_vec()).await.map_err(Trouble::Call)?;
            ingest.commit(self.labels()).await.map_err(Trouble::Call)?;
        }
        let media_type = document.media_type().to_owned();
        Ok(Stored { target: Target { media_type, digest: blob.digest, size: blob.size }, document })
    }

    /// Brings config and layers. The config comes first, because it says for which machines the image is.
    async fn parts(&self, image: &Image) -> Result<(), Trouble> {
        let parts = image.parts();
        parts.iter().try_for_each(|part| check(self.bringer.fitness, &part.digest))?;
        self.total.store(parts.iter().map(|part| part.size).sum(), Ordering::Relaxed);
        self.part(&image.config).await?;
        let config = self.bringer.store.read(image.config.digest.as_str(), image.config.size).await;
        if let Some(config) = config.map_err(Trouble::Call)? {
            let of = Platform::of_config(&config).map_err(Trouble::Content)?;
            self.bringer.platform.accept(&of).map_err(Trouble::Content)?;
        }
        let layers = parts.into_iter().filter(|part| part.digest != image.config.digest);
        try_join_all(layers.map(|part| self.part(part))).await.map(drop)
    }

    /// Unpacks what was brought and gives it the names that a pull gives: those of the id and the digest, and then the tag.
    async fn finish(&self, root: &Target, config: &str) -> Result<(), Trouble> {
        let Bringer { store, snapshotter, platform, .. } = self.bringer;
        let platform = prewarm_runtime::Platform {
            os: platform.os.clone(),
            architecture: platform.architecture.clone(),
            variant: platform.variant.clone(),
        };
        store.unpack(&self.lease, root, &platform, snapshotter).await.map_err(Trouble::Call)?;
        let full = self.reference.full();
        let repository = match full.strip_suffix(self.reference.tag()) {
            Some(name) => name.trim_end_matches([':', '@']),
            None => full.as_str(),
        };
        for name in [config.to_owned(), format!("{repository}@{}", root.digest), full.clone()] {
            store.name(&name, root).await.map_err(Trouble::Call)?;
        }
        Ok(())
    }

    /// Where the content comes from, as containerd itself notes it: by the host without its port.
    fn labels(&self) -> BTreeMap<String, String> {
        let registry = self.reference.registry();
        let host = match registry.strip_prefix('[') {
            Some(address) => address.split(']').next().unwrap_or(address),
            None => registry.split(':').next().unwrap_or(registry),
        };
        BTreeMap::from([(format!("{SOURCE_LABEL}.{host}"), self.reference.repository().to_owned())])
    }

    /// Says from time to time how much has arrived.
    async fn report(&self, send: &impl Fn(Update)) -> std::convert::Infallible {
        let mut ticks = interval(PROGRESS_INTERVAL);
        loop {
            ticks.tick().await;
            let total = self.total.load(Ordering::Relaxed);
            if total > 0 {
                let done = self.done.load(Ordering::Relaxed).min(total);
                send(Update::Progress(Arrived { done, total }));
            }
        }
    }
}

/// What cannot be completed is not begun.
fn check(fitness: Fitness, digest: &Digest) -> Result<(), Trouble> {
    if fitness.takes_other_digests || digest.is_sha256() {
        return Ok(());
    }
    Err(Trouble::Content(ContentError::ForeignDigest(digest.clone())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_that_the_content_store_does_not_take_is_refused_before_anything_is_asked_for() {
        let sha512 = Digest::parse(&format!("sha512:{}", "0".repeat(128))).unwrap();
        for (takes_other_digests, digest, is_taken) in
            [(false, &sha512, false), (true, &sha512, true), (false, &Digest::of(b""), true)]
        {
            let checked = check(Fitness { takes_other_digests }, digest);
            assert_eq!(checked.is_ok(), is_taken, "{digest} {takes_other_digests}");
        }
    }

    #[test]
    fn a_lease_outlives_the_period_in_which_it_is_used_and_follows_the_one_before() {
        let reference = ImageRef::parse("reg.example/shop/web:v1").unwrap();
        let at = |hours| SystemTime::UNIX_EPOCH + Duration::from_hours(hours);
        let (first, until, _) = lease_of(&reference, at(600));
        assert_eq!(until, at(612));
        assert_eq!(lease_of(&reference, at(605)).0, first);
        let (second, _, earlier) = lease_of(&reference, at(606));
        assert!(second != first && earlier == first, "{first} {second} {earlier}");
        let other = ImageRef::parse("reg.example/shop/web:v2").unwrap();
        assert_ne!(lease_of(&other, at(600)).0, first);
    }
}
