//! What suites about the image run on: the program as clusters run it, and the release that is made of it. Each is made once,
//! for whoever asks first.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::Context as _;

use super::report::Report;
use crate::image::{PLATFORMS, Program};
use crate::{cargo, release, shipped};

/// Where the release is, below the top of the tree.
const DIRECTORY: &str = "target/prewarm-release";

#[derive(Default)]
pub struct Shipped {
    program: OnceLock<Option<PathBuf>>,
    release: OnceLock<Option<PathBuf>>,
}

impl Shipped {
    /// The program. It is optimized as a whole, by one thread that takes minutes, so it has to be over when the suites are built:
    /// it gets its share of the processors beside them.
    pub fn program(&self, report: &Report) -> Option<&Path> {
        let build = || shipped::build_for_clusters(&PLATFORMS[0], cargo::cargo());
        self.program.get_or_init(|| report.check("program for clusters", build)).as_deref()
    }

    /// The directory of the release, for one platform, which is this machine's.
    pub fn release(&self, report: &Report, maker: Option<&Path>) -> Option<&Path> {
        let path = self.program(report)?;
        let make = || {
            let maker = maker.context("nothing is built that makes releases")?;
            let programs = [Program { platform: &PLATFORMS[0], path: path.to_owned() }];
            let directory = crate::root().join(DIRECTORY);
            release::make(std::process::Command::new(maker), &programs, &directory)?;
            Ok(directory)
        };
        self.release.get_or_init(|| report.check("release", make)).as_deref()
    }
}
