//! The disk guard's eyes: how much room there is where the images lie. Whether that is enough is decided in `prewarm-plan`.

use std::path::Path;
use std::sync::Arc;

use prewarm_plan::agent::disk::{DiskRoom, MinFree};

use crate::config::{RuntimeChoice, SimulatedDisk};
use crate::disk::Filesystem;

/// Watches one filesystem.
#[derive(Clone)]
pub struct RoomGuard {
    disk: Disk,
    path: Arc<str>,
    min_free: MinFree,
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
        Self { disk, path: path.display().to_string().into(), min_free }
    }

    /// How much room there is. A filesystem that cannot be asked does not keep images away.
    pub fn read(&self) -> Option<DiskRoom> {
        let room = match &self.disk {
            Disk::Real(filesystem) => filesystem.read().ok()?,
            Disk::Simulated(room) => room(),
        };
        Some(DiskRoom { room, min_free: self.min_free, path: self.path.clone() })
    }
}
