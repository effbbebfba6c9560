//! Covers what kubelet and CRI-O touch outside their own directories, so that the machine is not affected.
//!
//! Some paths are fixed whatever the configuration, and kubelet sets sysctls of the whole machine. File systems in
//! memory cover those paths, once for the bed and once more for each kubelet, because two kubelets would share them.
//! Files that already have the wanted values cover the sysctls, so that kubelet has nothing to write.

use std::ffi::{CString, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use anyhow::Context as _;
use prewarm_bed::inside;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};

/// These exist on every machine, so that no empty directory is left as a mount point.
const COVERED: [&str; 2] = ["/var/lib", "/var/log"];

/// The directories that each kubelet has for itself.
const FIXED: [&str; 2] = ["/var/lib/kubelet", "/var/log/containers"];

/// Where a full node sees the sockets of its own runtime, so that manifests can use one path for all nodes.
pub const RUNTIME: &str = "/var/lib/prewarm-runtime";

/// The sysctls that kubelet requires.
const SYSCTLS: [(&str, &str); 6] = [
    ("kernel/keys/root_maxbytes", "25000000"),
    ("kernel/keys/root_maxkeys", "1000000"),
    ("kernel/panic", "10"),
    ("kernel/panic_on_oops", "1"),
    ("vm/overcommit_memory", "1"),
    ("vm/panic_on_oom", "0"),
];

/// Covers the paths of the machine, once per bed.
pub fn cover() -> anyhow::Result<()> {
    static IS_COVERED: Mutex<bool> = Mutex::new(false);
    let mut is_covered = IS_COVERED.lock().unwrap_or_else(PoisonError::into_inner);
    if !*is_covered {
        for path in COVERED {
            cover_directory(path).with_context(|| format!("covering {path}"))?;
        }
        for path in FIXED.into_iter().chain([RUNTIME]) {
            fs::create_dir_all(path).with_context(|| format!("creating {path}"))?;
        }
        // A kubelet mounts volumes in a namespace of its own, and the runtime has to see them.
        let shared = MountPropagationFlags::SHARED | MountPropagationFlags::REC;
        mount_change("/", shared).context("sharing mounts within the bed")?;
        *is_covered = true;
    }
    Ok(())
}

/// Existing files can still be read, since a test's own program may be below; what is written goes to memory.
fn cover_directory(path: &str) -> anyhow::Result<()> {
    let name = path.trim_start_matches('/').replace('/', "-");
    let part = |part: &str| inside::directory(&format!("covered/{name}/{part}"));
    let (upper, work) = (part("upper")?, part("work")?);
    let options = format!("lowerdir={path},upperdir={},workdir={}", upper.display(), work.display());
    let options = CString::new(options).context("a path has no zero in it")?;
    Ok(mount("overlay", path, "overlay", MountFlags::empty(), options.as_c_str())?)
}

/// The arguments of `unshare` for a program that sees these sockets at the usual place. Its other mounts are visible to
/// others.
pub fn with_sockets(sockets: &Path) -> Vec<OsString> {
    let script = format!("set -e; mount --make-private /var/lib; mount --bind \"$0\" {RUNTIME}; exec \"$@\"");
    let words = ["--mount", "--propagation", "unchanged", "sh", "-c", &script].map(OsString::from);
    words.into_iter().chain([sockets.into()]).collect()
}

/// A command that runs a program with the fixed paths and the sysctls to itself. `unshare` comes with the network of
/// the node.
pub fn apart(
    mut unshare: Command,
    directory: &Path,
    sockets: &Path,
    program: &Path,
) -> anyhow::Result<Command> {
    let sysctls = directory.join("sysctls");
    for (name, value) in SYSCTLS {
        let file: PathBuf = sysctls.join(name);
        let parent = file.parent().context("a file lies in a directory")?;
        fs::create_dir_all(parent).context("creating the directory of sysctls")?;
        fs::write(&file, format!("{value}\n")).context("writing a sysctl")?;
    }
    unshare.args(["--mount", "--propagation", "unchanged", "sh", "-c", &script()]);
    unshare.arg(sysctls).arg(sockets).arg(program);
    Ok(unshare)
}

/// Runs in a mount namespace of its own, with the files of sysctls in `$0` and the directory of sockets in `$1`, and
/// becomes the program in the other arguments. Its mounts must not reach the rest of the bed, which shares its mounts.
fn script() -> String {
    let (covered, fixed) = (COVERED.join(" "), FIXED.join(" "));
    format!(
        r#"set -e
for path in {covered}; do mount --make-private $path; done
for path in {fixed}; do mount -t tmpfs tmpfs $path; done
mount --bind "$1" {RUNTIME}
shift
mount --make-rprivate /proc
cd "$0"
for file in */* */*/*; do
    if [ -f "$file" ]; then mount --bind "$file" "/proc/sys/$file"; fi
done
cd /
exec "$@"
"#
    )
}
