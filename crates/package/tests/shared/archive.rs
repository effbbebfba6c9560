//! The image under test.

use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;
use prewarm_image::{Artifact, layout};

/// Where `cargo xtask test` has put it.
const IMAGE: &str = "PREWARM_IMAGE";

/// The image, and the list of its parts.
pub fn image() -> anyhow::Result<(Artifact, Artifact)> {
    let path = std::env::var_os(IMAGE).map(PathBuf::from).with_context(|| {
        format!(
            "{IMAGE} names no image; make one: `cargo xtask image --platform linux/amd64 --output FILE.tar`"
        )
    })?;
    let archive = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
    let mut artifacts = layout::read_archive(&archive)?.into_iter();
    let image = artifacts.next().context("the archive has no image")?;
    Ok((image, artifacts.next().context("the archive has no list of parts")?))
}
