//! A process that outlives the starter of a bed, to remove the bed's cgroup directories.
//!
//! The kernel ends everything else of a bed by itself. The process that waits for a bed could remove its directories
//! too, but not after a SIGKILL. The sweeper notices the end of that process by the end of a pipe.

use std::env;
use std::io::{self, Read as _};
use std::os::unix::process::CommandExt as _;
use std::process::{self, Child, Command, Stdio};

use crate::cgroups;

/// Names the bed to sweep. It is only set for a sweeper.
const SWEEP_VARIABLE: &str = "PREWARM_SWEEP";

/// A running sweeper. It starts to work when this process has ended or calls [`finish`](Self::finish).
pub struct Sweeper {
    bed: String,
    child: io::Result<Child>,
}

impl Sweeper {
    pub fn start(bed: &str) -> Self {
        let child = env::current_exe().and_then(|binary| {
            let mut command = Command::new(binary);
            command.args(env::args_os().skip(1)).env(SWEEP_VARIABLE, bed);
            // In a process group of its own: a signal that a terminal sends to the whole group must not reach it.
            command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).spawn()
        });
        Self { bed: bed.to_owned(), child }
    }

    /// Lets the sweeper work, and waits until it is done.
    pub fn finish(self) {
        let swept = self.child.and_then(|mut child| child.wait());
        if !swept.is_ok_and(|status| status.success()) {
            cgroups::sweep(&self.bed);
        }
    }
}

/// Whether this process was started to sweep.
pub fn is_asked_for() -> bool {
    env::var_os(SWEEP_VARIABLE).is_some()
}

/// Waits until its starter has ended, sweeps, and exits.
pub fn run() -> ! {
    // Nothing is ever written, so this returns when the other end is closed. An error means the same.
    let _ended = io::stdin().read_to_end(&mut Vec::new());
    cgroups::sweep(&env::var(SWEEP_VARIABLE).unwrap_or_default());
    process::exit(0)
}
