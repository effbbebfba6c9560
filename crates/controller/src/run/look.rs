//! What the loop looks at beside its inputs: the clock, how much the kernel holds, what the API server does not keep, and in which
//! namespaces to watch.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use prewarm_plan::cluster::{Input, Kind};
use prewarm_process::slim::SlimPod;
use tokio::time::Instant;
use tracing::{info, warn};

use super::Loop;
use crate::lead::Controller;
use crate::watch::SlimJob;

/// How often everything in the kernel is counted: with ten thousand nodes of fifty images it takes forty milliseconds.
const SIZE_INTERVAL: Duration = Duration::from_secs(10);
/// Smaller corrections of the time of day make no difference to any schedule.
const CLOCK_TOLERANCE: SignedDuration = SignedDuration::from_millis(250);

impl Loop {
    /// Says once, and to the probes as long as it is so, that the API server does not keep what is written.
    pub(super) fn tell_unkept(&mut self) {
        if self.unkept != *self.kernel.trouble().unkept {
            self.unkept = self.kernel.trouble().unkept.clone();
            let words = self.unkept.in_words();
            if let Some(words) = &words {
                warn!("{words}");
            } else {
                info!("the API server keeps all that is written");
            }
            self.controller.health.set_remark(words);
        }
    }

    /// Tells the kernel when the time of day was set.
    pub(super) fn look_at_clock(&mut self) {
        let ahead = self.time_of_day.now().duration_since(self.controller.clock.now());
        if (ahead - self.ahead).abs() >= CLOCK_TOLERANCE {
            self.ahead = ahead;
            self.observe(Input::Clock { ahead });
        }
    }

    /// Counts what the kernel holds, a while after it has changed, and again when a node becomes silent by time alone.
    pub(super) fn count(&mut self, now: Instant) {
        if self.size_at.is_some_and(|at| at <= now) {
            let size = self.kernel.size(self.controller.clock.now());
            self.controller.metrics.holds(&size);
            self.controller.metrics.prefetches(&size.prefetches);
            self.controller.metrics.sets(&size.sets);
            self.controller.metrics.cannot_read(&self.kernel.trouble().unreadable.counts());
            self.size_at = size.recount_at.map(|at| self.instant(at).max(now + SIZE_INTERVAL));
        }
        if self.kernel.is_synced() && self.kernel.backlog() > 0 {
            let soon = now + SIZE_INTERVAL;
            self.size_at = Some(self.size_at.map_or(soon, |at| at.min(soon)));
        }
    }

    /// A time of day in the time that never jumps.
    pub(super) fn instant(&self, at: Timestamp) -> Instant {
        let left = at.duration_since(self.controller.clock.now());
        Instant::now() + Duration::try_from(left).unwrap_or_default()
    }

    /// Watches pods and Jobs in those namespaces in which something depends on them.
    pub(super) fn watch_locally(&mut self) {
        let Controller { client, metrics, .. } = &self.controller;
        let (by_pods, by_jobs) =
            (self.kernel.watched_namespaces(Kind::Pod), self.kernel.watched_namespaces(Kind::Job));
        let pods = self.pods.keep::<SlimPod>(&by_pods, client, &self.sender, metrics);
        let jobs = self.jobs.keep::<SlimJob>(&by_jobs, client, &self.sender, metrics);
        let left = pods.into_iter().map(|namespace| Input::Unwatched { kind: Kind::Pod, namespace });
        let left =
            left.chain(jobs.into_iter().map(|namespace| Input::Unwatched { kind: Kind::Job, namespace }));
        for input in left.collect::<Vec<_>>() {
            self.observe(input);
        }
    }
}
