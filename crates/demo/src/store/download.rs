//! Downloads one piece of content to the node: at the pace of the link, as far as the disk has room, and only if its
//! digest is right.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt as _;
use http_body_util::BodyExt as _;
use prewarm_runtime::serve::Refusal;
use sha2::{Digest as _, Sha256};
use tokio::fs::File;
use tokio::io::AsyncWriteExt as _;

use super::Shared;
use super::manifest::Descriptor;
use super::source::{Kind, Source};

/// Makes sure that the content is on the node. Callers that want the same content at the same time share one download.
pub(super) async fn have(
    shared: &Arc<Shared>,
    source: &Source,
    kind: Kind,
    wanted: &Descriptor,
) -> Result<(), Refusal> {
    if shared.state().has(&wanted.digest) {
        return Ok(());
    }
    let begin = || download(Arc::clone(shared), source.clone(), kind, wanted.clone()).boxed();
    shared.downloads.join(wanted.digest.clone(), begin).await
}

async fn download(
    shared: Arc<Shared>,
    source: Source,
    kind: Kind,
    wanted: Descriptor,
) -> Result<(), Refusal> {
    // The content may have arrived between the check and this point.
    if shared.state().has(&wanted.digest) {
        return Ok(());
    }
    // Manifests are small, and a pull does not know its other content before it has its manifest. Nobody closes the
    // semaphore, so there is a permit eventually.
    let _place = match kind {
        Kind::Manifest => None,
        Kind::Blob => shared.places.acquire().await.ok(),
    };
    let mut body = source.fetch(kind, &wanted.digest).await?;
    let mut ingest = Ingesting::begin(Arc::clone(&shared), wanted)?;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_broken| Refusal::CutOff)?;
        if let Ok(data) = frame.into_data() {
            shared.config.link.pass(data.len()).await;
            if shared.state().breaks(data.len() as u64) {
                return Err(Refusal::CutOff);
            }
            ingest.write(&data).await?;
        }
    }
    ingest.commit().await
}

/// A download that has a file and takes room. Dropping it before its end gives both back.
struct Ingesting {
    shared: Arc<Shared>,
    wanted: Descriptor,
    number: u64,
    path: PathBuf,
    file: File,
    arrived: u64,
    hash: Sha256,
    is_committed: bool,
}

impl Ingesting {
    /// This does not await, so that everything recorded here is always given back.
    fn begin(shared: Arc<Shared>, wanted: Descriptor) -> Result<Self, Refusal> {
        let number = shared.state().begin(&wanted);
        let path = shared.layout.ingest(number);
        let file = match fs::File::create(&path) {
            Ok(file) => File::from_std(file),
            Err(error) => {
                shared.state().abandon(number);
                return Err(Refusal::Write { path, trouble: error.to_string() });
            }
        };
        Ok(Self { shared, wanted, number, path, file, arrived: 0, hash: Sha256::new(), is_committed: false })
    }

    async fn write(&mut self, data: &Bytes) -> Result<(), Refusal> {
        let bytes = data.len() as u64;
        if self.arrived + bytes > self.wanted.size {
            self.arrived += bytes;
            return Err(self.wrong_size());
        }
        if !self.shared.state().arrive(self.number, bytes) {
            return Err(self.unwritten("no space left on device"));
        }
        self.arrived += bytes;
        self.hash.update(data);
        self.file.write_all(data).await.map_err(|error| self.unwritten(&error.to_string()))
    }

    /// Verifies the content and moves it to its place.
    async fn commit(mut self) -> Result<(), Refusal> {
        self.file.flush().await.map_err(|error| self.unwritten(&error.to_string()))?;
        if self.arrived != self.wanted.size {
            return Err(self.wrong_size());
        }
        let actual = text(&self.hash.finalize_reset());
        if actual != self.wanted.digest {
            return Err(Refusal::WrongDigest { expected: self.wanted.digest.clone(), actual });
        }
        let mut state = self.shared.state();
        // Under the lock and without awaiting: either both the file and its record exist, or neither.
        fs::rename(&self.path, self.shared.layout.blob(&self.wanted.digest))
            .map_err(|error| self.unwritten(&error.to_string()))?;
        state.commit(self.number);
        drop(state);
        self.is_committed = true;
        Ok(())
    }

    fn wrong_size(&self) -> Refusal {
        let Descriptor { digest, size } = self.wanted.clone();
        Refusal::WrongSize { digest, expected: size, actual: self.arrived }
    }

    fn unwritten(&self, trouble: &str) -> Refusal {
        Refusal::Write { path: self.path.clone(), trouble: trouble.to_owned() }
    }
}

impl Drop for Ingesting {
    fn drop(&mut self) {
        if self.is_committed {
            return;
        }
        self.shared.state().abandon(self.number);
        // A file that cannot be removed takes no simulated room and is deleted with the directory.
        let _removed = fs::remove_file(&self.path);
    }
}

/// The digest in the form of registries.
fn text(hash: &[u8]) -> String {
    hash.iter().fold(String::from("sha256:"), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a string cannot fail");
        text
    })
}
