//! The `prewarm` program: one module per command, each of which makes an [`answer::Answer`] and prints nothing.
//!
//! It is a library too, so that fuzzing and generated documentation can reach it; nothing else depends on it.

pub mod agent;
pub mod answer;
pub mod controller;
pub mod crds;
pub mod demo;
pub mod lint;
mod operation;
pub mod version;
pub mod yaml;

use clap::{Parser, Subcommand};

use self::answer::Answer;

/// Puts container images on Kubernetes nodes before the pods that need them arrive
#[derive(Debug, Parser)]
#[command(name = "prewarm", version, max_term_width = 100)]
#[command(after_help = "\
Exit codes:
  0  everything is fine
  1  the command did its work and found mistakes
  2  wrong usage, or something could not be read")]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Agent(Box<agent::Args>),
    Controller(Box<controller::Args>),
    Crds(crds::Args),
    Lint(lint::Args),
    Demo(demo::Args),
    /// Print the version
    Version,
}

/// Carries a command out. An error means that it could not do its work.
pub fn run(cli: &Cli) -> anyhow::Result<Answer> {
    match &cli.command {
        Command::Agent(args) => agent::run(args),
        Command::Controller(args) => controller::run(args),
        Command::Crds(args) => crds::run(args),
        Command::Lint(args) => Ok(lint::run(args)),
        Command::Demo(args) => demo::run(args),
        Command::Version => Ok(version::run()),
    }
}
