//! Finds a registry's `hosts.toml` where containerd finds it, and reads it within a bound.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use super::problem::Reason;

/// The most bytes of a `hosts.toml`.
pub(super) const MAX_FILE_BYTES: u64 = 256 * 1024;
/// The directory for all registries that have none of their own.
const FALLBACK: &str = "_default";

/// What a lookup found.
pub(super) enum Found {
    Nothing(Reason),
    Unreadable(PathBuf, Reason),
    File(PathBuf, String),
}

/// Looks a registry's file up, and says which directories were looked for.
pub(super) fn find(roots: &[PathBuf], registry: &str) -> (Vec<PathBuf>, Found) {
    let mut looked_for = Vec::new();
    for root in roots {
        for directory in directories(root, registry) {
            looked_for.push(directory.clone());
            match fs::metadata(&directory) {
                // The first that exists counts, whatever is in it.
                Ok(_) => return (looked_for, read(&directory.join("hosts.toml"))),
                // The node's containerd sees what the link leads to, and would look no further.
                Err(_) if is_link(&directory) => {
                    return (looked_for, Found::Unreadable(directory, Reason::Dangling));
                }
                Err(error) if is_absent(&error) => {}
                Err(error) => {
                    return (looked_for, Found::Unreadable(directory, Reason::Unreadable(error.to_string())));
                }
            }
        }
    }
    let reason = if roots.iter().any(|root| root.exists()) {
        Reason::NotFound(looked_for.clone())
    } else {
        Reason::NoRoot(roots.to_vec())
    };
    (looked_for, Found::Nothing(reason))
}

/// The directories that may hold a registry's file, the most specific one first. A colon cannot stand in a path on every
/// system, so there are two ways to write a port.
fn directories(root: &Path, registry: &str) -> Vec<PathBuf> {
    let with_port = registry.rsplit_once(':').filter(|(host, _)| !host.is_empty());
    let underscored = with_port.map(|(host, port)| format!("{host}_{port}_"));
    let names = underscored.into_iter().chain([registry.to_owned(), FALLBACK.to_owned()]);
    // References are checked before they come here; a registry that is a path still must not lead out of the directory.
    names.filter(|name| !name.contains('/') && name != "..").map(|name| root.join(name)).collect()
}

fn read(path: &Path) -> Found {
    match read_text(path) {
        Ok(Some(text)) => Found::File(path.to_owned(), text),
        Ok(None) => Found::Unreadable(path.to_owned(), Reason::TooLarge),
        Err(_) if is_link(path) && !path.exists() => Found::Unreadable(path.to_owned(), Reason::Dangling),
        Err(error) if is_absent(&error) => Found::Unreadable(path.to_owned(), Reason::NoFile),
        Err(error) => Found::Unreadable(path.to_owned(), Reason::Unreadable(error.to_string())),
    }
}

/// The text, or nothing if it is too long.
fn read_text(path: &Path) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Ok(None);
    }
    String::from_utf8(bytes).map(Some).map_err(|_| io::Error::other("it is not UTF-8"))
}

fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink())
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
