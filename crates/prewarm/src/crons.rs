//! Cron jobs as commands see them: the object, and what follows from it and the time of day.

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

/// The cron jobs of a namespace, or of all.
pub enum Crons {
    /// They can be read.
    There(Feed<AdvancedCronJob>),
    /// They cannot, for this reason: people who may see jobs may not see everything, and a definition may be missing.
    Hidden(String),
}

impl Crons {
    /// Reads them; that they cannot be read is not an error.
    pub async fn read(reader: &mut Reader, namespace: Option<&str>) -> anyhow::Result<Self> {
        let feed = or_refusal(reader.namespaced(namespace).await)?;
        Ok(feed.map_or_else(Self::Hidden, Self::There))
    }

    /// All of them, by namespace and name.
    pub fn all(&self) -> Vec<Arc<AdvancedCronJob>> {
        match self {
            Self::There(feed) => feed.objects(),
            Self::Hidden(_) => Vec::new(),
        }
    }

    /// Those of this name.
    pub fn named(&self, name: &JobName) -> Vec<Arc<AdvancedCronJob>> {
        let mut all = self.all();
        all.retain(|cron| name.means(ADVANCED_CRON_JOB, &cron.name_any()));
        all
    }

    /// What is said of cron jobs that cannot be read.
    pub fn remark(&self) -> String {
        match self {
            Self::There(_) => String::new(),
            Self::Hidden(why) => format!("Cron jobs are not shown: {why}\n"),
        }
    }

    /// The error for a name that nobody has.
    pub fn nobody(&self, name: &JobName) -> anyhow::Error {
        match self {
            Self::There(_) => {
                anyhow::anyhow!("there is no pull job and no cron job {name}; `prewarm status -A` lists all")
            }
            Self::Hidden(why) => {
                anyhow::anyhow!("there is no pull job {name}, and cron jobs cannot be looked at: {why}")
            }
        }
    }
}

/// What a cron job tells about itself under this type.
pub fn condition<'a>(cron: &'a AdvancedCronJob, type_: &str) -> Option<&'a Condition> {
    let conditions = cron.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// The same, if it is not as it should be.
pub fn trouble<'a>(cron: &'a AdvancedCronJob, type_: &str) -> Option<&'a Condition> {
    condition(cron, type_).filter(|condition| condition.status == "False")
}
