//! Reads what the controller knows of a job: the job, its list, all nodes, and the pods that it selects by.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::Api;
use prewarm_api::kruise::{ImagePullJob, NodeImage};
use prewarm_controller::{SlimNode, SlimPod};
use prewarm_plan::ledger::{Ledger, Settings};

use crate::jobs::{Job, JobName, Jobs};
use crate::reach::{Cluster, Narrow};

/// What an explanation is made of.
pub struct World {
    /// The jobs that pull: one, or those of a list.
    pub jobs: Vec<Arc<ImagePullJob>>,
    /// The NodeImages by name.
    pub images: BTreeMap<String, NodeImage>,
    /// The names of all nodes.
    pub nodes: Vec<String>,
    /// What the controller would know.
    pub ledger: Ledger,
}

impl World {
    /// Reads everything, each kind with one list.
    pub async fn gather(cluster: &Cluster, namespace: Option<&str>, name: &JobName) -> anyhow::Result<Self> {
        let found = Jobs::read(cluster, namespace, None).await?.named(std::slice::from_ref(name))?;
        let jobs: Vec<Arc<ImagePullJob>> = found.iter().flat_map(Job::parts).cloned().collect();
        let (all, client) = (Narrow::default(), &cluster.client);
        let images: Vec<NodeImage> = cluster.list(&Api::all(client.clone()), &all).await?;
        let nodes: Vec<SlimNode> = cluster.list(&Api::all(client.clone()), &all).await?;
        let mut pods = BTreeMap::new();
        for job in jobs.iter().filter(|job| job.spec.pod_selector.is_some()) {
            let namespace = job.metadata.namespace.clone().unwrap_or_default();
            if !pods.contains_key(&namespace) {
                let read: Vec<SlimPod> = cluster.list(&cluster.api(Some(&namespace)), &all).await?;
                pods.insert(namespace, read);
            }
        }
        Ok(Self::new(jobs, images, nodes, pods))
    }

    fn new(
        jobs: Vec<Arc<ImagePullJob>>,
        images: Vec<NodeImage>,
        nodes: Vec<SlimNode>,
        pods: BTreeMap<String, Vec<SlimPod>>,
    ) -> Self {
        let (mut ledger, now) = (Ledger::new(Settings::default()), jiff::Timestamp::now());
        let nodes: Vec<k8s_openapi::api::core::v1::Node> = nodes.into_iter().map(Into::into).collect();
        let names = nodes.iter().filter_map(|node| node.metadata.name.clone()).collect();
        nodes.into_iter().for_each(|node| ledger.hear_node(node));
        images.iter().for_each(|image| ledger.hear_node_image(image.clone(), now));
        for (namespace, pods) in pods {
            for (namespace, name, facts) in pods.into_iter().map(SlimPod::into_facts) {
                ledger.hear_pod(&namespace, &name, Some(facts));
            }
            ledger.sync_pods(&namespace);
        }
        jobs.iter().for_each(|job| ledger.hear_job((**job).clone()));
        let by_name = |image: NodeImage| Some((image.metadata.name.clone()?, image));
        Self { jobs, images: images.into_iter().filter_map(by_name).collect(), nodes: names, ledger }
    }
}
