//! The release under test.

use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;
use prewarm_image::{Artifact, layout};
use prewarm_package::release;

/// Where `cargo xtask test` has put it.
const RELEASE: &str = "PREWARM_RELEASE";

/// One of its files.
pub fn file(name: &str) -> anyhow::Result<PathBuf> {
    let directory = std::env::var_os(RELEASE).map(PathBuf::from);
    let directory = directory.with_context(|| {
        format!("{RELEASE} names no directory; make one: `cargo xtask release --platform linux/amd64`")
    })?;
    Ok(directory.join(name))
}

/// The image, and the list of its parts.
pub fn image() -> anyhow::Result<(Artifact, Artifact)> {
    let path = file(release::IMAGE)?;
    let archive = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
    let mut artifacts = layout::read_archive(&archive)?.into_iter();
    let image = artifacts.next().context("the archive has no image")?;
    Ok((image, artifacts.next().context("the archive has no list of parts")?))
}
