//! Reads everything that the controller would know of a job: the job, its list, all nodes, and the pods that it
//! selects by.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use prewarm_api::kruise::{ImagePullJob, NodeImage};
use prewarm_plan::cluster::image_pull_job::explain::Why;
use prewarm_plan::cluster::{Input, Kernel, Kind, Settings};
use prewarm_plan::object::{NodeName, ObjectKey};
use prewarm_process::slim::{SlimNode, SlimPod};

use crate::jobs::{Job, JobName, Jobs};
use crate::reach::{Feed, Narrow, Reader};

/// The state of the cluster that an explanation is derived from.
pub struct World {
    /// The jobs that pull: one, or those of a list.
    pub jobs: Vec<Arc<ImagePullJob>>,
    pub images: BTreeMap<String, Arc<NodeImage>>,
    pub nodes: Vec<String>,
    /// Why the nodes of unfinished jobs are where they are, by what the controller would know.
    pub explained: BTreeMap<ObjectKey, BTreeMap<NodeName, Why>>,
}

/// The objects, read with one list for each kind.
pub struct Source {
    jobs: Jobs,
    images: Feed<NodeImage>,
    nodes: Feed<SlimNode>,
    /// The pods of the namespaces whose jobs select by pods.
    pods: BTreeMap<String, Feed<SlimPod>>,
}

impl Source {
    /// Reads what the explanation needs beside the jobs.
    pub async fn read(reader: &mut Reader, jobs: Jobs, name: &JobName) -> anyhow::Result<Self> {
        let images = reader.cluster_wide(&Narrow::default()).await?;
        let nodes = reader.cluster_wide(&Narrow::default()).await?;
        let by_pods = parts(&jobs, name)?.into_iter().filter(|job| job.spec.pod_selector.is_some());
        let namespaces: BTreeSet<String> = by_pods.filter_map(|job| job.metadata.namespace.clone()).collect();
        let mut pods = BTreeMap::new();
        for namespace in namespaces {
            let feed = reader.namespaced(Some(&namespace)).await?;
            pods.insert(namespace, feed);
        }
        Ok(Self { jobs, images, nodes, pods })
    }

    /// What the controller would know of the job.
    pub fn world(&self, name: &JobName, now: Timestamp) -> anyhow::Result<World> {
        let mut kernel = Kernel::new(Settings::default());
        let (jobs, images) = (parts(&self.jobs, name)?, self.images.objects());
        let nodes = self.nodes.objects().into_iter().map(|node| Node::from((*node).clone()));
        let nodes: Vec<Node> = nodes.collect();
        let names = nodes.iter().filter_map(|node| node.metadata.name.clone()).collect();
        for node in nodes {
            kernel.observe(Input::seen(node), now);
        }
        for image in &images {
            kernel.observe(Input::seen((**image).clone()), now);
        }
        for (namespace, pods) in &self.pods {
            for pod in pods.objects() {
                kernel.observe(Input::seen((*pod).clone().into_facts()), now);
            }
            let namespace = Some(namespace.clone());
            kernel.observe(Input::Listed { kind: Kind::Pod, namespace, names: BTreeSet::new() }, now);
        }
        for job in &jobs {
            kernel.observe(Input::seen((**job).clone()), now);
        }
        let mut explained = BTreeMap::new();
        for job in &jobs {
            let key = ObjectKey::of(&job.metadata);
            if let Some(why) = kernel.explain::<ImagePullJob>(&key, now) {
                explained.insert(key, why);
            }
        }
        let by_name = |image: Arc<NodeImage>| Some((image.metadata.name.clone()?, image));
        Ok(World { jobs, images: images.into_iter().filter_map(by_name).collect(), nodes: names, explained })
    }
}

fn parts(jobs: &Jobs, name: &JobName) -> anyhow::Result<Vec<Arc<ImagePullJob>>> {
    let found = jobs.named(name);
    anyhow::ensure!(!found.is_empty(), "the pull job {name} is gone");
    Ok(found.iter().flat_map(Job::parts).cloned().collect())
}
