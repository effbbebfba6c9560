//! What stands in a `hosts.toml`: the server, and the tables of hosts in their order.
//!
//! containerd finds the order by the header lines `[host."…"]`, so a host that is written in another way, such as
//! `host = {…}`, is not asked by it and is none here either. One thing that cannot be read makes it ignore the whole file.

use std::path::Path;

use toml_edit::{DocumentMut, Item, TableLike};

use super::address::Address;
use super::problem::Reason;
use super::table::{self, Table};

/// A file, read.
pub(super) struct Document {
    /// Where the file says that the registry itself is.
    pub server: Option<Address>,
    /// Hosts in the order in which they are asked.
    pub tables: Vec<(String, Table)>,
    /// Hosts that containerd does not see.
    pub without_header: Vec<String>,
}

/// What is wrong with a file, and in the table of which host.
type Refusal = (Option<String>, Reason);

impl Document {
    /// Reads a file. Paths in it are relative to its directory.
    pub fn read(text: &str, directory: &Path) -> Result<Self, Refusal> {
        let document: DocumentMut = text.parse().map_err(|error| (None, syntax(text, &error)))?;
        let root = document.as_table();
        // What is said of the server counts for nothing here, and still has to be readable.
        Table::read("", root, directory).map_err(|reason| (None, reason))?;
        let server = match root.get("server") {
            None => None,
            Some(server) => Some(server.as_str().ok_or((None, table::wrong_type("server", "a text")))?),
        };
        let (mut tables, mut without_header) = (Vec::new(), Vec::new());
        for (name, item) in hosts(root)? {
            let host = item
                .as_table_like()
                .ok_or_else(|| (Some(name.to_owned()), table::wrong_type("host", "a table for each host")))?;
            let read = Table::read(name, host, directory);
            let read = read.map_err(|reason| (Some(name.to_owned()), reason))?;
            if has_header(item) {
                tables.push((name.to_owned(), read));
            } else {
                without_header.push(name.to_owned());
            }
        }
        let server = server.and_then(|server| Address::parse(server, false));
        Ok(Self { server, tables, without_header })
    }
}

fn hosts(root: &toml_edit::Table) -> Result<Vec<(&str, &Item)>, Refusal> {
    match root.get("host") {
        None => Ok(Vec::new()),
        Some(hosts) => {
            let hosts: &dyn TableLike = hosts
                .as_table_like()
                .ok_or_else(|| (None, table::wrong_type("host", "a table for each host")))?;
            Ok(hosts.iter().collect())
        }
    }
}

/// Whether a line `[host."…"]`, or one of a table within, begins it.
fn has_header(item: &Item) -> bool {
    let Some(table) = item.as_table() else { return false };
    if !table.is_dotted() && !table.is_implicit() {
        return true;
    }
    table.iter().any(|(_, within)| has_header(within))
}

/// The place and the words of an error, without the line itself: it may hold a secret.
fn syntax(text: &str, error: &toml_edit::TomlError) -> Reason {
    const MAX_MESSAGE: usize = 200;
    let at = error.span().map_or(0, |span| span.start.min(text.len()));
    let line = 1 + text.get(..at).unwrap_or(text).matches('\n').count();
    let message = prewarm_api::text::plain(error.message());
    Reason::Syntax { line, message: prewarm_api::text::cut(&message, MAX_MESSAGE) }
}
