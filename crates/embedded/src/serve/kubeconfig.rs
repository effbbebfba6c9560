//! The kubeconfig: how kubectl finds the server and authenticates.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use base64::Engine as _;
use rand::TryRng as _;
use rand::rngs::SysRng;
use serde_json::json;

use super::keys::Keys;

/// The text of the kubeconfig. It is JSON, which every YAML reader accepts.
pub fn text(url: &str, keys: &Keys) -> String {
    let authority = base64::engine::general_purpose::STANDARD.encode(&keys.authority);
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            { "name": "prewarm", "cluster": { "server": url, "certificate-authority-data": authority } },
        ],
        "users": [{ "name": "prewarm", "user": { "token": keys.token } }],
        "contexts": [
            { "name": "prewarm", "context": { "cluster": "prewarm", "user": "prewarm", "namespace": "default" } },
        ],
        "current-context": "prewarm",
    });
    format!("{config:#}\n")
}

/// Writes a secret to a new file that others cannot open, which then replaces the old one. A reader finds either the
/// whole old text or the whole new one, and the mode of the old file does not matter.
pub fn write(path: &Path, text: &str) -> io::Result<()> {
    let name = path.file_name().ok_or_else(|| io::Error::other("the kubeconfig's path has no file name"))?;
    let number = SysRng.try_next_u64().map_err(io::Error::other)?;
    let mut beside = name.to_owned();
    beside.push(format!(".{number:016x}"));
    let beside = path.with_file_name(beside);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        // Half a secret is still a secret. The returned error says more than a failure to remove the file.
        let _ = fs::remove_file(&beside);
    }
    written
}
