//! How much room a filesystem has.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{StatVfs, statvfs};
use rustix::io::Errno;

pub use prewarm_plan::agent::disk::{Inodes, Room};

/// The filesystem that holds a directory, also if the agent may not look into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filesystem {
    path: PathBuf,
}

impl Filesystem {
    /// The filesystem of a directory, or of its nearest ancestor that can be reached: a runtime's own directory is
    /// closed to others, yet it lies on its parent's filesystem or is itself the place of a mount, and both can be
    /// asked from outside.
    pub fn nearest(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// Asks how much room there is. The way up is walked each time, since a directory can appear later.
    pub fn read(&self) -> io::Result<Room> {
        self.look().map(|(room, _)| room)
    }

    /// The same, and how many files there can be, on filesystems that have a limit.
    pub fn look(&self) -> io::Result<(Room, Option<Inodes>)> {
        let mut refusal = Errno::NOENT;
        for path in self.path.ancestors().filter(|path| !path.as_os_str().is_empty()) {
            match statvfs(path) {
                Ok(stat) => return Ok((room(&stat), inodes(&stat))),
                Err(error) if [Errno::ACCESS, Errno::NOENT, Errno::NOTDIR].contains(&error) => {
                    refusal = error;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(refusal.into())
    }
}

fn room(stat: &StatVfs) -> Room {
    let bytes = |blocks: u64| blocks.saturating_mul(stat.f_frsize);
    Room { free: bytes(stat.f_bavail), capacity: bytes(stat.f_blocks) }
}

/// Filesystems that make inodes as they need them say that there are none at all.
fn inodes(stat: &StatVfs) -> Option<Inodes> {
    let StatVfs { f_favail: free, f_files: total, .. } = *stat;
    (total > 0).then_some(Inodes { free, total })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// Free room changes while other programs write, so only what is fixed is compared.
    fn capacity(path: &str) -> u64 {
        let room = Filesystem::nearest(Path::new(path)).read().unwrap();
        assert!(room.free <= room.capacity, "{room:?}");
        room.capacity
    }

    #[test]
    fn a_filesystem_is_as_large_as_df_says() {
        let output = std::process::Command::new("df").args(["-B1", "--output=size", "/"]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text.lines().nth(1).unwrap().trim(), capacity("/").to_string());
    }

    #[test]
    fn a_filesystem_has_as_many_inodes_as_df_says() {
        let output = std::process::Command::new("df").args(["--output=itotal", "/dev/shm"]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let (_, inodes) = Filesystem::nearest(Path::new("/dev/shm")).look().unwrap();
        let inodes = inodes.expect("a filesystem in memory has a limit");
        assert_eq!(text.lines().nth(1).unwrap().trim(), inodes.total.to_string());
        assert!(inodes.free <= inodes.total, "{inodes:?}");
    }

    #[test]
    fn a_directory_that_is_not_there_is_asked_through_its_ancestor() {
        let directory = std::env::temp_dir();
        let absent = directory.join("prewarm-is-not-here/deep/down");
        assert_eq!(capacity(absent.to_str().unwrap()), capacity(directory.to_str().unwrap()));
    }

    #[test]
    fn a_mount_below_the_root_is_asked_itself() {
        // `/proc` has no blocks at all, unlike every root.
        assert_eq!(capacity("/proc/self"), 0);
        assert_ne!(capacity("/"), 0);
    }

    #[test]
    fn a_file_in_the_way_is_stepped_over() {
        assert_ne!(capacity("/etc/passwd/not/a/directory"), 0);
    }

    #[test]
    fn a_closed_directory_is_asked_from_outside() {
        let closed = std::env::temp_dir().join(format!("prewarm-closed-{}", std::process::id()));
        std::fs::create_dir_all(closed.join("inner")).unwrap();
        std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o000)).unwrap();
        let capacity_inside = capacity(closed.join("inner").to_str().unwrap());
        std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o700)).unwrap();
        std::fs::remove_dir_all(&closed).unwrap();
        assert_eq!(capacity_inside, capacity(std::env::temp_dir().to_str().unwrap()));
    }

    #[test]
    fn a_path_without_any_ancestor_is_an_error() {
        assert_eq!(Filesystem::nearest(Path::new("")).read().unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
