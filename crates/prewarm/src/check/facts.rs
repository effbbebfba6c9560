//! Everything that a check depends on, read once.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Namespace, Node, Pod};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use crate::reach::SeenLease;

/// An answer of the cluster, or the sentence that says why there is none.
pub type Asked<T> = Result<T, String>;

/// What is known of a cluster.
pub struct Facts {
    /// This machine's clock, and the server's at the same moment.
    pub clocks: (Timestamp, Option<Timestamp>),
    /// What the server says of its version, such as `1.34`.
    pub version: Asked<String>,
    /// What whoever asks may do.
    pub rights: Vec<Right>,
    /// The definitions that we need, by name; `None` for one that is not there.
    pub definitions: BTreeMap<String, Asked<Option<CustomResourceDefinition>>>,
    /// Webhooks that answer for our kinds.
    pub webhooks: Asked<Vec<Webhook>>,
    /// What keeps agents to their own nodes.
    pub policies: Asked<Policies>,
    /// The name of the namespace of the programs.
    pub installed_in: String,
    /// That namespace.
    pub namespace: Asked<Option<Namespace>>,
    /// The controller's Lease, seen twice.
    pub lease: Asked<SeenLease>,
    /// The Lease of OpenKruise's manager, seen twice.
    pub rival_lease: Asked<SeenLease>,
    /// Daemons of other implementations.
    pub rival_daemons: Asked<Vec<DaemonSet>>,
    /// Controllers.
    pub deployments: Asked<Vec<Deployment>>,
    /// Agents.
    pub daemon_sets: Asked<Vec<DaemonSet>>,
    /// The agents' pods.
    pub pods: Asked<Vec<Pod>>,
    /// What agents that are not ready answer to a probe, by the name of their pod.
    pub probes: BTreeMap<String, Asked<String>>,
    /// Whether a controller and an agent answer a scrape, by the name of the pod.
    pub scrapes: BTreeMap<String, Asked<()>>,
    /// All nodes.
    pub nodes: Asked<Vec<Node>>,
    /// The heartbeats of nodes.
    pub heartbeats: Asked<Vec<Lease>>,
    /// The names of all NodeImages.
    pub node_images: Asked<Vec<String>>,
}

/// Something that whoever asks may or may not do.
#[derive(Clone, Debug)]
pub struct Right {
    /// As roles have it: `create daemonsets.apps`.
    pub what: String,
    /// Whether it is allowed.
    pub is_allowed: Asked<bool>,
}

/// A webhook that answers for kinds of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// `mutatingwebhookconfiguration/NAME` or the other kind.
    pub configuration: String,
    /// Its own name.
    pub name: String,
    /// The kinds of ours, by their plurals.
    pub resources: Vec<String>,
    /// Whether requests fail with it.
    pub is_required: bool,
}

/// The policy of agents, by any name, with what binds it.
#[derive(Clone, Debug, Default)]
pub struct Policies {
    /// Those of ours.
    pub policies: Vec<ValidatingAdmissionPolicy>,
    /// All bindings.
    pub bindings: Vec<ValidatingAdmissionPolicyBinding>,
}
