//! ImagePrefetches for the commands: the objects, their states, and why nodes fail.

mod failure;
mod state;

use std::sync::Arc;

use kube::ResourceExt as _;
use prewarm_api::ofen::{IMAGE_PREFETCH, ImagePrefetch};

use crate::jobs::JobName;
use crate::reach::{Feed, Reader, or_undefined};

pub use failure::failures;
pub use state::{is_ready, notes, number, state};

/// The ImagePrefetches of one namespace, or of all namespaces.
pub enum Prefetches {
    There(Feed<ImagePrefetch>),
    /// They cannot be read, for this reason.
    Hidden(String),
    /// The cluster has no such kind, which can be left out.
    Undefined,
}

impl Prefetches {
    /// Reads them; that they cannot be read is not an error.
    pub async fn read(reader: &mut Reader, namespace: Option<&str>) -> anyhow::Result<Self> {
        Ok(match or_undefined(reader.namespaced(namespace).await)? {
            Ok(feed) => Self::There(feed),
            Err(Some(why)) => Self::Hidden(why),
            Err(None) => Self::Undefined,
        })
    }

    /// All of them, by namespace and name.
    pub fn all(&self) -> Vec<Arc<ImagePrefetch>> {
        match self {
            Self::There(feed) => feed.objects(),
            Self::Hidden(_) | Self::Undefined => Vec::new(),
        }
    }

    pub fn named(&self, name: &JobName) -> Vec<Arc<ImagePrefetch>> {
        let mut all = self.all();
        all.retain(|prefetch| name.means(IMAGE_PREFETCH, &prefetch.name_any()));
        all
    }

    /// The line about those that cannot be read.
    pub fn remark(&self) -> String {
        match self {
            Self::Hidden(why) => format!("ImagePrefetches are not shown: {why}\n"),
            Self::There(_) | Self::Undefined => String::new(),
        }
    }

    /// The error for one that has to be there and is not.
    pub fn unknown(&self, name: &JobName) -> anyhow::Error {
        match self {
            Self::There(_) => anyhow::anyhow!("there is no {name}; `prewarm status -A` lists all"),
            Self::Hidden(why) => anyhow::anyhow!("cannot look for {name}: {why}"),
            Self::Undefined => anyhow::anyhow!(
                "cannot look for {name}: the cluster has no ImagePrefetches; install the definitions with `prewarm crds | kubectl \
                 apply --server-side -f -`"
            ),
        }
    }

    /// What was looked for beside cron jobs, in the error for a name that nothing has.
    pub fn and_jobs(&self) -> &'static str {
        match self {
            Self::There(_) => "pull job, no ImagePrefetch",
            Self::Hidden(_) | Self::Undefined => "pull job",
        }
    }
}
