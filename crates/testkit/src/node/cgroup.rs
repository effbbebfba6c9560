//! The cgroups of a full node: everything that its runtime starts is in them, so that nothing outlives the node.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use anyhow::Context as _;
use prewarm_bed::cgroups;
use prewarm_bed::enter::BED_VARIABLE;
use rustix::process::{Pid, Signal, kill_process};

/// How long the processes of a node may take to end after they were killed.
const PATIENCE: Duration = Duration::from_secs(5);

/// Joins the cgroup in `$0` and becomes the program in the arguments.
const JOIN: &str = r#"echo $$ > "$0/cgroup.procs" && exec "$@""#;

/// The cgroup of one node. Dropping it kills everything in it.
pub struct Cgroup {
    /// The path from the root of each hierarchy.
    name: String,
    /// The directory in the hierarchy by which processes are found.
    directory: PathBuf,
}

impl Cgroup {
    /// Creates the directories in every hierarchy, as kubelet needs them.
    pub fn create(node: &str) -> anyhow::Result<Self> {
        let bed = env::var(BED_VARIABLE).context("a node lives in a bed")?;
        let name = format!("{bed}/{node}");
        let hierarchies = cgroups::hierarchies();
        for hierarchy in &hierarchies {
            fs::create_dir_all(hierarchy.join(&name)).context("creating a cgroup")?;
        }
        // Any hierarchy knows which processes are in a cgroup, but some accept no process without further setup.
        let listing = hierarchies.iter().find(|path| path.ends_with("pids")).or(hierarchies.first());
        let directory = listing.context("this machine has no cgroups")?.join(&name);
        fs::create_dir_all(directory.join("runtime")).context("creating the runtime's cgroup")?;
        Ok(Self { name, directory })
    }

    /// The path in kubelet's configuration.
    pub fn path(&self) -> String {
        format!("/{}", self.name)
    }

    /// A shell that joins the runtime's cgroup and becomes the program that follows in the arguments.
    pub fn join(&self, mut shell: Command) -> Command {
        shell.args(["-c", JOIN]).arg(self.directory.join("runtime"));
        shell
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // A process may start another while it is killed, so this repeats until there is none. Whatever is left ends
        // with the bed.
        let deadline = Instant::now() + PATIENCE;
        loop {
            let processes = processes(&self.directory);
            if processes.is_empty() || Instant::now() > deadline {
                return;
            }
            for process in processes {
                let _already_gone = kill_process(process, Signal::KILL);
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// The processes in a cgroup and those below it.
fn processes(directory: &Path) -> Vec<Pid> {
    let list = fs::read_to_string(directory.join("cgroup.procs")).unwrap_or_default();
    let mut found: Vec<Pid> =
        list.lines().filter_map(|line| line.parse().ok()).filter_map(Pid::from_raw).collect();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            found.extend(processes(&entry.path()));
        }
    }
    found
}
