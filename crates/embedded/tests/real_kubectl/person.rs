//! Someone with kubectl and a kubeconfig.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use anyhow::{Context as _, ensure};
use prewarm_bed::programs;
use prewarm_testkit::wait;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::script::{Ending, Step};
use crate::visible;

/// One person at one server.
pub struct Person {
    kubectl: PathBuf,
    kubeconfig: PathBuf,
    home: PathBuf,
}

impl Person {
    /// `home` is where kubectl keeps what it has discovered.
    pub fn new(kubeconfig: &Path, home: PathBuf) -> anyhow::Result<Self> {
        Ok(Self { kubectl: programs::locate("kubectl")?, kubeconfig: kubeconfig.to_owned(), home })
    }

    /// Runs a step, and returns everything that it shows: the output, the errors and the exit code.
    pub async fn take(&self, step: &Step) -> anyhow::Result<String> {
        match step.ending {
            Ending::ByItself => {
                let output = self.run(step, step.input).await?;
                Ok(visible::output(&output))
            }
            Ending::After { lines, meanwhile } => self.watch(step, lines, meanwhile).await,
        }
    }

    /// Runs a step that must succeed.
    pub async fn expect(&self, step: &Step, input: &str) -> anyhow::Result<()> {
        let output = self.run(step, input).await?;
        ensure!(output.status.success(), "kubectl {}: {}", step.line(), visible::output(&output));
        Ok(())
    }

    async fn run(&self, step: &Step, input: &str) -> anyhow::Result<Output> {
        let mut child = self.spawn(step)?;
        let mut stdin = child.stdin.take().context("kubectl has no input")?;
        // kubectl may end before it has read everything; its own message is the result.
        let _unread = stdin.write_all(input.as_bytes()).await;
        drop(stdin);
        let ended = tokio::time::timeout(wait::PATIENCE, child.wait_with_output());
        ended
            .await
            .with_context(|| format!("kubectl {} does not end", step.line()))?
            .context("running kubectl")
    }

    /// Reads lines of a command that never ends while other commands run, and then ends it.
    async fn watch(
        &self,
        step: &Step,
        lines: usize,
        meanwhile: &[&'static [&'static str]],
    ) -> anyhow::Result<String> {
        let mut child = self.spawn(step)?;
        let mut reader = BufReader::new(child.stdout.take().context("kubectl has no output")?).lines();
        let mut seen = Vec::new();
        let mut next = async |seen: &mut Vec<String>| -> anyhow::Result<()> {
            let line = tokio::time::timeout(wait::PATIENCE, reader.next_line()).await;
            let line = line.with_context(|| format!("after {seen:?} no further line"))??;
            seen.push(line.context("the watch ended")?);
            Ok(())
        };
        // The heading and the initial objects come first, so that no change is missed.
        while seen.len() < lines - meanwhile.len() {
            next(&mut seen).await?;
        }
        for words in meanwhile {
            self.expect(&Step::new(words), "").await?;
            next(&mut seen).await?;
        }
        child.kill().await.context("ending kubectl")?;
        Ok(visible::text(&seen.join("\n")))
    }

    fn spawn(&self, step: &Step) -> anyhow::Result<Child> {
        let mut command = Command::new(&self.kubectl);
        command.arg("--kubeconfig").arg(&self.kubeconfig).args(step.words).env("HOME", &self.home);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command.spawn().context("starting kubectl")
    }
}
