//! What the demo shows: short scenes, each about one thing that Prewarm does. A scene asks the cluster for something as a
//! user would, waits, and compares the end with what it has told.

mod counts;
mod fault;
mod scenes;
mod stage;
mod trouble;
mod word;

use std::fmt;

use futures::future::LocalBoxFuture;
use tokio::sync::mpsc;

use crate::cluster::Cluster;
pub use counts::Counts;
pub use scenes::SCENES;
pub use stage::Stage;
pub use trouble::Trouble;
pub use word::Word;

/// One thing to show.
pub struct Scene {
    /// What it is called on the command line.
    pub name: &'static str,
    /// What it is about, in a few words.
    pub about: &'static str,
    play: for<'a> fn(&'a mut Stage<'_>) -> LocalBoxFuture<'a, Result<(), Trouble>>,
}

impl fmt::Debug for Scene {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}

/// How fast and with which luck a story is played.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How many times as fast as it is meant to be watched.
    pub speed: f64,
    /// The same number makes the same images and the same faults.
    pub seed: u64,
}

/// Plays scenes one after the other, until one does not end as told. `words` hears what happens.
pub async fn play(
    cluster: &mut Cluster,
    scenes: impl IntoIterator<Item = &'static Scene>,
    settings: Settings,
    words: mpsc::UnboundedSender<Word>,
) -> Result<(), Trouble> {
    let mut stage = Stage::new(cluster, settings, words);
    for scene in scenes {
        (scene.play)(&mut stage).await.map_err(|trouble| trouble.in_scene(scene.name))?;
        stage.pause().await;
    }
    Ok(())
}
