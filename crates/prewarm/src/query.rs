//! The one path of every command that shows a part of a cluster: read its flags, reach the cluster, gather objects, make a
//! report of them, and show it once or whenever it changes.

use clap::Args as ClapArgs;
use jiff::Timestamp;

use crate::answer::Answer;
use crate::reach::{Cluster, Reach, Reader};
use crate::show::{Format, Output, Report, Watch, follow, once};

/// The flags that such commands share. `S` is [`Scope`](crate::reach::Scope) where objects live in namespaces.
#[derive(Debug, ClapArgs)]
pub struct Query<S: ClapArgs = ()> {
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    watch: Watch,
    #[command(flatten)]
    pub scope: S,
    #[command(flatten)]
    reach: Reach,
}

/// A command that has found its cluster.
pub struct Inquiry {
    pub reader: Reader,
    format: Format,
    warnings: String,
}

impl<S: ClapArgs> Query<S> {
    /// Finds the cluster. Nothing is read yet.
    pub async fn begin(&self) -> anyhow::Result<Inquiry> {
        let cluster = self.reach.cluster().await?;
        let reader = if self.watch.watch { Reader::following(cluster) } else { Reader::once(cluster) };
        Ok(Inquiry { reader, format: self.output.output, warnings: String::new() })
    }
}

impl Inquiry {
    pub fn cluster(&self) -> &Cluster {
        &self.reader.cluster
    }

    /// Adds a line for standard error that is not part of the report.
    pub fn warn(&mut self, line: &str) {
        self.warnings.push_str(line);
    }

    /// Shows the report that `make` returns; with `--watch`, again whenever something has changed.
    pub async fn answer<R: Report>(
        mut self,
        make: impl Fn(Timestamp) -> anyhow::Result<R>,
    ) -> anyhow::Result<Answer> {
        if self.reader.is_following() {
            // Warnings come first: nobody would see them below a screen that is drawn again and again.
            eprint!("{}", self.warnings);
            return follow(self.format, &mut self.reader, make).await;
        }
        let mut answer = once(&make(Timestamp::now())?, self.format);
        answer.stderr += &self.warnings;
        Ok(answer)
    }
}
