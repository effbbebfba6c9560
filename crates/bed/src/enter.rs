//! Gets a test binary into a bed.
//!
//! ```text
//! test binary (outside) ── waits
//!   ├─ test binary again ── sweeps cgroups when the one above has ended, however that was
//!   └─ setpriv → unshare ── dies with the one above
//!        └─ test binary again, process 1 of the bed ── dies with the one above, and the whole bed with it
//! ```
//!
//! The last two ask the kernel to be killed when their parent dies. So whoever is killed first, all below are gone.

use std::env;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::{self, Command, ExitStatus, Stdio};

use rustix::process::{Signal, geteuid, set_parent_process_death_signal};
use thiserror::Error;

use crate::commands;
use crate::programs::{self, MODULES, Module, NotBuilt};
use crate::sweeper::{self, Sweeper};
use crate::{cgroups, inside};

/// Holds the bed's name. It is only set inside a bed.
pub const BED_VARIABLE: &str = "PREWARM_BED";

/// The prefix of the names of beds that are not started inside another one.
pub const NAME_PREFIX: &str = "prewarm-";

/// Variables that the bed must not inherit: proxies would be asked for addresses that exist only inside, and a test
/// must not touch a developer's own cluster.
const FORGOTTEN: &[&str] = &[
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "KUBECONFIG",
];

/// Why no bed can be made on this machine.
#[derive(Debug, Error)]
pub enum Unavailable {
    #[error("they need root")]
    NotRoot,
    #[error("`{command}` is missing: install the package {package}")]
    MissingCommand { command: &'static str, package: &'static str },
    #[error("this machine does not let root make namespaces ({message})")]
    NotPermitted { message: String },
    #[error(transparent)]
    MissingProgram(#[from] NotBuilt),
}

/// Makes sure that the rest of the program runs inside a bed.
///
/// Inside, it returns. Outside, it starts the same program with the same arguments inside a bed, waits for its end, and
/// exits with its code: nothing after this call runs outside.
pub fn enter() -> Result<(), Unavailable> {
    if sweeper::is_asked_for() {
        sweeper::run();
    }
    if is_inside() {
        inside::prepare();
        return Ok(());
    }
    check()?;
    let prefix = child_prefix();
    cgroups::sweep_stale(&prefix);
    let bed = format!("{prefix}{}", process::id());
    let sweeper = Sweeper::start(&bed);
    let status = run(&bed);
    sweeper.finish();
    process::exit(exit_code(status));
}

/// Whether this process already runs in a bed.
///
/// The variable alone is not enough: a bed inside a bed is started by a process that has it set.
pub fn is_inside() -> bool {
    process::id() == 1 && env::var_os(BED_VARIABLE).is_some()
}

/// Whether this process may make namespaces at all.
pub fn is_root() -> bool {
    geteuid().is_root()
}

/// Returns what this machine lacks for a bed.
pub fn check() -> Result<(), Unavailable> {
    if !is_root() {
        return Err(Unavailable::NotRoot);
    }
    if let Some(command) = commands::missing(commands::NEEDED).first() {
        return Err(Unavailable::MissingCommand { command: command.name, package: command.package });
    }
    for program in MODULES.iter().flat_map(Module::names) {
        programs::locate(program)?;
    }
    let trial = unshare().arg("true").stdin(Stdio::null()).output();
    match trial {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(Unavailable::NotPermitted { message: one_line(&output.stderr) }),
        Err(error) => Err(Unavailable::NotPermitted { message: error.to_string() }),
    }
}

fn run(bed: &str) -> ExitStatus {
    // Killed with the process that runs the tests. If this fails, the bed merely has to end by itself.
    let _kept_alive = set_parent_process_death_signal(Some(Signal::KILL));
    let binary = env::current_exe().expect("a running program has a path");
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    let mut command = unshare();
    command.arg(binary).args(arguments).env(BED_VARIABLE, bed).env("TMPDIR", inside::TEMPORARY);
    for variable in FORGOTTEN {
        command.env_remove(variable);
    }
    command.status().expect("unshare was started a moment ago")
}

fn unshare() -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc"]);
    command.args(["--kill-child=KILL", "--"]);
    command
}

/// The prefix of the names of beds that are started from here.
fn child_prefix() -> String {
    env::var(BED_VARIABLE).map_or_else(|_| NAME_PREFIX.to_owned(), |bed| format!("{bed}."))
}

fn exit_code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
}

fn one_line(stderr: &[u8]) -> String {
    String::from_utf8_lossy(stderr).trim().replace('\n', "; ")
}
