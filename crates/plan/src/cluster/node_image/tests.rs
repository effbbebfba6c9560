//! Decision tables of the pass over a NodeImage: its life, what is taken away, what jobs write, who is given up.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node as NodeObject;
use prewarm_api::kruise::{ImagePullJob, NodeImage, SecretReference};

use super::*;
use crate::cluster::image_pull_job::demand;
use crate::cluster::image_pull_job::is_finished;
use crate::cluster::node_image::node::{Facts, Want};
use crate::cluster::node_image::record::Shared;
use crate::demand::selection::Requirements;
use crate::support::build::{at, key, node, node_image, owner, uid};
use crate::support::store::patched;

mod join;
mod life;
mod silent;
mod sweep;

/// A node with a NodeImage, and the jobs and Secrets around it.
struct Scene {
    object: NodeImage,
    node: Node,
    jobs: Vec<Job>,
    secrets: Option<Vec<&'static str>>,
    now: Timestamp,
}

/// A job, and what is known of it.
struct Job {
    demand: Demand,
    is_unfinished: bool,
    secrets: Vec<SecretReference>,
}

impl Scene {
    /// The node `n1` at the beginning, with this NodeImage.
    fn of(object: NodeImage) -> Self {
        Self::on(node("n1"), object)
    }

    fn on(facts: NodeObject, object: NodeImage) -> Self {
        let mut shared = Shared::default();
        let mut node = Node::default();
        node.facts = Some(Facts::read(facts, &Requirements::default(), &mut shared));
        let image = shared.record(object.clone());
        // The node's clock is right, and what it says is heard at once.
        for key in image.keys() {
            let started_at = image.tag(&key).and_then(|(_, tag)| tag.current()?.started_at);
            node.begun.observe(&image, [key], started_at.unwrap_or(at(0)));
        }
        node.image = Some(image);
        Self { object, node, jobs: Vec::new(), secrets: None, now: at(0) }
    }

    fn job(self, job: ImagePullJob) -> Self {
        self.job_with(job, &[])
    }

    #[expect(clippy::needless_pass_by_value, reason = "tests make a job where they name it")]
    fn job_with(mut self, job: ImagePullJob, secrets: &[SecretReference]) -> Self {
        let mut demand = demand(&job);
        demand.owner = owner(job.metadata.name.as_deref().unwrap());
        self.jobs.push(Job { demand, is_unfinished: !is_finished(&job), secrets: secrets.to_vec() });
        self
    }

    /// The config namespace has these Secrets and no others.
    fn secrets(self, names: &[&'static str]) -> Self {
        Self { secrets: Some(names.to_vec()), ..self }
    }

    fn at(self, seconds: i64) -> Self {
        Self { now: at(seconds), ..self }
    }

    /// A job wants something of an image.
    fn want(mut self, job: &str, image: &str, want: Want) -> Self {
        self.node.intend(&key(image), uid(job).into(), want, self.now, 0);
        self
    }

    fn decide(&self) -> Decision {
        decide(&Observed { name: "n1", node: &self.node, demands: self, now: self.now, always_ttl: 300 })
    }

    /// The NodeImage after what is decided was written.
    fn after(&self) -> NodeImage {
        match self.decide().action {
            None => self.object.clone(),
            Some(Action::Patch { operations, .. }) => {
                patched(&self.object, operations).expect("its guard holds")
            }
            Some(other) => panic!("{other:?}"),
        }
    }

    fn is_settled(&self) -> bool {
        self.decide().action.is_none()
    }
}

impl Demands for Scene {
    fn demand(&self, uid: &str) -> Option<Wanted<'_>> {
        let is_that = |job: &&Job| job.demand.owner.uid.as_deref() == Some(uid);
        self.jobs.iter().find(is_that).map(|job| Wanted {
            demand: &job.demand,
            is_unfinished: job.is_unfinished,
            secrets: &job.secrets,
            lacks_secret: false,
        })
    }

    fn has_secret(&self, reference: &SecretReference) -> Option<bool> {
        let names = self.secrets.as_ref()?;
        Some(reference.name.as_deref().is_some_and(|name| names.contains(&name)))
    }
}
