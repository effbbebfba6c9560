//! What a controller is told once.

use prewarm_plan::cluster::Settings;

/// The settings of a controller.
#[derive(Clone, Debug)]
pub struct Config {
    /// What the decisions depend on.
    pub settings: Settings,
    /// How many NodeImages, and pods of BroadcastJobs, are written at once.
    pub concurrent_writes: usize,
    /// How many requests a second are sent in the long run.
    pub requests_per_second: u32,
    /// How many requests are sent at once after a rest.
    pub burst: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self { settings: Settings::default(), concurrent_writes: 32, requests_per_second: 1000, burst: 2000 }
    }
}
