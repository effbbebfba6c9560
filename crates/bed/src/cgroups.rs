//! Removes the cgroup directories of beds that are gone.
//!
//! A bed's name contains the process id of its starter, so a directory whose starter is dead belongs to nobody. Names
//! nest (`prewarm-7`, and `prewarm-7.3` for a bed started inside it), and a bed looks after its own children only:
//! inside it, the process ids of others mean nothing.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

const ROOT: &str = "/sys/fs/cgroup";

/// How long a killed bed may take until its last process has died and its cgroups count as empty.
const PATIENCE: Duration = Duration::from_secs(10);

/// Removes every cgroup directory of one bed, and gives up silently if a process is still in it: the next sweep finds
/// it again.
pub fn sweep(bed: &str) {
    let is_of_bed = |name: &str| name == bed || name.starts_with(&format!("{bed}."));
    for directory in directories(Path::new(ROOT), is_of_bed) {
        let deadline = Instant::now() + PATIENCE;
        while remove_tree(&directory).is_err() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Removes the directories of beds that were started under `prefix` by a process that no longer exists.
pub fn sweep_stale(prefix: &str) {
    let is_stale = |name: &str| {
        starter(name, prefix).is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists())
    };
    for directory in directories(Path::new(ROOT), is_stale) {
        // A failure means that a process is still in it, which does no harm.
        let _still_in_use = remove_tree(&directory);
    }
}

/// The mounted cgroup hierarchies: one directory each for version 1, or one for all with version 2.
pub fn hierarchies() -> Vec<PathBuf> {
    let root = Path::new(ROOT);
    let is_hierarchy = |path: &PathBuf| path.join("cgroup.procs").is_file();
    if is_hierarchy(&root.to_owned()) {
        return vec![root.to_owned()];
    }
    let below = fs::read_dir(root).into_iter().flatten().flatten().map(|entry| entry.path());
    below.filter(is_hierarchy).collect()
}

/// The process id in a bed's name, if the bed was started under `prefix`.
fn starter(name: &str, prefix: &str) -> Option<u32> {
    let rest = name.strip_prefix(prefix)?;
    rest.split('.').next()?.parse().ok()
}

/// The cgroup directories whose name matches, in the one hierarchy of version 2 and in each hierarchy of version 1.
pub fn directories(root: &Path, matches: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let children = |directory: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
    };
    let hierarchies = children(root);
    let inside = hierarchies.iter().flat_map(|hierarchy| children(hierarchy));
    inside
        .chain(hierarchies.iter().cloned())
        .filter(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(&matches))
        .collect()
}

/// Removes a directory and those below it. Another process may do the same: a bed that starts sweeps what it considers
/// stale. The files in a cgroup directory are the kernel's and vanish with it.
fn remove_tree(directory: &Path) -> io::Result<()> {
    let remove = || {
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            if path.is_dir() {
                remove_tree(&path)?;
            }
        }
        fs::remove_dir(directory)
    };
    remove().or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bed_names_its_starter() {
        assert_eq!(starter("prewarm-12", "prewarm-"), Some(12));
        assert_eq!(starter("prewarm-12.7", "prewarm-"), Some(12));
        assert_eq!(starter("prewarm-12.7", "prewarm-12."), Some(7));
        assert_eq!(starter("user.slice", "prewarm-"), None);
        assert_eq!(starter("prewarm-agent", "prewarm-"), None);
    }

    #[test]
    fn directories_are_found_in_both_cgroup_layouts() {
        let root = tempfile::tempdir().unwrap();
        for path in ["prewarm-1", "memory/prewarm-1", "cpu/prewarm-2", "cpu/deeper/prewarm-1"] {
            fs::create_dir_all(root.path().join(path)).unwrap();
        }
        let mut found = directories(root.path(), |name| name == "prewarm-1");
        found.sort();
        assert_eq!(found, [root.path().join("memory/prewarm-1"), root.path().join("prewarm-1")]);
    }

    #[test]
    fn a_tree_that_another_process_has_removed_is_no_error() {
        let root = tempfile::tempdir().unwrap();
        remove_tree(&root.path().join("bed")).unwrap();
    }

    #[test]
    fn a_tree_is_removed_from_its_leaves() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("bed/node/pod")).unwrap();
        remove_tree(&root.path().join("bed")).unwrap();
        assert!(!root.path().join("bed").exists());
    }
}
