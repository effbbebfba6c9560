//! What a bed needs of the operating system, and the packages that provide it.

use std::env;
use std::path::PathBuf;

/// A command, or the path of a file that is not a command, and the Debian or Ubuntu package that installs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Command {
    pub name: &'static str,
    pub package: &'static str,
}

/// What every bed needs.
pub const NEEDED: &[Command] = &[
    Command { name: "unshare", package: "util-linux" },
    Command { name: "nsenter", package: "util-linux" },
    Command { name: "setpriv", package: "util-linux" },
    Command { name: "mount", package: "mount" },
    Command { name: "ip", package: "iproute2" },
    Command { name: "tc", package: "iproute2" },
    Command { name: "mkfs.ext4", package: "e2fsprogs" },
    // CRI-O does not start without a monitor for its containers.
    Command { name: "conmon", package: "conmon" },
];

/// What building the parts in C needs in addition. The headers are not commands, and gcc does not install those of
/// libc.
pub const COMPILING: &[Command] = &[
    Command { name: "gcc", package: "gcc" },
    Command { name: "pkg-config", package: "pkg-config" },
    Command { name: "/usr/include/stdio.h", package: "libc6-dev" },
    Command { name: "/usr/include/seccomp.h", package: "libseccomp-dev" },
];

/// The commands that are not installed.
pub fn missing(commands: &[Command]) -> Vec<Command> {
    commands.iter().copied().filter(|command| find(command.name).is_none()).collect()
}

/// The path of a command. The system directories count even if a user's `PATH` leaves them out. A path stands for
/// itself.
pub fn find(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|directory| directory.join(name))
        .find(|candidate| candidate.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_by_name_and_files_by_path() {
        let present = tempfile::NamedTempFile::new().unwrap();
        let path = present.path().to_str().unwrap();
        assert_eq!(find(path), Some(present.path().to_owned()));
        assert!(find("sh").is_some());
        let absent = Command { name: "/no/such/header.h", package: "none" };
        assert_eq!(missing(&[absent, Command { name: "sh", package: "dash" }]), [absent]);
    }
}
