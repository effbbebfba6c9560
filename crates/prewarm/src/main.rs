//! Parses the command line, runs the command and prints its answer.

use std::process::ExitCode;

use anyhow::Context;
use clap::FromArgMatches as _;
use prewarm::Cli;
use prewarm::answer::Exit;

fn main() -> ExitCode {
    let cli =
        Cli::from_arg_matches(&prewarm::command_line().get_matches()).unwrap_or_else(|error| error.exit());
    match prewarm::run(&cli).and_then(|answer| answer.print().context("cannot write the answer")) {
        Ok(exit) => exit.into(),
        Err(error) => {
            eprintln!("error: {error:#}");
            Exit::Unusable.into()
        }
    }
}
