//! Mirrors beside the registry: what they have comes to the node without the runtime asking anybody.

use prewarm_api::kruise::FailureClass;
use prewarm_api::reference::ImageRef;
use tokio::time::sleep;

use super::Fake;
use super::script::Plot;

impl Fake {
    /// Brings an image from the mirrors to the node, under the name of the reference. If a digest is given, the image has to be that
    /// one. An error has its class and the mirrors' words.
    pub async fn bring(
        &self,
        reference: &ImageRef,
        digest: Option<&str>,
    ) -> Result<(), (FailureClass, String)> {
        let plot = self.mirrored(reference, digest)?;
        sleep(plot.takes).await;
        sleep(plot.unpacks).await;
        self.shared.world().stored.add(reference, &plot.identity());
        self.shared.changed();
        Ok(())
    }

    /// Says whether mirrors have an image of the registry.
    pub fn mirror(&self, reference: &ImageRef, is_mirrored: bool) {
        if let Some(plot) = self.shared.world().plot_mut(reference) {
            plot.is_mirrored = is_mirrored;
        }
    }

    /// What was asked of the mirrors, in order.
    pub fn brought(&self) -> Vec<String> {
        self.shared.world().brought.clone()
    }

    fn mirrored(&self, reference: &ImageRef, digest: Option<&str>) -> Result<Plot, (FailureClass, String)> {
        let mut world = self.shared.world();
        world.brought.push(reference.full());
        let absent = || (FailureClass::NotFound, "a mirror does not have it (404)".to_owned());
        let plot = world.plot_mut(reference).ok_or_else(absent)?;
        if let Some(failure) = plot.mirror_failures.pop_front() {
            return Err(failure);
        }
        let is_wanted = digest.is_none_or(|digest| plot.is_named_by(digest));
        if plot.is_mirrored && is_wanted { Ok(plot.clone()) } else { Err(absent()) }
    }
}
