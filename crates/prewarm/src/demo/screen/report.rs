//! The part of an agent's report that the live view shows.

use std::collections::BTreeSet;

use prewarm_api::kruise::{FailureClass, ImageTagStatus, NodeImage, PullPhase};

use super::name;

#[derive(Default)]
pub struct Report {
    /// How many images are present.
    pub present: i32,
    /// How many could not be pulled.
    pub failed: i32,
    /// The image that waits, and why, if the agent reports it.
    pub waiting: Option<(String, String)>,
    /// The images that could not be pulled, each with its failure class.
    pub failures: BTreeSet<String>,
}

impl Report {
    pub fn of(object: &NodeImage) -> Self {
        let Some(status) = &object.status else { return Self::default() };
        let mut report = Self { present: status.succeeded, failed: status.failed, ..Self::default() };
        for (image, statuses) in status.image_statuses.iter().flatten() {
            for tag in &statuses.tags {
                report.add(name::tagged(image, &tag.tag), tag);
            }
        }
        report
    }

    fn add(&mut self, image: String, status: &ImageTagStatus) {
        match (status.phase, &status.message) {
            (PullPhase::Failed, _) => {
                let class = status.failure_class.unwrap_or(FailureClass::Unknown);
                self.failures.insert(format!("{image} ({class:?})"));
            }
            (PullPhase::Waiting, Some(message)) => self.waiting = Some((image, message.clone())),
            _ => {}
        }
    }
}
