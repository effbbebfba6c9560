//! `cargo xtask image`: builds the program as clusters run it, and makes the image of it.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, bail, ensure};

use crate::{cargo, cross, shipped, twice};

/// Behind the name of a commit from which the tree differs.
pub const CHANGED: &str = "-changed";

/// What a person asks for. The rest is for the program that makes the image.
pub struct Options {
    platforms: Vec<&'static Platform>,
    /// Whether the image is built once more elsewhere, and has to be the same.
    is_twice: bool,
    others: Vec<String>,
}

/// A kind of machine that clusters have.
#[derive(Debug, PartialEq, Eq)]
pub struct Platform {
    pub name: &'static str,
    pub architecture: &'static str,
    pub target: &'static str,
    /// What else it takes on a machine of another kind: who links, who starts the program, and the packages with all of it.
    pub linker: &'static str,
    pub emulator: &'static str,
    pub packages: &'static str,
    /// What its linker can do for a smaller program.
    pub link_flags: &'static [&'static str],
}

/// A program that is built.
pub struct Program {
    pub platform: &'static Platform,
    pub path: PathBuf,
}

pub const PLATFORMS: [Platform; 2] = [
    Platform {
        name: "linux/amd64",
        architecture: "amd64",
        target: "x86_64-unknown-linux-gnu",
        linker: "x86_64-linux-gnu-gcc",
        emulator: "qemu-x86_64-static",
        packages: "rustc-web libstd-rust-web-dev:amd64 gcc-x86-64-linux-gnu qemu-user-static",
        // Functions of the same code are kept once, and places to relocate as a bitmap: 4 % of the program.
        link_flags: &["--icf=all", "-z,pack-relative-relocs"],
    },
    Platform {
        name: "linux/arm64",
        architecture: "arm64",
        target: "aarch64-unknown-linux-gnu",
        linker: "aarch64-linux-gnu-gcc",
        emulator: "qemu-aarch64-static",
        packages: "rustc-web libstd-rust-web-dev:arm64 gcc-aarch64-linux-gnu qemu-user-static",
        link_flags: &[],
    },
];

impl Options {
    pub fn read(words: &[&str]) -> anyhow::Result<Self> {
        let mut options = Self { platforms: Vec::new(), is_twice: false, others: Vec::new() };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--platform" => options.platforms.push(Platform::named(words.next().copied())?),
                "--push" | "--output" => {
                    let value = words.next().with_context(|| format!("{word} needs a value"))?;
                    options.others.extend([(*word).to_owned(), (*value).to_owned()]);
                }
                "--plain-http" => options.others.push((*word).to_owned()),
                "--twice" => options.is_twice = true,
                other => bail!(
                    "{other} is unknown; there are --push HOST/REPO:TAG, --output DIR|FILE.tar, --platform NAME, --plain-http, \
                     --twice"
                ),
            }
        }
        if options.platforms.is_empty() {
            options.platforms.extend(&PLATFORMS);
        }
        Ok(options)
    }
}

impl Platform {
    /// The one that a person names.
    pub fn named(name: Option<&str>) -> anyhow::Result<&'static Self> {
        let name = name.context("--platform needs a name, such as linux/amd64")?;
        let known = PLATFORMS.iter().find(|platform| platform.name == name);
        known.with_context(|| format!("{name} is neither linux/amd64 nor linux/arm64"))
    }

    /// Whether this machine is of that kind.
    pub fn is_own(&self) -> bool {
        self.target.starts_with(std::env::consts::ARCH)
    }
}

/// A mistake in where it should go is reported before the program is built, which takes minutes.
pub fn run(options: &Options) -> anyhow::Result<()> {
    let checked = maker().arg("check-image").args(&options.others).status();
    ensure!(checked.context("starting the maker of images")?.success(), "nothing is built");
    if options.is_twice {
        twice::check_tree()?;
    }
    let programs = build(&options.platforms)?;
    pack(maker(), "image", &programs, &options.others)?;
    if options.is_twice { twice::run(&options.platforms, &programs) } else { Ok(()) }
}

/// The program that makes images and releases, built if it has to be.
pub fn maker() -> Command {
    let mut maker = cargo::cargo();
    maker.args(["run", "--quiet", "--locked", "--package", "prewarm-package", "--"]);
    maker
}

/// The program for each platform.
pub fn build(platforms: &[&'static Platform]) -> anyhow::Result<Vec<Program>> {
    // What the second one lacks is said before the first is built, which takes minutes.
    for platform in platforms {
        cross::prepare(&mut cargo::cargo(), platform)?;
    }
    let program = |platform: &&'static Platform| {
        println!("building for {}", platform.name);
        let path = shipped::build_for_clusters(platform, cargo::cargo())?;
        cross::try_out(&path, platform)?;
        Ok(Program { platform, path })
    };
    platforms.iter().map(program).collect()
}

/// Lets the maker make something of programs.
pub fn pack(mut maker: Command, verb: &str, programs: &[Program], others: &[String]) -> anyhow::Result<()> {
    let (revision, time) = commit().unwrap_or_else(|error| {
        println!("the image does not say which commit it is of: {error:#}");
        ("unknown".to_owned(), "0".to_owned())
    });
    maker.args([verb, "--revision", &revision, "--time", &time]);
    for Program { platform, path } in programs {
        maker.args([
            "--program",
            &format!("{}={}={}", platform.architecture, platform.target, path.display()),
        ]);
    }
    let status = maker.args(others).status().context("starting the maker of images")?;
    ensure!(status.success(), "the {verb} could not be made");
    Ok(())
}

/// The last commit and its time. A tree that differs from it says so: nobody could build the same again.
pub fn commit() -> anyhow::Result<(String, String)> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").current_dir(crate::root()).args(arguments).output();
        let output = output.context("starting git")?;
        ensure!(output.status.success(), "git {}: {}", arguments[0], String::from_utf8_lossy(&output.stderr));
        anyhow::Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let revision = git(&["rev-parse", "HEAD"])?;
    let time = git(&["log", "-1", "--format=%ct"])?;
    let is_changed = !git(&["status", "--porcelain", "--untracked-files=no"])?.is_empty();
    Ok((if is_changed { revision + CHANGED } else { revision }, time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_platforms_are_built_unless_some_are_named() {
        assert_eq!(Options::read(&[]).unwrap().platforms.len(), 2);
        let options = Options::read(&["--platform", "linux/amd64", "--output", "out"]).unwrap();
        assert_eq!(options.platforms, [&PLATFORMS[0]]);
        assert_eq!(options.others, ["--output", "out"]);
        assert!(!options.is_twice && Options::read(&["--twice"]).unwrap().is_twice);
        let error = |words: &[&str]| Options::read(words).err().unwrap().to_string();
        assert!(error(&["--platform", "windows"]).contains("neither linux/amd64 nor linux/arm64"));
        assert!(error(&["--output"]).contains("needs a value"));
        assert!(error(&["--help"]).contains("--push HOST/REPO:TAG"));
    }
}
