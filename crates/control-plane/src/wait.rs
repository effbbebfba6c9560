//! Waits for the cluster, in simulated time.
//!
//! What asks the API is boxed, so that it is compiled here, where code is optimized: what is generic is compiled in the test
//! that calls it, with all that it runs.

use std::fmt::Debug;
use std::pin::Pin;
use std::time::Duration;

use kube::Api;
use prewarm_api::kruise::{AdvancedCronJob, BroadcastJob, ImagePullJob, NodeImage};
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use crate::control_plane::ControlPlane;

/// How often a condition is checked.
const INTERVAL: Duration = Duration::from_millis(50);

/// A result that comes after a while.
type Awaited<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

impl ControlPlane {
    /// Waits until a condition holds, for at most this many seconds. Otherwise panics with `what`.
    pub async fn within(
        &self,
        limit: Duration,
        what: &str,
        mut holds: impl AsyncFnMut() -> bool,
    ) -> Duration {
        let start = Instant::now();
        while !holds().await {
            assert!(start.elapsed() < limit, "{what} did not come within {limit:?}");
            tokio::time::sleep(INTERVAL).await;
        }
        start.elapsed()
    }

    /// The same for what only the API says: it is asked again when something has been written.
    pub async fn written_within(&self, limit: Duration, what: &str, mut holds: impl AsyncFnMut() -> bool) {
        let deadline = Instant::now() + limit;
        loop {
            let seen = self.server.revision();
            if holds().await {
                return;
            }
            assert!(Instant::now() < deadline, "{what} did not come within {limit:?}");
            self.written_since(seen, deadline).await;
        }
    }

    /// Waits until a condition on a job holds.
    pub async fn job_within(
        &self,
        seconds: u64,
        name: &str,
        is_wanted: impl Fn(&ImagePullJob) -> bool,
    ) -> ImagePullJob {
        self.job_becomes(seconds, name, &is_wanted).await
    }

    /// Waits until a job is over.
    pub async fn finished_within(&self, seconds: u64, name: &str) -> ImagePullJob {
        self.job_within(seconds, name, |job| {
            job.status.as_ref().is_some_and(|status| status.completion_time.is_some())
        })
        .await
    }

    /// Waits until a condition on a BroadcastJob holds.
    pub async fn broadcast_within(
        &self,
        seconds: u64,
        name: &str,
        is_wanted: impl Fn(&BroadcastJob) -> bool,
    ) -> BroadcastJob {
        self.broadcast_becomes(seconds, name, &is_wanted).await
    }

    /// Waits until a condition on a cron job holds.
    pub async fn cron_within(
        &self,
        seconds: u64,
        name: &str,
        is_wanted: impl Fn(&AdvancedCronJob) -> bool,
    ) -> AdvancedCronJob {
        self.cron_becomes(seconds, name, &is_wanted).await
    }

    /// Waits until a condition on a NodeImage holds. `None` stands for one that does not exist.
    pub async fn node_image_within(
        &self,
        seconds: u64,
        name: &str,
        is_wanted: impl Fn(Option<&NodeImage>) -> bool,
    ) {
        self.node_image_becomes(seconds, name, &is_wanted).await;
    }

    /// Lets time pass.
    pub async fn pass(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    fn job_becomes<'a>(
        &'a self,
        seconds: u64,
        name: &'a str,
        is_wanted: &'a dyn Fn(&ImagePullJob) -> bool,
    ) -> Awaited<'a, ImagePullJob> {
        Box::pin(async move { self.becomes(&self.jobs(), seconds, name, is_wanted).await })
    }

    fn broadcast_becomes<'a>(
        &'a self,
        seconds: u64,
        name: &'a str,
        is_wanted: &'a dyn Fn(&BroadcastJob) -> bool,
    ) -> Awaited<'a, BroadcastJob> {
        Box::pin(async move { self.becomes(&self.broadcasts(), seconds, name, is_wanted).await })
    }

    fn cron_becomes<'a>(
        &'a self,
        seconds: u64,
        name: &'a str,
        is_wanted: &'a dyn Fn(&AdvancedCronJob) -> bool,
    ) -> Awaited<'a, AdvancedCronJob> {
        Box::pin(async move { self.becomes(&self.crons(), seconds, name, is_wanted).await })
    }

    fn node_image_becomes<'a>(
        &'a self,
        seconds: u64,
        name: &'a str,
        is_wanted: &'a dyn Fn(Option<&NodeImage>) -> bool,
    ) -> Awaited<'a, Option<NodeImage>> {
        Box::pin(async move { self.settles(&self.node_images(), seconds, name, is_wanted).await })
    }

    /// Waits until an object is there and as wanted.
    async fn becomes<K: Clone + Debug + DeserializeOwned>(
        &self,
        api: &Api<K>,
        seconds: u64,
        name: &str,
        is_wanted: &dyn Fn(&K) -> bool,
    ) -> K {
        let object = self.settles(api, seconds, name, &|object| object.is_some_and(is_wanted)).await;
        object.expect("what is not there is not as wanted")
    }

    /// Waits until an object is as wanted.
    async fn settles<K: Clone + Debug + DeserializeOwned>(
        &self,
        api: &Api<K>,
        seconds: u64,
        name: &str,
        is_wanted: &dyn Fn(Option<&K>) -> bool,
    ) -> Option<K> {
        let deadline = Instant::now() + Duration::from_secs(seconds);
        loop {
            let seen = self.server.revision();
            let object = api.get_opt(name).await.expect("the API answers");
            if is_wanted(object.as_ref()) {
                return object;
            }
            assert!(Instant::now() < deadline, "after {seconds} s, {name} is {object:#?}");
            self.written_since(seen, deadline).await;
        }
    }

    /// Waits until something has been written, or until the deadline. Nothing else changes an object, and reading it
    /// again and again would take longer than everything that happens in the cluster.
    async fn written_since(&self, seen: u64, deadline: Instant) {
        tokio::time::sleep(INTERVAL).await;
        while self.server.revision() == seen && Instant::now() < deadline {
            tokio::time::sleep(INTERVAL).await;
        }
    }
}
