//! The limits of a server, each with a name.

use std::time::Duration;

/// What a server accepts and keeps. The defaults are those of a real server with etcd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The largest body of a request, in bytes.
    pub max_body_bytes: usize,
    /// The largest stored object as JSON, in bytes.
    pub max_object_bytes: usize,
    /// How many events wait for a slow watcher before it is cut off.
    pub watch_buffer: usize,
    /// How often a watch that asked for bookmarks gets one.
    pub bookmark_interval: Duration,
    /// How many changes each resource remembers, for watches that resume and lists that continue.
    pub history_changes: usize,
    /// How many bytes the objects in those changes may have.
    pub history_bytes: usize,
    /// The seed of the names and UIDs that the server generates.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            max_body_bytes: 3 * 1024 * 1024,
            max_object_bytes: 3 * 512 * 1024,
            watch_buffer: 1024,
            bookmark_interval: Duration::from_mins(1),
            history_changes: 10_000,
            history_bytes: 64 * 1024 * 1024,
            seed: 0,
        }
    }
}
