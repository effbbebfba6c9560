//! The `prewarm` program: one module per command. A command returns an [`answer::Answer`] and prints nothing.
//!
//! It is a library as well, so that fuzz targets and generated documentation can use it; nothing else depends on
//! it.

pub mod agent;
pub mod answer;
pub mod check;
pub mod completion;
pub mod controller;
pub mod crds;
mod crons;
#[cfg(feature = "demo")]
pub mod demo;
pub mod explain;
pub mod images;
mod jobs;
pub mod lint;
pub mod nodes;
mod operation;
mod prefetches;
pub mod pull;
mod query;
mod reach;
pub mod schedule;
mod show;
pub mod status;
pub mod uninstall;
pub mod version;
pub mod yaml;

use clap::{CommandFactory as _, Parser, Subcommand};
use tokio::runtime::Builder;

use self::answer::Answer;

/// Puts container images on Kubernetes nodes before the pods that need them arrive
#[derive(Debug, Parser)]
#[command(name = "prewarm", version, max_term_width = 100)]
#[command(after_help = "\
Exit codes:
  0  everything is fine
  1  the command did its work and found mistakes, such as nodes that failed
  2  wrong usage, or something could not be read")]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Pull(Box<pull::Args>),
    Status(Box<status::Args>),
    Explain(Box<explain::Args>),
    Nodes(Box<nodes::Args>),
    Images(Box<images::Args>),
    Schedule(schedule::Args),
    Lint(lint::Args),
    Crds(crds::Args),
    #[cfg(feature = "demo")]
    Demo(demo::Args),
    Controller(Box<controller::Args>),
    Agent(Box<agent::Args>),
    Check(Box<check::Args>),
    Uninstall(Box<uninstall::Args>),
    Completion(completion::Args),
    /// Print the version
    Version,
}

/// Runs a command. An error means that it could not do its work.
pub fn run(cli: &Cli) -> anyhow::Result<Answer> {
    match &cli.command {
        Command::Agent(args) => agent::run(args),
        Command::Controller(args) => controller::run(args),
        Command::Crds(args) => crds::run(args),
        Command::Lint(args) => Ok(lint::run(args)),
        #[cfg(feature = "demo")]
        Command::Demo(args) => demo::run(args),
        Command::Pull(args) => wait_for(pull::run(args)),
        Command::Status(args) => wait_for(status::run(args)),
        Command::Explain(args) => wait_for(explain::run(args)),
        Command::Nodes(args) => wait_for(nodes::run(args)),
        Command::Images(args) => wait_for(images::run(args)),
        Command::Schedule(args) => Ok(schedule::run(args)),
        Command::Check(args) => wait_for(check::run(args)),
        Command::Uninstall(args) => wait_for(uninstall::run(args)),
        Command::Completion(args) => completion::run(args),
        Command::Version => Ok(version::run()),
    }
}

/// Runs a command that asks a cluster, on a single thread.
fn wait_for(command: impl Future<Output = anyhow::Result<Answer>>) -> anyhow::Result<Answer> {
    operation::block_on(&mut Builder::new_current_thread(), command)
}

/// The command line. If it is called as a plugin of kubectl, its help says so.
pub fn command_line() -> clap::Command {
    let program = std::env::args_os().next().map(std::path::PathBuf::from);
    let is_plugin =
        program.as_ref().and_then(|path| path.file_stem()).is_some_and(|name| name == "kubectl-prewarm");
    let command = Cli::command();
    if is_plugin { command.bin_name("kubectl prewarm") } else { command }
}
