//! A fault in the middle of a scene that Prewarm overcomes without help.

use prewarm_api::kruise::PullPhase;

use super::{Stage, Trouble};
use crate::Store;

/// The download breaks off between these percentages of an image.
const MIDDLE: (u64, u64) = (20, 80);

/// A download that breaks off once, on a node and at a byte that the seed chooses.
pub struct BrokenDownload {
    node: String,
    store: Store,
    percent: u64,
}

impl BrokenDownload {
    /// Makes the next download of the node break off. The image has this many bytes.
    pub fn prepare(stage: &Stage<'_>, size: usize) -> Result<Self, Trouble> {
        let (node, store) = stage.chosen("broken download")?;
        let percent = stage.choices().between("broken download after", 0, MIDDLE.0, MIDDLE.1);
        store.break_off(size as u64 / 100 * percent);
        Ok(Self { node, store, percent })
    }

    /// Waits for the fault and reports it.
    pub async fn happens(&self, stage: &Stage<'_>) -> Result<(), Trouble> {
        let look = async || Ok((!self.store.is_to_break()).then_some(()));
        stage.wait("the download that breaks off", look).await?;
        let Self { node, percent, .. } = self;
        stage.say(format!(
            "{node} loses its connection after {percent} % of the image; its agent tries again"
        ));
        Ok(())
    }

    /// Checks that the node has the image, and that it took a second attempt.
    pub async fn is_overcome(&self, stage: &Stage<'_>, image: &str) -> Result<(), Trouble> {
        let has_it = |phase: PullPhase| phase == PullPhase::Succeeded;
        let status = stage.reported(&self.node, image, |status| has_it(status.phase)).await?;
        match status.failed_attempts {
            1 => Ok(()),
            attempts => Err(Trouble::new(format!("{} has {attempts} failed attempts, not one", self.node))),
        }
    }
}
