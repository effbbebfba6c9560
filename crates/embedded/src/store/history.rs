//! The changes that a resource remembers, to resume watches and to list an earlier revision.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use bytes::{BufMut as _, Bytes, BytesMut};

use super::Stored;
use super::view::Overlay;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    Added,
    Modified,
    Deleted,
}

/// One change of one object.
#[derive(Debug)]
pub struct Change {
    pub kind: ChangeKind,
    /// The object after the change. For a removal it is the last state, with the revision of the removal.
    pub object: Arc<Stored>,
    /// The object before the change.
    pub previous: Option<Arc<Stored>>,
    /// The lines for watchers, by what they see. Each is rendered once.
    lines: [OnceLock<(String, Bytes)>; 3],
}

/// The history does not go back far enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooOld {
    /// The oldest revision that the history can answer for.
    pub oldest: u64,
}

impl ChangeKind {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

impl Change {
    pub(super) fn new(kind: ChangeKind, object: Arc<Stored>, previous: Option<Arc<Stored>>) -> Self {
        Self { kind, object, previous, lines: Default::default() }
    }

    /// The line for watchers that see this change as `kind`, in one version. It is kept for the first watcher's
    /// version; for other versions, which are rare, it is rendered each time.
    pub fn line(&self, kind: ChangeKind, api_version: &str, object_kind: &str) -> Bytes {
        let make = || match &self.previous {
            // A watcher that no longer sees an object gets the state in which it last saw it.
            Some(previous) if kind == ChangeKind::Deleted && self.kind != ChangeKind::Deleted => {
                line(kind, &previous.at_revision(self.object.revision), api_version, object_kind)
            }
            _ => line(kind, &self.object, api_version, object_kind),
        };
        let (version, line) = self.lines[kind as usize].get_or_init(|| (api_version.to_owned(), make()));
        if version == api_version { line.clone() } else { make() }
    }

    /// The memory that the change holds. The object before it usually belongs to another change too; counting it twice
    /// makes up for the lines.
    fn bytes(&self) -> usize {
        self.previous.as_ref().map_or(0, |previous| previous.body.len()) + self.object.body.len()
    }
}

/// One line of a watch.
pub fn line(kind: ChangeKind, object: &Stored, api_version: &str, object_kind: &str) -> Bytes {
    let mut line = BytesMut::with_capacity(object.body.len() + 128);
    line.put_slice(b"{\"type\":\"");
    line.put_slice(kind.as_str().as_bytes());
    line.put_slice(b"\",\"object\":");
    object.write(api_version, object_kind, &mut line);
    line.put_slice(b"}\n");
    line.freeze()
}

/// The remembered changes of one resource, oldest first.
#[derive(Clone, Debug)]
pub(super) struct History {
    changes: VecDeque<Arc<Change>>,
    bytes: usize,
    max_changes: usize,
    max_bytes: usize,
    /// The history has every change after this revision.
    complete_after: u64,
}

impl History {
    pub(super) fn new(max_changes: usize, max_bytes: usize, revision: u64) -> Self {
        Self { changes: VecDeque::new(), bytes: 0, max_changes, max_bytes, complete_after: revision }
    }

    pub(super) fn push(&mut self, change: Arc<Change>) {
        self.bytes += change.bytes();
        self.changes.push_back(change);
        while self.changes.len() > self.max_changes || self.bytes > self.max_bytes {
            let Some(oldest) = self.changes.pop_front() else { break };
            self.bytes -= oldest.bytes();
            self.complete_after = oldest.object.revision;
        }
    }

    /// The changes after a revision.
    pub(super) fn since(&self, revision: u64) -> Result<Vec<Arc<Change>>, TooOld> {
        self.check(revision)?;
        let first = self.changes.partition_point(|change| change.object.revision <= revision);
        Ok(self.changes.range(first..).cloned().collect())
    }

    /// The state at a revision of each object that changed after it.
    pub(super) fn undone(&self, revision: u64) -> Result<Overlay<'_>, TooOld> {
        self.check(revision)?;
        let later = self.changes.iter().rev().take_while(|change| change.object.revision > revision);
        Ok(later.map(|change| (&change.object.key, change.previous.as_ref())).collect())
    }

    fn check(&self, revision: u64) -> Result<(), TooOld> {
        if revision < self.complete_after { Err(TooOld { oldest: self.complete_after }) } else { Ok(()) }
    }
}
