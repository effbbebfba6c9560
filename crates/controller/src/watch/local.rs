//! Watches in single namespaces: of kinds that a cluster has many of, and that matter in few namespaces only.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use k8s_openapi::NamespaceResourceScope;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;

use prewarm_plan::cluster::Input;

use super::{Watch, Watched, follow};
use crate::metrics::Metrics;

/// Watches by namespace.
#[derive(Default)]
pub struct Local(BTreeMap<String, Watch>);

impl Local {
    /// Watches a kind in these namespaces and in no other. Says where it is not watched any more.
    pub fn keep<K>(
        &mut self,
        wanted: &BTreeSet<String>,
        client: &Client,
        sender: &mpsc::Sender<Input>,
        metrics: &Metrics,
    ) -> Vec<String>
    where
        K: Watched
            + Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + Debug
            + DeserializeOwned
            + Send
            + Sync
            + 'static,
    {
        let left: Vec<String> =
            self.0.keys().filter(|namespace| !wanted.contains(*namespace)).cloned().collect();
        self.0.retain(|namespace, _| wanted.contains(namespace));
        for namespace in wanted {
            if !self.0.contains_key(namespace) {
                let api = Api::namespaced(client.clone(), namespace);
                let watch = follow::<K>(api, Some(namespace.clone()), sender.clone(), metrics.clone());
                self.0.insert(namespace.clone(), watch);
            }
        }
        left
    }
}
