//! The disk guard's eyes: how much room there is where the images lie. Whether that is enough is decided in `prewarm-plan`.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use prewarm_plan::agent::disk::{DiskRoom, Inodes, MinFree, Room};
use prewarm_runtime::{CallError, Runtime};
use tracing::{info, warn};

use crate::config::{RuntimeChoice, SimulatedDisk};
use crate::disk::Filesystem;

/// How often a runtime is asked again that did not say where its images lie.
const SEARCH_INTERVAL: Duration = Duration::from_secs(10);

/// Watches one filesystem.
#[derive(Clone)]
pub struct RoomGuard {
    disk: Disk,
    path: Arc<str>,
    min_free: MinFree,
    /// Whether it could not look the last time. That is logged when it begins and when it ends.
    is_blind: Arc<AtomicBool>,
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
    /// Watches the disk on which this runtime says that it keeps its images.
    pub async fn of(runtime: &Runtime, choice: &RuntimeChoice, min_free: MinFree) -> Result<Self, CallError> {
        let path = runtime.image_filesystem().await?;
        let disk = choice.disk(&path);
        Ok(Self { disk, path: path.display().to_string().into(), min_free, is_blind: Arc::default() })
    }

    /// The same, however long it takes. That there is no guard until then is said once.
    pub async fn wait_for(runtime: &Runtime, choice: &RuntimeChoice, min_free: MinFree) -> Self {
        let mut has_warned = false;
        loop {
            match Self::of(runtime, choice, min_free).await {
                Ok(guard) => {
                    info!(path = %guard.path, "the room for images is watched");
                    return guard;
                }
                Err(error) if !has_warned => {
                    warn!(%error, "the room for images is not watched: the container runtime does not say where it keeps \
                                   them; asking again");
                    has_warned = true;
                }
                Err(_) => {}
            }
            tokio::time::sleep(SEARCH_INTERVAL).await;
        }
    }

    /// How much room there is. A filesystem that cannot be asked does not keep images away.
    pub fn read(&self) -> Option<DiskRoom> {
        let (room, inodes) = self.look()?;
        Some(DiskRoom { room, inodes, min_free: self.min_free, path: self.path.clone() })
    }

    fn look(&self) -> Option<(Room, Option<Inodes>)> {
        let filesystem = match &self.disk {
            Disk::Real(filesystem) => filesystem,
            Disk::Simulated(room) => return Some((room(), None)),
        };
        let answer = filesystem.look();
        let was_blind = self.is_blind.swap(answer.is_err(), Ordering::Relaxed);
        match answer {
            Ok(room) => {
                if was_blind {
                    info!(path = %self.path, "the room for images can be read again");
                }
                Some(room)
            }
            Err(error) => {
                if !was_blind {
                    warn!(path = %self.path, %error, "the room for images cannot be read; pulls go on without a guard, \
                                                      and it is tried again");
                }
                None
            }
        }
    }
}
