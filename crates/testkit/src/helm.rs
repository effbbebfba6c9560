//! Helm without any settings of the machine's user.

use std::process::Command;

use anyhow::{Context as _, ensure};
use prewarm_bed::{inside, programs};

/// Runs Helm and returns its output.
pub fn run(arguments: &[&str]) -> anyhow::Result<String> {
    let home = inside::directory("helm")?;
    let mut helm = Command::new(programs::locate("helm")?);
    helm.args(arguments).env("HOME", home).env_remove("HELM_NAMESPACE");
    let output = helm.output().context("starting helm")?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    let printed = String::from_utf8(output.stdout).context("helm printed no text")?;
    ensure!(output.status.success(), "helm {}: {}{}", arguments.join(" "), complaint.trim(), printed.trim());
    Ok(printed)
}
