//! Parses the command line, runs the command and prints its answer.

use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use prewarm::Cli;
use prewarm::answer::Exit;

fn main() -> ExitCode {
    let cli = Cli::parse();
    match prewarm::run(&cli).and_then(|answer| answer.print().context("cannot write the answer")) {
        Ok(exit) => exit.into(),
        Err(error) => {
            eprintln!("error: {error:#}");
            Exit::Unusable.into()
        }
    }
}
