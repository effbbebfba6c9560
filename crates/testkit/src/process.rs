//! One program of the cluster, with its log and the ways to disturb it.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use prewarm_bed::enter::BED_VARIABLE;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use crate::wait;

/// Names a directory for the logs of all programs. Without it, they are gone with the bed.
pub const LOGS_VARIABLE: &str = "PREWARM_LOGS";

/// How long a program may take to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(15);

/// How much of a log an error shows.
const TAIL_LINES: usize = 20;
const LINE_LENGTH: usize = 500;

/// A program that runs until it is stopped or dropped.
pub struct Process {
    name: String,
    log: PathBuf,
    state: Mutex<State>,
}

struct State {
    command: Command,
    child: Option<Child>,
}

impl Process {
    /// Starts a program that logs into `directory`.
    pub fn start(name: &str, mut command: Command, directory: &Path) -> anyhow::Result<Self> {
        let log = log_file(name, directory);
        let file = File::options().create(true).append(true).open(&log).context("opening the log")?;
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        let process = Self { name: name.to_owned(), log, state: Mutex::new(State { command, child: None }) };
        process.spawn()?;
        Ok(process)
    }

    /// Starts the program again with the same arguments, if it is not running.
    pub fn spawn(&self) -> anyhow::Result<()> {
        let mut state = self.state();
        if state.child.is_none() {
            let child = state.command.spawn().with_context(|| format!("starting {}", self.name))?;
            state.child = Some(child);
        }
        Ok(())
    }

    /// Asks the program to end and waits until it has; kills it if it takes too long.
    pub fn stop(&self) -> anyhow::Result<()> {
        let mut state = self.state();
        let Some(child) = &mut state.child else { return Ok(()) };
        send(child, Signal::TERM)?;
        // A frozen program has to continue before it can handle the signal.
        send(child, Signal::CONT)?;
        let deadline = Instant::now() + GRACE;
        while child.try_wait()?.is_none() {
            if Instant::now() > deadline {
                child.kill()?;
            }
            thread::sleep(Duration::from_millis(10));
        }
        state.child = None;
        Ok(())
    }

    /// Kills the program without a chance to clean up.
    pub fn kill(&self) -> anyhow::Result<()> {
        if let Some(mut child) = self.state().child.take() {
            child.kill()?;
            child.wait()?;
        }
        Ok(())
    }

    /// Stops the program and starts it again. Its owner has to wait until it is ready.
    pub fn restart(&self) -> anyhow::Result<()> {
        self.stop()?;
        self.spawn()
    }

    /// Freezes the program: connections stay open, and nothing answers. The signal alone is not enough: on a busy
    /// machine, threads run on until the one that receives it is scheduled.
    pub fn freeze(&self) -> anyhow::Result<()> {
        self.signal(Signal::STOP)?;
        if let Some(child) = &self.state().child {
            let stopped_or_over = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            waitid(WaitId::Pid(Pid::from_child(child)), stopped_or_over)
                .context("waiting for it to freeze")?;
        }
        Ok(())
    }

    /// Continues after [`freeze`](Self::freeze).
    pub fn thaw(&self) -> anyhow::Result<()> {
        self.signal(Signal::CONT)
    }

    /// Asks the program to read its configuration again.
    pub fn reload(&self) -> anyhow::Result<()> {
        self.signal(Signal::HUP)
    }

    /// Asks the program to end without waiting; [`ended`](Self::ended) waits.
    pub fn terminate(&self) -> anyhow::Result<()> {
        self.signal(Signal::TERM)
    }

    /// Waits until the program has ended by itself or after [`terminate`](Self::terminate), and returns how.
    pub async fn ended(&self) -> anyhow::Result<ExitStatus> {
        let what = format!("the end of {}", self.name);
        let end = wait::until(&what, async || {
            let mut state = self.state();
            let Some(child) = &mut state.child else { bail!("{} is not running", self.name) };
            let status = child.try_wait()?;
            if status.is_some() {
                state.child = None;
            }
            Ok(status)
        });
        end.await.with_context(|| format!("{} logged\n{}", self.name, self.log_tail()))
    }

    /// Fails with the end of the log if the program is not running.
    pub fn check(&self) -> anyhow::Result<()> {
        let mut state = self.state();
        let Some(child) = &mut state.child else { bail!("{} is not running", self.name) };
        if let Some(status) = child.try_wait()? {
            state.child = None;
            bail!("{} ended with {status}; its log ends with\n{}", self.name, self.log_tail());
        }
        Ok(())
    }

    /// The process id inside the bed, while it runs.
    pub fn id(&self) -> Option<u32> {
        self.state().child.as_ref().map(Child::id)
    }

    /// Everything that it logged, over all its starts.
    pub fn log(&self) -> String {
        let log = fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&log).into_owned()
    }

    /// The last lines that it logged.
    pub fn log_tail(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        let tail = lines[lines.len().saturating_sub(TAIL_LINES)..].iter();
        tail.map(|line| line.chars().take(LINE_LENGTH).collect::<String>() + "\n").collect()
    }

    fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        match &self.state().child {
            Some(child) => send(child, signal),
            None => bail!("{} is not running", self.name),
        }
    }

    /// After a panic with the lock held, the state is still true.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself, so that there is nothing to kill.
        let _already_gone = self.kill();
    }
}

/// The file is in the program's own directory, or where it outlives the bed.
fn log_file(name: &str, directory: &Path) -> PathBuf {
    match env::var_os(LOGS_VARIABLE) {
        None => directory.join(format!("{name}.log")),
        Some(kept) => {
            let bed = env::var(BED_VARIABLE).unwrap_or_default();
            let part = directory.file_name().unwrap_or_default().to_string_lossy();
            Path::new(&kept).join(format!("{bed}-{part}-{name}.log"))
        }
    }
}

fn send(child: &Child, signal: Signal) -> anyhow::Result<()> {
    kill_process(Pid::from_child(child), signal).with_context(|| format!("sending {signal:?}"))
}
