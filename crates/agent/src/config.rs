//! The settings of an agent.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use prewarm_plan::agent::disk::MinFree;
use prewarm_runtime::Endpoint;

use crate::disk::Room;

#[derive(Clone)]
pub struct Config {
    /// The node that it works for.
    pub node: String,
    /// Its own name, as its reports have it.
    pub name: String,
    /// How to find the container runtime.
    pub runtime: RuntimeChoice,
    /// How many pulls run at once.
    pub parallel: usize,
    /// How much room must stay free on the filesystem of the images.
    pub min_free: MinFree,
    /// How long running pulls may go on after a request to stop.
    pub drain: Duration,
}

/// How to find the container runtime.
#[derive(Clone)]
pub enum RuntimeChoice {
    /// This one.
    Given(Endpoint),
    /// A simulated one, whose disk is simulated too.
    Simulated(Endpoint, SimulatedDisk),
    /// The first that answers in this directory (kruise D40).
    In(PathBuf),
}

/// Says how much room there is on a disk that exists only in this process.
pub type SimulatedDisk = Arc<dyn Fn() -> Room + Send + Sync>;
