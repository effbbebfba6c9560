//! The limits of a server, each with a name.

use std::time::Duration;

/// What a server takes and keeps. The defaults are those of a real server with etcd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Bytes of a request's body.
    pub max_body_bytes: usize,
    /// Bytes of a stored object, as JSON.
    pub max_object_bytes: usize,
    /// Events that wait for one slow watcher; with more it is cut off.
    pub watch_buffer: usize,
    /// How often a watch that asked for it hears how far the server is.
    pub bookmark_interval: Duration,
    /// Changes that each resource remembers, for watches that resume and lists that go on.
    pub history_changes: usize,
    /// Bytes of the objects in those changes.
    pub history_bytes: usize,
    /// Seed of the names and UIDs that the server makes up.
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
