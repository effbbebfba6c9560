//! The disk guard: how much room there is where the images lie, and whether that is enough.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use prewarm_plan::agent::disk::{MinFree, Room, Shortage};

use crate::config::{RuntimeChoice, SimulatedDisk};
use crate::disk::Filesystem;

/// Watches one filesystem. Its clones share what they know.
#[derive(Clone)]
pub struct RoomGuard {
    disk: Disk,
    path: Arc<str>,
    min_free: MinFree,
    is_held: Arc<AtomicBool>,
}

/// Where images lie.
#[derive(Clone)]
pub enum Disk {
    /// On a filesystem, which is asked each time.
    Real(Arc<Filesystem>),
    /// On one that is simulated.
    Simulated(SimulatedDisk),
}

impl RuntimeChoice {
    /// The disk of a runtime that keeps its images at this path: the filesystem of the path, or of the nearest ancestor
    /// that can be reached, unless it is simulated.
    pub(crate) fn disk(&self, path: &Path) -> Disk {
        match self {
            Self::Given(_) | Self::In(_) => Disk::Real(Arc::new(Filesystem::nearest(path))),
            Self::Simulated(_, disk) => Disk::Simulated(Arc::clone(disk)),
        }
    }
}

impl RoomGuard {
    /// Watches the disk on which the images lie at this path.
    pub fn new(path: &Path, disk: Disk, min_free: MinFree) -> Self {
        Self { disk, path: path.display().to_string().into(), min_free, is_held: Arc::default() }
    }

    /// How much room there is. A filesystem that cannot be asked does not keep images away.
    pub fn room(&self) -> Option<Room> {
        match &self.disk {
            Disk::Real(filesystem) => filesystem.read().ok(),
            Disk::Simulated(room) => Some(room()),
        }
    }

    /// Why no pull may start, if so. Once held, pulls start again only when some more than the floor is free.
    pub fn holds(&self) -> Option<Shortage> {
        let room = self.room()?;
        let was_held = self.is_held.load(Ordering::Relaxed);
        let is_held = if was_held {
            self.min_free.is_still_low(room.free, room.capacity)
        } else {
            self.min_free.is_low(room.free, room.capacity)
        };
        self.is_held.store(is_held, Ordering::Relaxed);
        is_held.then(|| self.shortage(room))
    }

    /// Why a running pull has to stop, if so.
    pub fn crossed(&self) -> Option<Shortage> {
        let room = self.room()?;
        self.min_free.is_low(room.free, room.capacity).then(|| self.shortage(room))
    }

    fn shortage(&self, room: Room) -> Shortage {
        Shortage { room, min_free: self.min_free, path: self.path.clone() }
    }
}
