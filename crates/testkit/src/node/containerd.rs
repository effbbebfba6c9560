//! containerd beside other instances: every path that they would share is its own.

mod config;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::{Node, Places};
pub use config::{Containerd, Plugins};

/// The namespace in which Kubernetes keeps its images.
const NAMESPACE: &str = "k8s.io";

/// The rule for all hosts without a directory of their own. Without it, containerd would ask the machine's resolver for
/// names that exist only in tests.
const ANY_HOST: &str = "_default";

/// Writes `config.toml` and creates what it refers to. Returns the arguments of containerd.
pub fn prepare(
    places: &Places,
    registry: &str,
    release: Containerd,
    plugins: &Plugins,
) -> anyhow::Result<Vec<PathBuf>> {
    for part in ["state", "opt", "cni"] {
        fs::create_dir_all(places.directory.join(part)).context("creating the node's directories")?;
    }
    let config = places.directory.join("config.toml");
    fs::write(&config, config::text(places, release, plugins)?).context("writing containerd's config")?;
    lead(&places.directory, ANY_HOST, registry)?;
    Ok(vec!["--config".into(), config])
}

/// Makes the names of a host refer to a registry. containerd reads this at every pull.
pub fn lead(directory: &Path, host: &str, registry: &str) -> anyhow::Result<()> {
    mirror(directory, host, registry, "")
}

/// The same, with tables of mirrors that are asked first.
pub fn mirror(directory: &Path, host: &str, registry: &str, tables: &str) -> anyhow::Result<()> {
    let directory = hosts(directory).join(host);
    fs::create_dir_all(&directory).context("creating the host's directory")?;
    fs::write(directory.join("hosts.toml"), format!("server = \"{registry}\"\n{tables}"))
        .context("writing hosts.toml")
}

/// Where the files of hosts are.
pub fn hosts(directory: &Path) -> PathBuf {
    directory.join("hosts")
}

/// Pulls with containerd's own client.
pub async fn pull(node: &Node, reference: &str) -> anyhow::Result<()> {
    let hosts = hosts(&node.places.directory);
    let hosts = hosts.to_str().context("a bed's paths are text")?;
    ctr(node, ["images", "pull", "--hosts-dir", hosts, reference]).await?;
    Ok(())
}

/// The names of all images in their familiar form.
pub async fn images(node: &Node) -> anyhow::Result<Vec<String>> {
    Ok(references(&ctr(node, ["images", "list"]).await?))
}

/// Removes one name and, before it returns, everything that only that name used.
pub async fn remove(node: &Node, reference: &str) -> anyhow::Result<()> {
    ctr(node, ["images", "remove", "--sync", reference]).await?;
    Ok(())
}

/// Runs containerd's own client and returns its output.
pub async fn ctr<'a>(node: &Node, arguments: impl IntoIterator<Item = &'a str>) -> anyhow::Result<String> {
    let mut command = node.command(&prewarm_bed::programs::locate("ctr")?);
    command.arg("--address").arg(node.socket()).args(["--namespace", NAMESPACE]).args(arguments);
    let output = tokio::process::Command::from(command).kill_on_drop(true).output().await?;
    anyhow::ensure!(output.status.success(), "ctr: {}", String::from_utf8_lossy(&output.stderr).trim());
    String::from_utf8(output.stdout).context("ctr printed no text")
}

/// Parses `ctr images list`: name, type, digest and more. CRI adds names for the image's id and its digest. They are
/// left out, except for the digest of an image that was pulled by it and has no tag.
fn references(table: &str) -> Vec<String> {
    let rows = table.lines().skip(1).filter_map(|line| {
        let mut words = line.split_whitespace();
        Some((words.next()?, words.nth(1)?))
    });
    let rows: Vec<(&str, &str)> = rows.filter(|(name, _)| !name.starts_with("sha256:")).collect();
    let is_tagged = |digest: &str| rows.iter().any(|(name, other)| *other == digest && !name.contains('@'));
    let said = rows.iter().filter(|(name, digest)| !name.contains('@') || !is_tagged(digest));
    said.map(|(name, _)| (*name).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_named_by_its_tags_or_else_by_its_digest() {
        let table = "REF TYPE DIGEST SIZE PLATFORMS LABELS\n\
                     r.example/a:1 application/x sha256:aa 3.0 MiB linux/amd64 -\n\
                     r.example/a@sha256:aa application/x sha256:aa 3.0 MiB linux/amd64 -\n\
                     r.example/b@sha256:bb application/x sha256:bb 3.0 MiB linux/amd64 -\n\
                     sha256:cc application/x sha256:aa 3.0 MiB linux/amd64 -\n";
        assert_eq!(references(table), ["r.example/a:1", "r.example/b@sha256:bb"]);
    }
}
