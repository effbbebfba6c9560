//! Which mirrors a registry has on this node: containerd's `hosts.toml`, read as containerd 2.4 reads it, and then without
//! the registry itself (ofen A11, W19).
//!
//! Three steps: [`lookup`] finds the file and reads it, [`document`] and [`table`] say what stands in it, and here it is
//! decided which of its hosts are mirrors. Whatever makes a file or a mirror unusable is a [`Problem`], never silence
//! (ofen W8).

use std::fmt;
use std::path::{Path, PathBuf};

pub use address::{Address, Scheme};
pub use problem::{Problem, Reason};
pub use upstream::Upstream;

use document::Document;
use lookup::Found;
use table::Table;
pub(crate) use tls::Tls;

mod address;
mod document;
mod lookup;
mod problem;
mod table;
mod tls;
mod upstream;

/// The most mirrors of one registry. Each of them may have to be waited for.
pub const MAX_MIRRORS: usize = 16;

/// Where mirrors are looked for, and which of them can be reached from here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Directories of hosts, such as `/etc/containerd/certs.d`. The first that has something for a registry counts.
    pub roots: Vec<PathBuf>,
    /// Whether loopback here is the node's, so that mirrors on it can be reached.
    pub shares_network: bool,
}

/// The mirrors of one registry.
#[derive(Clone, Debug)]
pub struct Hosts {
    /// The registry, as image references name it.
    pub registry: String,
    /// The directories that were looked for, up to the one that exists.
    pub looked_for: Vec<PathBuf>,
    /// The file that was read, if there is one.
    pub file: Option<PathBuf>,
    /// What may be asked, in this order.
    pub mirrors: Vec<Mirror>,
    /// What is in the way of the file or of some mirrors.
    pub problems: Vec<Problem>,
    /// What must not be asked, by whatever way it is named.
    pub upstream: Upstream,
}

/// A host that may be asked for content.
#[derive(Clone, Debug)]
pub struct Mirror {
    /// Where it is.
    pub address: Address,
    /// Whether it may be asked what a tag stands for. All mirrors may be asked for content by digest.
    pub may_resolve: bool,
    pub(crate) table: Table,
    pub(crate) tls: Tls,
}

impl Hosts {
    /// Looks the mirrors of a registry up. This reads files.
    pub fn read(settings: &Settings, registry: &str) -> Self {
        let (looked_for, found) = lookup::find(&settings.roots, registry);
        let mut hosts = Self {
            registry: registry.to_owned(),
            looked_for,
            file: None,
            mirrors: Vec::new(),
            problems: Vec::new(),
            upstream: Upstream::of(registry),
        };
        match found {
            Found::Nothing(reason) => hosts.problems.push(Problem::of(reason)),
            Found::Unreadable(file, reason) => {
                hosts.problems.push(Problem::in_file(&file, reason));
                hosts.file = Some(file);
            }
            Found::File(file, text) => {
                hosts.take(settings, &file, &text);
                hosts.file = Some(file);
            }
        }
        hosts
    }

    /// Settles which hosts of a file are mirrors.
    fn take(&mut self, settings: &Settings, file: &Path, text: &str) {
        let directory = file.parent().unwrap_or(Path::new("/"));
        let document = match Document::read(text, directory) {
            Ok(document) => document,
            // containerd takes nothing of such a file, and neither does this.
            Err((table, reason)) => return self.problems.push(Problem::new(file, table, reason)),
        };
        self.upstream.add(document.server.as_ref());
        for name in document.without_header {
            self.problems.push(Problem::new(file, Some(name), Reason::NoHeader));
        }
        for (name, table) in document.tables {
            match self.judge(settings, table) {
                Ok(Some(mirror)) => self.mirrors.push(mirror),
                Ok(None) => {}
                Err(reason) => self.problems.push(Problem::new(file, Some(name), reason)),
            }
        }
        if self.mirrors.is_empty() && self.problems.is_empty() {
            self.problems.push(Problem::in_file(file, Reason::NoMirror));
        }
    }

    /// A mirror, or why a host is none. Nothing for hosts that are not meant to be pulled from.
    fn judge(&self, settings: &Settings, table: Table) -> Result<Option<Mirror>, Reason> {
        let address = table.address.clone().ok_or(Reason::Address)?;
        if !table.capabilities.pull {
            return Ok(None);
        }
        if self.upstream.is(&address.host, address.port) {
            return Err(Reason::Upstream);
        }
        if address.is_loopback() && !settings.shares_network {
            return Err(Reason::Loopback);
        }
        if self.mirrors.len() == MAX_MIRRORS {
            return Err(Reason::TooManyMirrors);
        }
        let tls = Tls::read(&table, address.scheme)?;
        Ok(Some(Mirror { address, may_resolve: table.capabilities.resolve, table, tls }))
    }

    /// Why there is no mirror, in a sentence; also why some are left out, if there are problems besides.
    pub fn why_none(&self) -> String {
        let problems: Vec<String> = self.problems.iter().map(ToString::to_string).collect();
        problems.join("; ")
    }
}

/// Its address, which is how messages name a mirror.
impl fmt::Display for Mirror {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
    }
}

#[cfg(test)]
mod tests;
