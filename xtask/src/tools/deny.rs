//! cargo-deny, which judges the dependencies, built once from crates.io into the cache.
//!
//! It is built unoptimized: that takes three minutes of processor time, and it runs for four seconds.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use prewarm_bed::programs::{self, TOOLS_VARIABLE, cache_directory};

use super::build;
use crate::cargo;
use crate::duration::readable;
use crate::supply::reason;

const NAME: &str = "cargo-deny";
/// A published version never changes, and the lock file in it fixes all that it is built from.
const VERSION: &str = "0.20.2";
/// Debug information would double what the linker has to do.
const PROFILE: [(&str, &str); 3] = [
    ("CARGO_PROFILE_DEV_DEBUG", "0"),
    ("CARGO_PROFILE_DEV_STRIP", "true"),
    ("CARGO_PROFILE_DEV_INCREMENTAL", "false"),
];

/// Where the program is, built if it was not there. The error says in one line why it cannot be had.
pub fn prepare() -> anyhow::Result<PathBuf> {
    if let Some(program) = present() {
        return Ok(program);
    }
    let cache = cache_directory();
    fs::create_dir_all(&cache).with_context(|| format!("creating {}", cache.display()))?;
    // Not the lock of the other programs: those take twenty minutes, and the two do not meet.
    let _lock = build::lock(&cache.join(format!("{NAME}.lock")))?;
    if present().is_none() {
        install(&cache).with_context(|| format!("building {NAME} {VERSION}"))?;
    }
    present().with_context(|| format!("the build gave no {NAME}"))
}

fn present() -> Option<PathBuf> {
    let given = env::var_os(TOOLS_VARIABLE).map(PathBuf::from);
    let places = given.into_iter().chain([cache_directory().join(folder())]);
    places.map(|place| place.join(NAME)).find(|program| program.is_file())
}

fn folder() -> String {
    let recipe: Vec<&str> = PROFILE.iter().flat_map(|(variable, value)| [*variable, *value]).collect();
    programs::folder(NAME, VERSION, &recipe)
}

/// Builds in a directory of its own and moves only the program to its place, so that a killed build leaves nothing that
/// looks finished. The lock is held, so what lies there is such a build's.
fn install(cache: &Path) -> anyhow::Result<()> {
    let workshop = cache.join(format!("installing-{NAME}"));
    if workshop.exists() {
        fs::remove_dir_all(&workshop).context("removing a killed build")?;
    }
    fs::create_dir(&workshop).context("creating the build directory")?;
    println!("{NAME} {VERSION}: building");
    let start = std::time::Instant::now();
    let built = compile(&workshop).and_then(|()| {
        fs::rename(workshop.join("bin"), cache.join(folder())).context("moving the program into the cache")
    });
    fs::remove_dir_all(&workshop).context("removing the build directory")?;
    built?;
    println!("{NAME} {VERSION}: ready after {}", readable(start.elapsed()));
    Ok(())
}

fn compile(workshop: &Path) -> anyhow::Result<()> {
    let mut command = cargo::patient();
    command.args(["install", "--quiet", "--locked", "--debug", "--no-track", "--version", VERSION, NAME]);
    command.arg("--root").arg(workshop).arg("--target-dir").arg(workshop.join("target"));
    let output = command.envs(PROFILE).current_dir(workshop).output().context("starting cargo")?;
    if !output.status.success() {
        bail!("{}", reason(&String::from_utf8_lossy(&output.stderr)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_names_the_version() {
        assert!(folder().starts_with("cargo-deny-0.20.2-"), "{}", folder());
    }
}
