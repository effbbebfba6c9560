//! `cargo xtask tools`: everything that the real cluster needs, built or installed once.

mod build;
pub mod deny;
mod go;
mod packages;

use anyhow::bail;
use prewarm_bed::commands;
use prewarm_bed::programs::{self, MODULES, Module};

/// Whether the programs can be had on this machine.
pub enum Readiness {
    Ready,
    /// In one line, what is missing and what to do about it.
    Missing(String),
}

pub fn run() -> anyhow::Result<()> {
    match prepare()? {
        Readiness::Missing(what) => bail!(what),
        Readiness::Ready => report_places(),
    }
    Ok(())
}

/// Installs packages and builds programs, as far as they are not there yet.
pub fn prepare() -> anyhow::Result<Readiness> {
    packages::install_missing(commands::NEEDED)?;
    let absent: Vec<&Module> = MODULES.iter().filter(|module| !module.is_present()).collect();
    if absent.is_empty() {
        return Ok(Readiness::Ready);
    }
    if let Err(what) = go::check() {
        return Ok(Readiness::Missing(what));
    }
    if absent.iter().any(|module| module.native.is_some()) {
        packages::install_missing(commands::COMPILING)?;
        let missing = commands::missing(commands::COMPILING);
        if let Some(first) = missing.first() {
            let what = format!("{} is missing: install the package {}", first.name, first.package);
            return Ok(Readiness::Missing(what));
        }
    }
    build::build(&absent)?;
    Ok(Readiness::Ready)
}

fn report_places() {
    for program in MODULES.iter().flat_map(Module::names) {
        if let Ok(path) = programs::locate(program) {
            println!("{program:<24} {}", path.display());
        }
    }
}
