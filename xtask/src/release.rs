//! `cargo xtask release`: everything that a release consists of, in one directory. The tests install from such a one.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail};

use crate::image::{self, PLATFORMS, Platform, Program};

/// What a person asks for.
#[derive(Debug, PartialEq, Eq)]
pub struct Options {
    platforms: Vec<&'static Platform>,
    output: String,
}

impl Options {
    pub fn read(words: &[&str]) -> anyhow::Result<Self> {
        let mut options = Self { platforms: Vec::new(), output: "target/prewarm-release".to_owned() };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--platform" => options.platforms.push(Platform::named(words.next().copied())?),
                "--output" => {
                    let directory = words.next().context("--output needs a directory")?;
                    (*directory).clone_into(&mut options.output);
                }
                other => bail!("{other} is unknown; there are --output DIR and --platform NAME"),
            }
        }
        if options.platforms.is_empty() {
            options.platforms.extend(&PLATFORMS);
        }
        Ok(options)
    }
}

pub fn run(options: &Options) -> anyhow::Result<()> {
    let programs = image::build(&options.platforms)?;
    make(image::maker(), &programs, Path::new(&options.output))
}

/// Makes the directory, by a maker of packages.
pub fn make(maker: Command, programs: &[Program], directory: &Path) -> anyhow::Result<()> {
    let output = ["--output".to_owned(), directory.display().to_string()];
    image::pack(maker, "release", programs, &output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_for_all_platforms_unless_some_are_named() {
        assert_eq!(Options::read(&[]).unwrap().platforms.len(), PLATFORMS.len());
        let options = Options::read(&["--platform", "linux/arm64", "--output", "out"]).unwrap();
        assert_eq!(options, Options { platforms: vec![&PLATFORMS[1]], output: "out".to_owned() });
        let error = Options::read(&["--push"]).unwrap_err().to_string();
        assert!(error.contains("there are --output DIR"), "{error}");
    }
}
