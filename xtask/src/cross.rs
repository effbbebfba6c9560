//! What it takes to build and to start a program for another processor.

use std::env;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail, ensure};
use prewarm_bed::commands::find;

use crate::image::Platform;

/// The compilers that may have the standard library of a platform: the usual one, with what rustup adds to it, and that of the
/// distribution, which has such libraries as packages.
const COMPILERS: [&str; 2] = ["rustc", "/usr/bin/rustc"];

/// Lets a call of cargo build for a platform.
pub fn prepare(command: &mut Command, platform: &Platform) -> anyhow::Result<()> {
    if platform.is_own() {
        return Ok(());
    }
    let Some(compiler) = COMPILERS.iter().find(|compiler| has_library(compiler, platform.target)) else {
        bail!(
            "no compiler has the standard library of {}; `rustup target add {}`, or install {}",
            platform.target,
            platform.target,
            platform.packages,
        );
    };
    command.env("RUSTC", compiler);
    let variable = format!("CARGO_TARGET_{}_LINKER", platform.target.replace('-', "_").to_uppercase());
    if env::var_os(&variable).is_none() {
        ensure!(
            find(platform.linker).is_some(),
            "nothing links for {}: {} is missing; install {}, or name another linker in {variable}",
            platform.target,
            platform.linker,
            platform.packages,
        );
        command.env(variable, platform.linker);
    }
    Ok(())
}

fn has_library(compiler: &str, target: &str) -> bool {
    let output = Command::new(compiler).args(["--print", "target-libdir", "--target", target]).output();
    let Ok(output) = output else { return false };
    let directory = String::from_utf8_lossy(&output.stdout);
    output.status.success() && Path::new(directory.trim()).is_dir()
}

/// Starts a program once, if need be on a processor that is emulated.
pub fn try_out(program: &Path, platform: &Platform) -> anyhow::Result<()> {
    let mut command = if platform.is_own() {
        Command::new(program)
    } else {
        let mut command = Command::new(platform.emulator);
        command.arg(program);
        command
    };
    let output = match command.arg("version").output() {
        Err(_) if !platform.is_own() => {
            println!("the program for {} is not tried: there is no {}", platform.name, platform.emulator);
            return Ok(());
        }
        output => output.with_context(|| format!("starting the program for {}", platform.name))?,
    };
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "the program for {} does not start: {complaint}", platform.name);
    println!("the program for {} says {}", platform.name, String::from_utf8_lossy(&output.stdout).trim());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::PLATFORMS;

    #[test]
    fn the_usual_compiler_builds_for_this_machine() {
        let own = PLATFORMS.iter().find(|platform| platform.is_own()).expect("tests run on one of them");
        let mut command = Command::new("cargo");
        prepare(&mut command, own).unwrap();
        assert_eq!(command.get_envs().count(), 0);
        assert!(has_library("rustc", own.target));
    }

    #[test]
    fn a_missing_compiler_has_no_library() {
        assert!(!has_library("no-such-compiler", "x86_64-unknown-linux-gnu"));
        assert!(!has_library("rustc", "no-such-target"));
    }
}
