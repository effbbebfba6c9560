//! What the demo shows: short scenes, each about one thing that Prewarm does. A scene asks the cluster for something as
//! a user would, waits, and compares the result with what it announced.

mod counts;
mod fault;
mod message;
mod prefetch;
mod scenes;
mod stage;
mod trouble;

use std::fmt;

use futures::future::LocalBoxFuture;
use tokio::sync::mpsc;

use crate::cluster::Cluster;
pub use counts::Counts;
pub use message::Message;
pub use scenes::SCENES;
pub use stage::Stage;
pub use trouble::Trouble;

/// One thing to show.
pub struct Scene {
    /// The name on the command line.
    pub name: &'static str,
    /// A few messages on what it shows.
    pub about: &'static str,
    play: for<'a> fn(&'a mut Stage<'_>) -> LocalBoxFuture<'a, Result<(), Trouble>>,
}

impl fmt::Debug for Scene {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}

/// How fast a story is played, and with which seed.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The speed as a multiple of the usual one.
    pub speed: f64,
    /// The same seed makes the same images and the same faults.
    pub seed: u64,
}

/// Plays scenes one after the other, until one does not end as announced. What happens is sent to `messages`.
pub async fn play(
    cluster: &mut Cluster,
    scenes: impl IntoIterator<Item = &'static Scene>,
    settings: Settings,
    messages: mpsc::UnboundedSender<Message>,
) -> Result<(), Trouble> {
    let mut stage = Stage::new(cluster, settings, messages);
    for scene in scenes {
        (scene.play)(&mut stage).await.map_err(|trouble| trouble.in_scene(scene.name))?;
        stage.pause().await;
    }
    Ok(())
}
