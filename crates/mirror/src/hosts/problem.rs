//! What is in the way of a file or a mirror, as sentences that say what to do. Values of headers and secrets in addresses
//! are never part of them.

use std::fmt;
use std::path::{Path, PathBuf};

use super::MAX_MIRRORS;
use super::lookup::MAX_FILE_BYTES;
use super::table::MAX_HEADERS;
use super::tls::MAX_PEM_BYTES;

/// Something that makes a file or one of its tables unusable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file, unless none was found.
    pub file: Option<PathBuf>,
    /// The host that the table is about, without credentials.
    pub table: Option<String>,
    pub reason: Reason,
}

/// What is wrong, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    #[error("no mirrors are configured: none of {} exists; name a mirror in `hosts.toml` of one of them, or set --containerd-host-dir to the directory that containerd's config_path names", listed(.0))]
    NotFound(Vec<PathBuf>),
    #[error("the directory of hosts {} does not exist; mount the directory that containerd's config_path names, or set --containerd-host-dir to it", listed(.0))]
    NoRoot(Vec<PathBuf>),
    #[error(
        "it does not exist, so the registry has no mirrors; containerd looks no further than its directory: write the file, or remove the directory"
    )]
    NoFile,
    #[error(
        "it is a link to what the agent does not see; mount what it leads to at the same path, or put the files themselves there"
    )]
    Dangling,
    #[error("cannot be read ({0}); let the agent's user read it")]
    Unreadable(String),
    #[error("has more than {MAX_FILE_BYTES} bytes; remove what containerd does not need")]
    TooLarge,
    #[error("line {line} is not TOML: {message}; correct it, containerd ignores the whole file")]
    Syntax { line: usize, message: String },
    #[error("`{field}` has to be {expected}; correct it, containerd ignores the whole file")]
    Type { field: String, expected: &'static str },
    #[error(
        "`{0}` is no capability; write pull, resolve, push or referrers, containerd ignores the whole file"
    )]
    Capability(String),
    #[error("its name is no address; write it as `https://host:port`, containerd cannot ask it either")]
    Address,
    #[error("containerd reads only hosts with a header line `[host.\"…\"]` of their own; write it so")]
    NoHeader,
    #[error(
        "names no mirror besides the registry itself; add a table `[host.\"https://mirror\"]` with capability pull"
    )]
    NoMirror,
    #[error(
        "is the registry itself, or where `server` says that it is, and MirrorOnly never asks it; remove the table, or leave `server` the registry's own address"
    )]
    Upstream,
    #[error(
        "is on the node's loopback, which a pod cannot reach; let the mirror listen on the node's address and name that one, or run the agent in the node's network"
    )]
    Loopback,
    #[error("stands after the first {MAX_MIRRORS} mirrors, which are all that is asked; remove some")]
    TooManyMirrors,
    #[error(
        "the file {path} of `{field}` cannot be read ({why}); put it beside hosts.toml, where the agent sees it, and let the agent's user read it"
    )]
    UnreadableFile { field: &'static str, path: PathBuf, why: String },
    #[error(
        "the file {path} of `{field}` has more than {MAX_PEM_BYTES} bytes; keep only what this mirror needs"
    )]
    LargeFile { field: &'static str, path: PathBuf },
    #[error("the file {path} of `{field}` holds no {what} in PEM; write it again")]
    NoPem { field: &'static str, path: PathBuf, what: &'static str },
    #[error("the certificate and key of {path} cannot be used ({why}); make a matching pair")]
    ClientPair { path: PathBuf, why: String },
    #[error(
        "this system has no certificates of authorities, and the table names none; name the mirror's with `ca`"
    )]
    NoRoots,
    #[error("`{0}` is not a header that can be sent; correct its name and value")]
    Header(String),
    #[error("has more than {MAX_HEADERS} header values; remove some")]
    TooManyHeaders,
}

impl Problem {
    pub(super) fn of(reason: Reason) -> Self {
        Self { file: None, table: None, reason }
    }

    pub(super) fn in_file(file: &Path, reason: Reason) -> Self {
        Self::new(file, None, reason)
    }

    pub(super) fn new(file: &Path, table: Option<String>, reason: Reason) -> Self {
        let table = table.map(|name| public(&name));
        Self { file: Some(file.to_owned()), table, reason }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{}: ", file.display())?;
        }
        if let Some(table) = &self.table {
            write!(f, "[host.\"{table}\"]: ")?;
        }
        self.reason.fmt(f)
    }
}

/// A host's name as it may be shown: without user, password and query.
fn public(name: &str) -> String {
    const MAX_SHOWN: usize = 200;
    let name = name.split(['?', '#']).next().unwrap_or_default();
    let (scheme, rest) = name.split_once("://").map_or((None, name), |(scheme, rest)| (Some(scheme), rest));
    // Credentials are before the last `@`, wherever the address is cut.
    let rest = rest.rsplit_once('@').map_or(rest, |(_, rest)| rest);
    let whole = scheme.map_or_else(|| rest.to_owned(), |scheme| format!("{scheme}://{rest}"));
    prewarm_api::text::cut(&prewarm_api::text::plain(&whole), MAX_SHOWN)
}

fn listed(paths: &[PathBuf]) -> String {
    let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    paths.join(", ")
}
