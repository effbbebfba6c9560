//! Images that pods can run: the pinned program `workload`, which waits, ends or fails according to its arguments.

use std::fs;

use anyhow::Context as _;
use prewarm_bed::programs;

use crate::image::Image;
use crate::node::SANDBOX;
use crate::registry::Registry;

/// The name of the program, in the tools as in the image.
const PROGRAM: &str = "workload";

/// An image with the program. Layers can be added as to any other. `tools/workload/main.go` describes the arguments.
pub fn image(seed: &str) -> anyhow::Result<Image> {
    let program = fs::read(programs::locate(PROGRAM)?).context("reading the program of pods")?;
    Ok(Image::new(seed).program(PROGRAM, program))
}

/// Stores the image of sandboxes, without which a node starts no pod.
pub async fn push_sandbox(registry: &Registry) -> anyhow::Result<()> {
    let (name, tag) = SANDBOX
        .split_once('/')
        .and_then(|(_, rest)| rest.split_once(':'))
        .context("a reference has a host and a tag")?;
    registry.push(name, &[tag], &image("sandbox")?.build()).await
}
