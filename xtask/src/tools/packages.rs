//! Packages of the distribution: installed where that is possible, named where it is not.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use prewarm_bed::commands::{self, Command as Needed, find};

/// Installs the packages of missing commands as root with apt; otherwise names them in one line.
pub fn install_missing(needed: &[Needed]) -> anyhow::Result<()> {
    let missing: BTreeSet<&str> = commands::missing(needed).iter().map(|command| command.package).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let missing: Vec<&str> = missing.into_iter().collect();
    if !prewarm_bed::enter::is_root() || find("apt-get").is_none() {
        println!("missing packages: {}", missing.join(" "));
        return Ok(());
    }
    println!("installing packages: {}", missing.join(" "));
    if install(&missing).is_err() {
        // A machine that never looked does not know of any package yet.
        apt_get(&["update"])?;
        install(&missing)?;
    }
    Ok(())
}

fn install(packages: &[&str]) -> anyhow::Result<()> {
    let mut arguments = vec!["install", "--yes", "--no-install-recommends"];
    arguments.extend(packages);
    apt_get(&arguments)
}

fn apt_get(arguments: &[&str]) -> anyhow::Result<()> {
    let mut command = Command::new("apt-get");
    command.arg("--quiet").args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
    let output = command.stdin(Stdio::null()).output().context("starting apt-get")?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "apt-get {}: {}", arguments.join(" "), complaint.trim());
    Ok(())
}
