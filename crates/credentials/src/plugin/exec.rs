//! Runs one plugin once: the request on its input, the response from its output, within bounds of time and size.
//! However the run ends, even by being dropped, the plugin and everything it started are gone.

use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use prewarm_api::text::{cut, plain};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio::time::timeout;
use zeroize::Zeroizing;

use super::config::Provider;
use crate::scrub::scrub;
use crate::{Credential, SecretText, interpreter};

/// A plugin whose answer is longer is stopped.
pub(super) const MAX_OUTPUT_BYTES: usize = 1024 * 1024;
/// How much of a plugin's standard error is read. The rest is discarded.
const MAX_COMPLAINT_BYTES: usize = 8 * 1024;
/// How much of it reaches a message.
const MAX_EXCERPT_BYTES: usize = 256;

/// Why a run gave no response.
#[derive(Debug, thiserror::Error)]
pub(super) enum RunError {
    #[error("it cannot be started: {0}")]
    Start(std::io::ErrorKind),
    #[error(
        "it needs {0}, which is not there: in the image there are no libraries and no shell, so a plugin has to be one \
         statically linked program"
    )]
    Interpreter(String),
    #[error("its pipes cannot be read: {0}")]
    Pipes(std::io::ErrorKind),
    #[error("it did not answer within {} s and was stopped", .0.as_secs_f32())]
    TimedOut(Duration),
    #[error("it answered more than {MAX_OUTPUT_BYTES} bytes and was stopped")]
    LongAnswer,
    #[error("it ended with {status}{}{words}", if .words.is_empty() { "" } else { ": " })]
    Failed { status: ExitStatus, words: String },
}

/// The output of a finished plugin.
struct Ended {
    status: ExitStatus,
    output: Zeroizing<Vec<u8>>,
    complaint: Zeroizing<Vec<u8>>,
}

/// Runs the plugin and returns its output.
pub(super) async fn run(
    program: &Path,
    provider: &Provider,
    request: &[u8],
    time_limit: Duration,
) -> Result<Zeroizing<Vec<u8>>, RunError> {
    let mut child = start(program, provider).map_err(|error| why_not_started(program, &error))?;
    // Declared after the child, so dropped before it: the group must be signalled before its leader is reaped.
    let mut group = Group(child.id().and_then(|id| Pid::from_raw(id.cast_signed())));
    let ended = timeout(time_limit, converse(&mut child, request))
        .await
        .map_err(|_| RunError::TimedOut(time_limit))??;
    group.0 = None;
    if ended.status.success() {
        return Ok(ended.output);
    }
    // Cut last: a value that is cut in half would not be recognised.
    let scrubbed = scrub(&String::from_utf8_lossy(&ended.complaint), &values_of(provider));
    let words = cut(&plain(&scrubbed), MAX_EXCERPT_BYTES);
    Err(RunError::Failed { status: ended.status, words })
}

fn start(program: &Path, provider: &Provider) -> std::io::Result<Child> {
    Command::new(program)
        .args(&provider.args)
        .envs(provider.env.iter().map(|(name, value)| (name, value.reveal())))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
}

/// The system's error for a program whose interpreter is missing is the same as for one that does not exist.
fn why_not_started(program: &Path, error: &std::io::Error) -> RunError {
    let needed = interpreter::of_file(program).ok().flatten().filter(|needed| !Path::new(needed).exists());
    match needed {
        Some(needed) if error.kind() == std::io::ErrorKind::NotFound => RunError::Interpreter(needed),
        _ => RunError::Start(error.kind()),
    }
}

/// Writes and reads at the same time, because a plugin may answer before it has read everything.
async fn converse(child: &mut Child, request: &[u8]) -> Result<Ended, RunError> {
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let write = async {
        if let Some(mut stdin) = stdin {
            // A plugin that does not read its input may still answer.
            let _ = stdin.write_all(request).await;
        }
        Ok(())
    };
    let ((), output, complaint) = tokio::try_join!(write, read_all(stdout), read_start(stderr))?;
    let status = child.wait().await.map_err(|error| RunError::Pipes(error.kind()))?;
    Ok(Ended { status, output, complaint })
}

async fn read_all(pipe: Option<impl AsyncRead + Unpin>) -> Result<Zeroizing<Vec<u8>>, RunError> {
    let mut bytes = Zeroizing::new(Vec::new());
    if let Some(pipe) = pipe {
        let limit = u64::try_from(MAX_OUTPUT_BYTES + 1).unwrap_or(u64::MAX);
        pipe.take(limit).read_to_end(&mut bytes).await.map_err(|error| RunError::Pipes(error.kind()))?;
    }
    if bytes.len() > MAX_OUTPUT_BYTES { Err(RunError::LongAnswer) } else { Ok(bytes) }
}

/// Keeps the start and reads on to the end, so that a talkative plugin is not blocked.
async fn read_start(pipe: Option<impl AsyncRead + Unpin>) -> Result<Zeroizing<Vec<u8>>, RunError> {
    let (mut kept, mut buffer) = (Zeroizing::new(Vec::new()), Zeroizing::new([0; 4096]));
    let Some(mut pipe) = pipe else { return Ok(kept) };
    loop {
        let length = pipe.read(&mut *buffer).await.map_err(|error| RunError::Pipes(error.kind()))?;
        if length == 0 {
            return Ok(kept);
        }
        let room = MAX_COMPLAINT_BYTES.saturating_sub(kept.len());
        kept.extend_from_slice(&buffer[..length.min(room)]);
    }
}

/// The values in the plugin's environment must not appear in a message either.
fn values_of(provider: &Provider) -> Vec<Credential> {
    let credential = |value: &SecretText| Credential { password: value.clone(), ..Credential::default() };
    provider.env.iter().map(|(_, value)| credential(value)).collect()
}

/// Kills a process group when dropped.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // It may have ended by itself, so that there is nothing to signal.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}
