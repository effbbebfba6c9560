//! `prewarm version`.

use crate::answer::Answer;

/// Prints the version alone, so that scripts need not cut it out of a sentence.
pub fn run() -> Answer {
    let stdout = concat!(env!("CARGO_PKG_VERSION"), "\n").to_owned();
    Answer::done(stdout)
}
