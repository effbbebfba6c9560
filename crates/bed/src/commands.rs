//! The commands of the operating system that a bed is made with, and the packages that bring them.

use std::env;
use std::path::PathBuf;

/// A command and the Debian or Ubuntu package that installs it.
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
];

/// The needed commands that are not installed.
pub fn missing() -> Vec<Command> {
    NEEDED.iter().copied().filter(|command| find(command.name).is_none()).collect()
}

/// Where a command lies. The system directories count even if a user's `PATH` leaves them out.
pub fn find(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|directory| directory.join(name))
        .find(|candidate| candidate.is_file())
}
