//! The files: an OCI image layout, and beside it what has not arrived in full.
//!
//! ```text
//! oci-layout  index.json  blobs/sha256/…      the layout
//! ingest/…                                    downloads under way
//! ```

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

pub(super) struct Layout {
    directory: PathBuf,
    /// Held while the index is written, so that an older one never replaces a newer one.
    index: Mutex<()>,
}

impl Layout {
    /// Creates an empty layout in this directory.
    pub fn create(directory: &Path) -> io::Result<Self> {
        let layout = Self { directory: directory.to_owned(), index: Mutex::default() };
        fs::create_dir_all(directory.join("blobs/sha256"))?;
        fs::create_dir_all(directory.join("ingest"))?;
        fs::write(directory.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#)?;
        layout.write_index(|| r#"{"schemaVersion":2,"manifests":[]}"#.to_owned())?;
        Ok(layout)
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The path of a piece of content.
    pub fn blob(&self, digest: &str) -> PathBuf {
        self.directory.join("blobs/sha256").join(hash(digest))
    }

    /// The path of a download until it has arrived.
    pub fn ingest(&self, number: u64) -> PathBuf {
        self.directory.join("ingest").join(number.to_string())
    }

    /// Replaces the index as a whole. It is small, so this blocks only for a moment.
    pub fn write_index(&self, text: impl FnOnce() -> String) -> io::Result<()> {
        let _writing = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = self.directory.join("ingest/index.json");
        fs::write(&fresh, text())?;
        fs::rename(&fresh, self.directory.join("index.json"))
    }
}

fn hash(digest: &str) -> &str {
    digest.strip_prefix("sha256:").unwrap_or(digest)
}
