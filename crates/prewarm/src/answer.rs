//! What a command prints: text for both streams and an exit code. Commands return it, `main` prints it.

use std::io::{self, Write};
use std::process::ExitCode;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The result, for programs and people.
    pub stdout: String,
    /// Summaries and complaints about the result.
    pub stderr: String,
    pub exit: Exit,
}

/// How a command ended; scripts rely on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Everything is fine.
    Success,
    /// The command did its work and found mistakes.
    Findings,
    /// The command could not do its work: wrong usage, or something could not be read.
    Unusable,
}

impl Exit {
    /// How a command ends that may have found mistakes.
    pub fn found(has_mistakes: bool) -> Self {
        if has_mistakes { Self::Findings } else { Self::Success }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Success => 0,
            Exit::Findings => 1,
            Exit::Unusable => 2,
        })
    }
}

impl Answer {
    /// A command that did its work and has nothing to add to its result.
    pub fn done(stdout: String) -> Self {
        Self { stdout, stderr: String::new(), exit: Exit::Success }
    }

    /// A command that has nothing to show but mistakes.
    pub fn failed(stderr: String) -> Self {
        Self { stdout: String::new(), stderr, exit: Exit::Findings }
    }

    /// Prints both streams. It is no error if the reader has seen enough (`| head`).
    pub fn print(&self) -> io::Result<Exit> {
        write_all(io::stdout().lock(), &self.stdout)?;
        write_all(io::stderr().lock(), &self.stderr)?;
        Ok(self.exit)
    }
}

fn write_all(mut stream: impl Write, text: &str) -> io::Result<()> {
    match stream.write_all(text.as_bytes()).and_then(|()| stream.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}
