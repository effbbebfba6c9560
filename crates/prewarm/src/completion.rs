//! `prewarm completion`: a script with which a shell completes our command line.

use anyhow::Context as _;
use clap_complete::Shell;

use crate::answer::Answer;

/// Print the completions for a shell
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  source <(prewarm completion bash)
  prewarm completion zsh > ~/.zfunc/_prewarm
  prewarm completion fish > ~/.config/fish/completions/prewarm.fish")]
pub struct Args {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

pub fn run(args: &Args) -> anyhow::Result<Answer> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::command_line(), "prewarm", &mut script);
    let stdout = String::from_utf8(script).context("reading the completions as text")?;
    Ok(Answer::done(stdout))
}
