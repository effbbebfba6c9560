//! What a command has to say: text for both streams and an exit code. Commands make it, `main` prints it.

use std::io::{self, Write};
use std::process::ExitCode;

/// The whole answer of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The result, for programs and people.
    pub stdout: String,
    /// What is about the result: summaries and complaints.
    pub stderr: String,
    /// How it went.
    pub exit: Exit,
}

/// How a command went; part of the interface that scripts rely on.
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

    /// Prints both streams. A reader that has seen enough (`| head`) is no error.
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
