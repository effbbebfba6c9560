//! Cron jobs for the commands: the objects, and what follows from them at a given time.

mod note;
mod state;
mod summary;
mod times;
mod words;

use std::sync::Arc;

use kube::ResourceExt as _;
use prewarm_api::condition::Condition;
use prewarm_api::kruise::{ADVANCED_CRON_JOB, AdvancedCronJob};

use crate::jobs::JobName;
use crate::reach::{Feed, Reader, or_refusal};

pub use note::Note;
pub use state::State;
pub use summary::{Ending, Summary};

/// The cron jobs of one namespace, or of all namespaces.
pub enum Crons {
    There(Feed<AdvancedCronJob>),
    /// They cannot be read, for this reason: the user may lack the right, or the definition may be missing.
    Hidden(String),
}

impl Crons {
    /// Reads them; that they cannot be read is not an error.
    pub async fn read(reader: &mut Reader, namespace: Option<&str>) -> anyhow::Result<Self> {
        let feed = or_refusal(reader.namespaced(namespace).await)?;
        Ok(feed.map_or_else(Self::Hidden, Self::There))
    }

    /// All cron jobs, by namespace and name.
    pub fn all(&self) -> Vec<Arc<AdvancedCronJob>> {
        match self {
            Self::There(feed) => feed.objects(),
            Self::Hidden(_) => Vec::new(),
        }
    }

    pub fn named(&self, name: &JobName) -> Vec<Arc<AdvancedCronJob>> {
        let mut all = self.all();
        all.retain(|cron| name.means(ADVANCED_CRON_JOB, &cron.name_any()));
        all
    }

    /// The line about cron jobs that cannot be read.
    pub fn remark(&self) -> String {
        match self {
            Self::There(_) => String::new(),
            Self::Hidden(why) => format!("Cron jobs are not shown: {why}\n"),
        }
    }

    /// The error for a name that no job has. `others` are the jobs that were looked for besides.
    pub fn unknown(&self, name: &JobName, others: &str) -> anyhow::Error {
        match self {
            Self::There(_) => {
                anyhow::anyhow!("there is no {others} and no cron job {name}; `prewarm status -A` lists all")
            }
            Self::Hidden(why) => {
                let others = others.replace(", no", " and no");
                anyhow::anyhow!("there is no {others} {name}, and cron jobs cannot be read: {why}")
            }
        }
    }
}

/// The condition of this type.
pub fn condition<'a>(cron: &'a AdvancedCronJob, type_: &str) -> Option<&'a Condition> {
    let conditions = cron.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// The condition of this type, if its status is False.
pub fn trouble<'a>(cron: &'a AdvancedCronJob, type_: &str) -> Option<&'a Condition> {
    condition(cron, type_).filter(|condition| condition.status == "False")
}
