//! What a node with containerd has: finished content as files, tags as containerd's client lists them.

use std::io;
use std::path::PathBuf;

use anyhow::Context as _;
use prewarm_bed::programs;
use serde_json::Value;
use tokio::fs::{self, File};
use tokio::process::Command;

use crate::node::Node;

/// The largest content that may be a manifest.
const MAX_MANIFEST: u64 = 4 * 1024 * 1024;

/// The content of one node.
pub struct Store {
    blobs: PathBuf,
    socket: PathBuf,
}

impl Store {
    pub fn of(node: &Node) -> Self {
        let blobs = node.image_directory().join("io.containerd.content.v1.content/blobs");
        Self { blobs, socket: node.socket() }
    }

    /// The digest that an image's name stands for on this node.
    pub async fn resolve(&self, image: &str) -> anyhow::Result<Option<String>> {
        let mut command = Command::new(programs::locate("ctr")?);
        command.arg("--address").arg(&self.socket).args(["--namespace", "k8s.io", "images", "list"]);
        let output = command.arg(format!("name=={image}")).kill_on_drop(true).output().await?;
        anyhow::ensure!(output.status.success(), "ctr: {}", String::from_utf8_lossy(&output.stderr).trim());
        let table = String::from_utf8(output.stdout).context("ctr printed no text")?;
        let row = table.lines().find(|row| row.split_whitespace().next() == Some(image));
        Ok(row.and_then(|row| row.split_whitespace().nth(2)).map(ToOwned::to_owned))
    }

    /// Opens content that is complete, with its length.
    pub async fn open(&self, digest: &str) -> io::Result<Option<(File, u64)>> {
        let Some(path) = self.path(digest) else { return Ok(None) };
        match File::open(path).await {
            Ok(file) => {
                let length = file.metadata().await?.len();
                Ok(Some((file, length)))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What kind of manifest content is, as it says itself or by what it has. None if it is no manifest.
    pub async fn media_type(&self, digest: &str, length: u64) -> io::Result<Option<String>> {
        let Some(path) = self.path(digest).filter(|_| length <= MAX_MANIFEST) else { return Ok(None) };
        Ok(media_type(&fs::read(path).await?))
    }

    fn path(&self, digest: &str) -> Option<PathBuf> {
        let (algorithm, digits) = digest.split_once(':')?;
        let is_name = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        (is_name(algorithm) && is_name(digits)).then(|| self.blobs.join(algorithm).join(digits))
    }
}

fn media_type(bytes: &[u8]) -> Option<String> {
    let document: Value = serde_json::from_slice(bytes).ok()?;
    if let Some(own) = document.get("mediaType").and_then(Value::as_str) {
        return Some(own.to_owned());
    }
    let has = |key| document.get(key).is_some();
    let kind = match (has("manifests"), has("config") && has("layers")) {
        (true, _) => "application/vnd.oci.image.index.v1+json",
        (false, true) => "application/vnd.oci.image.manifest.v1+json",
        (false, false) => return None,
    };
    Some(kind.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_a_manifest_is_found_out() {
        let kind = |text: &str| media_type(text.as_bytes());
        assert_eq!(kind(r#"{"mediaType":"x/y"}"#).as_deref(), Some("x/y"));
        assert!(kind(r#"{"manifests":[]}"#).is_some_and(|kind| kind.contains("index")));
        assert!(kind(r#"{"config":{},"layers":[]}"#).is_some_and(|kind| kind.contains("manifest.v1")));
        assert_eq!(kind("{}"), None);
        assert_eq!(kind("\u{1f}\u{8b}"), None);
    }
}
